"""The instructions of an HloModuleProto, turned into an HloModule's columns."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.errors import ParseError
from hlotrace.hlo.module import CALL_ROLES, Frames, HloModule
from hlotrace.hlo.shape_text import parse_shape
from hlotrace.parsers._proto_attributes import attribute_texts, comparison_kind
from hlotrace.parsers._proto_literal import literal_text
from hlotrace.parsers._proto_order import callees_first, calls_of, is_newer, rank_in_schedule
from hlotrace.parsers._proto_shape import shape_text
from hlotrace.parsers._proto_sharding import op_metadata_text
from hlotrace.parsers._wire import Message
from hlotrace.parsers._wire_columns import Fields, scan, scan_message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.shape import Shape

_IN_COLUMNS = frozenset((1, 2, 3, 7, 8, 9, 35, 36, 37, 38, 43, 72, 99, 102))
"""Fields of an instruction that do not stand among its attributes."""

_EMPTY_IS_ABSENT = (68, 82)
"""Frontend attributes and statistics, which XLA writes for every instruction."""

_IN_METADATA_COLUMNS = frozenset((2, 3, 4, 8, 9, 15, 20))
"""Fields of OpMetadata that have columns of their own, and those that the text leaves out."""

_ROLE = {name: at for at, name in enumerate(CALL_ROLES)}


class _Interned:
    """Distinct values, numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, value: str) -> int:
        return self.numbers.setdefault(value, len(self.numbers))


class ModuleRows:
    """The instructions of a module in the order of its text.

    Attributes:
        names: of each row. shape_numbers: of each row, into `shapes`.
    """

    def __init__(self, module: Message) -> None:
        self.place = module.place
        self._data = module.data
        self._entry = (module.integer(6), module.text(2))
        self._payloads = [module.data[span] for span in module.spans(22)]
        self._computations, self._fields = self._ordered(module)
        self._rows = {identity: row for row, identity in enumerate(self._fields.integers(35).tolist())}
        self._opcodes = self._fields.texts(2)
        self._operand_start, operands = self._fields.lists(36)
        self._operand_ids = operands.tolist()
        self._called_start, called = self._fields.lists(38)
        self._called_ids = called.tolist()
        self._computation_at = {one: at for at, one in enumerate(self._computations.integers(5).tolist())}
        self._computation_names = self._computations.texts(1)
        self.names = self._fields.texts(1)
        self._shape = _Interned()
        self.shape_numbers = self._number_shapes()
        self.shapes: tuple[Shape, ...] = tuple(map(parse_shape, self._shape.numbers))

    def row_of(self, identity: int) -> int:
        """The row of an instruction by its id, -1 for none."""
        return self._rows.get(identity, -1)

    def build(self, *, name: str, attributes: dict[str, str], frames: Frames | None) -> HloModule:
        """The module in columns."""
        fields = self._fields
        opcode = _Interned()
        numbers = np.array([opcode(text) for text in self._opcodes], np.int32)
        operand, element = self._operands()
        called_start, called, role, call_texts = self._calls()
        metadata = fields.child(7)
        parameter = np.where(numbers == opcode.numbers.get("parameter", -1), fields.integers(9), -1)
        return HloModule(
            name=name,
            attributes=attributes,
            computation_names=tuple(self._computation_names),
            computation_start=self._starts,
            computation_root=np.array(
                [self.row_of(root) for root in self._computations.integers(6).tolist()], np.int32
            ),
            computation_line=np.full(self._computations.count, -1, np.int32),
            entry=self._entry_at(),
            names=pa.array(self.names, pa.string()),
            opcode=numbers,
            opcodes=tuple(opcode.numbers),
            shape=self.shape_numbers,
            shapes=self.shapes,
            parameter_number=parameter.astype(np.int32),
            line=np.full(fields.count, -1, np.int32),
            operand_start=self._operand_start.astype(np.int32),
            operand=operand,
            operand_element=element,
            called_start=called_start,
            called=called,
            called_role=role,
            literal=pa.array(self._literals(), pa.string()),
            raw_attributes=pa.array(self._attributes(call_texts, metadata), pa.string()),
            backend_config=pa.array(self._backend_configs(), pa.string()),
            op_name=metadata.strings(2),
            source_file=metadata.strings(3),
            source_line=metadata.integers(4, -1).astype(np.int32),
            stack_frame=metadata.integers(15).astype(np.int32),
            frames=frames,
        )

    def _ordered(self, module: Message) -> tuple[Fields, Fields]:
        """The computations and the instructions, in the order in which the text has them."""
        computations = scan_message(module).children(3)[1]
        owner, fields = computations.children(2)
        identity = fields.integers(35)
        start, called = fields.lists(38)
        calls = calls_of(computations.count, owner, identity, start, called.tolist())
        order = callees_first(computations.integers(5).tolist(), calls)
        rank = np.zeros(len(order), np.int64)
        rank[order] = np.arange(len(order))
        self._newer = is_newer(fields, fields.raw(2))
        roots = computations.integers(6)
        self._elements = self._hidden_elements(fields, identity, roots[owner]) if self._newer else {}
        kept = np.array([one not in self._elements for one in identity.tolist()], bool)
        by_place = np.lexsort((rank_in_schedule(module, identity), rank[owner]))
        by_place = by_place[kept[by_place]]
        sizes = np.bincount(rank[owner][by_place], minlength=len(order))
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        place = module.place
        return (
            scan(module.data, place, computations.starts[order], computations.ends[order]),
            scan(module.data, place, fields.starts[by_place], fields.ends[by_place]),
        )

    def _hidden_elements(
        self, fields: Fields, identity: NDArray[np.int64], root: NDArray[np.int64]
    ) -> dict[int, tuple[int, int]]:
        """Instructions that only take an element of a tuple, which the newer text writes where they are used.

        By their ids: the tuple's id and the element's number.
        """
        opcodes = np.array([opcode == b"get-tuple-element" for opcode in fields.raw(2)], bool)
        start, operands = fields.lists(36)
        index = fields.integers(13)
        found: dict[int, tuple[int, int]] = {}
        for at in np.flatnonzero(opcodes & (identity != root) & (np.diff(start) > 0)).tolist():
            source = int(operands[start[at]])
            if source not in found:
                found[int(identity[at])] = (source, int(index[at]))
        return found

    def _entry_at(self) -> int:
        identity, name = self._entry
        if identity in self._computation_at:
            return self._computation_at[identity]
        return self._computation_names.index(name) if name in self._computation_names else -1

    def _number_shapes(self) -> NDArray[np.int32]:
        of_bytes: dict[bytes, int] = {}
        numbers = np.zeros(self._fields.count, np.int32)
        for row, raw in enumerate(self._fields.raw(3)):
            number = of_bytes.get(raw)
            if number is None:
                number = of_bytes[raw] = self._shape(shape_text(Message(raw, self.place)))
            numbers[row] = number
        return numbers

    def _source(self, identity: int, user: int) -> tuple[int, int]:
        """The row that an id means, and the element of its result; -1 for the whole."""
        of, element = self._elements.get(identity, (identity, -1))
        row = self.row_of(of)
        if row < 0:
            raise self._missing(f"instruction {self.names[user]!r} uses instruction {identity}", user)
        return row, element

    def _missing(self, what: str, row: int) -> ParseError:
        return ParseError(
            f"{what}, which is not in the module",
            place=f"{self.place} at byte {self._fields.starts[row]}",
            remedy="The file is damaged: make the dump again.",
        )

    def _operands(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        users = np.repeat(np.arange(self._fields.count), np.diff(self._operand_start)).tolist()
        pairs = [self._source(one, user) for one, user in zip(self._operand_ids, users, strict=True)]
        both = np.array(pairs, np.int32).reshape(-1, 2)
        return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    def _calls(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], list[list[str]]]:
        """Where each row's calls begin, what is called and how, and the texts of the calls."""
        counts = np.zeros(self._fields.count, np.int64)
        called, roles = [], []
        texts: list[list[str]] = [[]] * self._fields.count
        for row in np.flatnonzero(np.diff(self._called_start)).tolist():
            pairs = self._called(row)
            counts[row] = len(pairs)
            called += [at for _, at in pairs]
            roles += [_ROLE[role] for role, _ in pairs]
            texts[row] = self._call_texts(pairs)
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return start, np.array(called, np.int32), np.array(roles, np.int32), texts

    def _called(self, row: int) -> list[tuple[str, int]]:
        """Attribute and computation of each call, in the order of the text."""
        opcode = self._opcodes[row]
        if opcode in ("async-update", "async-done"):
            return []
        found = []
        for identity in self._called_ids[self._called_start[row] : self._called_start[row + 1]]:
            if identity not in self._computation_at:
                raise self._missing(f"instruction {self.names[row]!r} calls computation {identity}", row)
            found.append(self._computation_at[identity])
        if opcode == "while" and len(found) == 2:
            return [("condition", found[1]), ("body", found[0])]
        if opcode == "select-and-scatter" and len(found) == 2:
            return [("select", found[0]), ("scatter", found[1])]
        if opcode == "conditional" and len(found) == 2 and self._operand_dtype(row) == "pred":
            return [("true_computation", found[0]), ("false_computation", found[1])]
        role = {
            "fusion": "calls",
            "async-start": "calls",
            "custom-call": "called_computations",
            "conditional": "branch_computations",
        }.get(opcode, "to_apply")
        return [(role, at) for at in found]

    def _operand_dtype(self, row: int) -> str:
        """The element type of the first operand; empty when there is none."""
        if self._operand_start[row] == self._operand_start[row + 1]:
            return ""
        of, element = self._source(self._operand_ids[self._operand_start[row]], row)
        shape = self.shapes[int(self.shape_numbers[of])]
        if element < 0:
            return shape.dtype
        return shape.elements[element].dtype if element < len(shape.elements) else ""

    def _call_texts(self, pairs: list[tuple[str, int]]) -> list[str]:
        if not pairs:
            return []
        names = ["%" + self._computation_names[at] for _, at in pairs]
        role = pairs[0][0]
        if role in ("branch_computations", "called_computations") or (role in ("calls", "to_apply") and len(pairs) > 1):
            return [f"{role}={{{', '.join(names)}}}"]
        return [f"{key}={name}" for (key, _), name in zip(pairs, names, strict=True)]

    def _literals(self) -> list[str | None]:
        cached = lru_cache(None)(lambda raw: literal_text(Message(raw, self.place)))
        rows = zip(self._opcodes, self._fields.raw(8), strict=True)
        return [cached(raw) if opcode == "constant" else None for opcode, raw in rows]

    def _attributes(self, calls: list[list[str]], metadata: Fields) -> list[str]:
        """All attributes of each row as text; equal ones are printed once."""
        printed: dict[tuple[object, ...], tuple[list[str], list[str], list[str]]] = {}
        own = self._own_fields()
        kinds, orders = self._fields.texts(72), self._fields.texts(102)
        predecessors = self._predecessors()
        other_metadata = self._with_other_metadata(metadata)
        texts = []
        for row, opcode in enumerate(self._opcodes):
            held = own[row]
            needs_shape = held and (opcode.startswith("collective-permute") or any(number == 88 for number, _ in held))
            key = (opcode, self.shape_numbers[row] if needs_shape else -1, *held)
            parts = printed.get(key)
            if parts is None:
                parts = printed[key] = attribute_texts(self._fields.message(row), opcode)
            head, middle, tail = parts
            if opcode == "compare":
                head = [*head, *comparison_kind(kinds[row], orders[row], self._operand_dtype(row))]
            whole = [*head, *calls[row], *middle, *predecessors.get(row, []), *tail, *other_metadata.get(row, [])]
            texts.append(", ".join(whole))
        return texts

    def _own_fields(self) -> list[list[tuple[int, bytes]]]:
        """Of each row the fields that its attributes come from, less those that XLA writes without content."""
        fields = self._fields
        found: list[list[tuple[int, bytes]]] = [[] for _ in range(fields.count)]
        wanted = ~np.isin(fields.number, list(_IN_COLUMNS))
        wanted &= (fields.stop != fields.value) | ~np.isin(fields.number, _EMPTY_IS_ABSENT)
        literals = np.array([opcode == "custom-call" for opcode in self._opcodes], bool)
        wanted |= (fields.number == 8) & literals[fields.owner] if len(literals) else wanted
        rows = np.flatnonzero(wanted)
        columns = (fields.owner[rows], fields.number[rows], fields.value[rows], fields.stop[rows])
        for owner, number, value, stop in zip(*(column.tolist() for column in columns), strict=True):
            content = self._data[value:stop] if stop >= 0 else value.to_bytes(8, "little", signed=True)
            found[owner].append((number, content))
        return found

    def _predecessors(self) -> dict[int, list[str]]:
        start, identities = self._fields.lists(37)
        found = {}
        for row in np.flatnonzero(np.diff(start)).tolist():
            pairs = [self._source(one, row) for one in identities[start[row] : start[row + 1]].tolist()]
            names = ["%" + self.names[at] + (f"#{element}" if element >= 0 else "") for at, element in pairs]
            found[row] = [f"control-predecessors={{{', '.join(names)}}}"]
        return found

    def _with_other_metadata(self, metadata: Fields) -> dict[int, list[str]]:
        """The whole metadata as text, of the rows whose metadata says more than there are columns for."""
        other = ~np.isin(metadata.number, list(_IN_METADATA_COLUMNS))
        rows = np.unique(metadata.owner[other]).tolist()
        return {row: [f"metadata={{{op_metadata_text(metadata.message(row))}}}"] for row in rows}

    def _backend_configs(self) -> list[str | None]:
        texts = self._fields.texts(43)
        for row in np.flatnonzero(self._fields.has(99)).tolist():
            payload = self._fields.message(row).message(99)
            raw = payload.raw(1)
            if not raw and 0 <= payload.integer(2) < len(self._payloads):
                raw = self._payloads[payload.integer(2)]
            texts[row] = raw.decode("utf-8", "replace")
        return [(_sorted_json(text) if self._newer else text) or None for text in texts]


@lru_cache(1 << 14)
def _sorted_json(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        return text
