"""The instructions of an HloModuleProto, gathered row by row and turned into an HloModule's columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.errors import ParseError
from hlotrace.hlo.module import CALL_ROLES, Frames, HloModule
from hlotrace.hlo.shape_text import parse_shape
from hlotrace.parsers._proto_attributes import attribute_texts
from hlotrace.parsers._proto_literal import literal_text
from hlotrace.parsers._proto_shape import shape_text
from hlotrace.parsers._proto_sharding import op_metadata_text
from hlotrace.parsers._wire import Message

if TYPE_CHECKING:
    from hlotrace.hlo.shape import Shape

_PLAIN_METADATA = frozenset((2, 3, 4, 15))
"""Fields of OpMetadata that have columns of their own."""

_UNPRINTED_METADATA = frozenset((8, 9, 20))

_ROLE = {name: at for at, name in enumerate(CALL_ROLES)}


class _Interned:
    """Distinct values, numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, value: str) -> int:
        return self.numbers.setdefault(value, len(self.numbers))


class ModuleRows:
    """The rows of a module; `row_of` finds an instruction by its id."""

    def __init__(self, module: Message) -> None:
        self.place = module.place
        self.computations = _callees_first(list(module.messages(3)))
        self._entry_id = module.integer(6)
        self._entry_name = module.text(2)
        self._payloads = [module.data[span] for span in module._spans(22)]
        self._computation_names = {item.integer(5): item.text(1) for item in self.computations}
        self._computation_at = {item.integer(5): at for at, item in enumerate(self.computations)}
        self.instructions: list[Message] = []
        self.starts = [0]
        orders = _orders(module.message(7))
        bodies = [_ordered(list(item.messages(2)), orders.get(item.integer(5))) for item in self.computations]
        self._is_newer = _is_newer(bodies)
        self._elements: dict[int, tuple[int, int]] = {}
        for item, body in zip(self.computations, bodies, strict=True):
            if self._is_newer:
                body = self._without_elements(body, item.integer(6))
            self.instructions += body
            self.starts.append(len(self.instructions))
        self.row_of = {item.integer(35): row for row, item in enumerate(self.instructions)}
        self.names = [item.text(1) for item in self.instructions]
        self._opcode = _Interned()
        self._shape = _Interned()
        self._shape_of_bytes: dict[bytes, int] = {}
        self.shape_numbers = [self._shape_number(item) for item in self.instructions]
        self.shapes: tuple[Shape, ...] = tuple(map(parse_shape, self._shape.numbers))

    def build(self, *, name: str, attributes: dict[str, str], frames: Frames | None) -> HloModule:
        """The module in columns."""
        items = self.instructions
        opcodes = [item.text(2) for item in items]
        opcode = np.array([self._opcode(text) for text in opcodes], np.int32)
        operand_start, operand, element = self._operands()
        called_start, called, role, calls = self._calls(opcodes)
        metadata = [item.message(7) for item in items]
        raw = [self._attributes(*row) for row in zip(items, opcodes, calls, metadata, strict=True)]
        return HloModule(
            name=name,
            attributes=attributes,
            computation_names=tuple(item.text(1) for item in self.computations),
            computation_start=np.array(self.starts, np.int32),
            computation_root=np.array([self.row_of.get(item.integer(6), -1) for item in self.computations], np.int32),
            computation_line=np.full(len(self.computations), -1, np.int32),
            entry=self._entry(),
            names=pa.array(self.names, pa.string()),
            opcode=opcode,
            opcodes=tuple(self._opcode.numbers),
            shape=np.array(self.shape_numbers, np.int32),
            shapes=self.shapes,
            parameter_number=np.array(
                [item.integer(9) if text == "parameter" else -1 for item, text in zip(items, opcodes, strict=True)],
                np.int32,
            ),
            line=np.full(len(items), -1, np.int32),
            operand_start=operand_start,
            operand=operand,
            operand_element=element,
            called_start=called_start,
            called=called,
            called_role=role,
            literal=pa.array(
                [
                    literal_text(item.message(8)) if text == "constant" else None
                    for item, text in zip(items, opcodes, strict=True)
                ],
                pa.string(),
            ),
            raw_attributes=pa.array(raw, pa.string()),
            backend_config=pa.array([self._backend_config(item) for item in items], pa.string()),
            op_name=pa.array([held.text(2) or None for held in metadata], pa.string()),
            source_file=pa.array([held.text(3) or None for held in metadata], pa.string()),
            source_line=np.array([held.integer(4, -1) for held in metadata], np.int32),
            stack_frame=np.array([held.integer(15) for held in metadata], np.int32),
            frames=frames,
        )

    def _entry(self) -> int:
        if self._entry_id in self._computation_at:
            return self._computation_at[self._entry_id]
        names = [item.text(1) for item in self.computations]
        return names.index(self._entry_name) if self._entry_name in names else -1

    def _shape_number(self, item: Message) -> int:
        raw = item.raw(3)
        number = self._shape_of_bytes.get(raw)
        if number is None:
            number = self._shape_of_bytes[raw] = self._shape(shape_text(item.message(3)))
        return number

    def _name(self, identity: int, user: Message) -> str:
        of, element = self._elements.get(identity, (identity, -1))
        return self.names[self._row(of, user)] + (f"#{element}" if element >= 0 else "")

    def _row(self, identity: int, user: Message) -> int:
        row = self.row_of.get(identity)
        if row is None:
            raise ParseError(
                f"instruction {user.text(1)!r} uses instruction {identity}, which is not in the module",
                place=f"{self.place} at byte {user.start}",
                remedy="The file is damaged: make the dump again.",
            )
        return row

    def _dtype(self, identity: int, user: Message) -> str:
        of, element = self._elements.get(identity, (identity, -1))
        shape = self.shapes[self.shape_numbers[self._row(of, user)]]
        return shape.dtype if element < 0 else shape.elements[element].dtype

    def _without_elements(self, body: list[Message], root: int) -> list[Message]:
        """The instructions less those that only take an element of a tuple; who used them names the element itself."""
        kept = []
        for item in body:
            identity = item.integer(35)
            operands = item.integers(36)
            taken = item.text(2) == "get-tuple-element" and identity != root and operands
            if taken and operands[0] not in self._elements:
                self._elements[identity] = (operands[0], item.integer(13))
            else:
                kept.append(item)
        return kept

    def _operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        start, rows, elements = [0], [], []
        for item in self.instructions:
            for identity in item.integers(36):
                of, element = self._elements.get(identity, (identity, -1))
                rows.append(self._row(of, item))
                elements.append(element)
            start.append(len(rows))
        return np.array(start, np.int32), np.array(rows, np.int32), np.array(elements, np.int32)

    def _calls(self, opcodes: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[list[str]]]:
        """Where each row's calls begin, what is called and how, and the texts of the calls."""
        start, called, roles = [0], [], []
        texts: list[list[str]] = []
        for item, opcode in zip(self.instructions, opcodes, strict=True):
            pairs = self._called(item, opcode)
            called += [self._computation_at[identity] for _, identity in pairs]
            roles += [_ROLE[role] for role, _ in pairs]
            start.append(len(called))
            texts.append(self._call_texts(pairs) if pairs else [])
        return np.array(start, np.int32), np.array(called, np.int32), np.array(roles, np.int32), texts

    def _called(self, item: Message, opcode: str) -> list[tuple[str, int]]:
        """Attribute and computation of each call, in the order of the text."""
        if opcode in ("async-update", "async-done"):
            return []
        identities = item.integers(38)
        for identity in identities:
            if identity not in self._computation_at:
                raise ParseError(
                    f"instruction {item.text(1)!r} calls computation {identity}, which is not in the module",
                    place=f"{self.place} at byte {item.start}",
                    remedy="The file is damaged: make the dump again.",
                )
        if opcode == "while" and len(identities) == 2:
            return [("condition", identities[1]), ("body", identities[0])]
        if opcode == "conditional":
            return list(zip(self._branch_roles(item, len(identities)), identities, strict=True))
        if opcode == "select-and-scatter" and len(identities) == 2:
            return [("select", identities[0]), ("scatter", identities[1])]
        if opcode in ("fusion", "async-start"):
            return [("calls", identity) for identity in identities]
        role = "called_computations" if opcode == "custom-call" else "to_apply"
        return [(role, identity) for identity in identities]

    def _branch_roles(self, item: Message, count: int) -> list[str]:
        selectors = item.integers(36)
        if count == 2 and selectors and self._dtype(selectors[0], item) == "pred":
            return ["true_computation", "false_computation"]
        return ["branch_computations"] * count

    def _call_texts(self, pairs: list[tuple[str, int]]) -> list[str]:
        names = self._computation_names
        role = pairs[0][0]
        if role in ("branch_computations", "called_computations") or (role in ("calls", "to_apply") and len(pairs) > 1):
            return [f"{role}={{{', '.join('%' + names[identity] for _, identity in pairs)}}}"]
        return [f"{key}=%{names[identity]}" for key, identity in pairs]

    def _attributes(self, item: Message, opcode: str, calls: list[str], metadata: Message) -> str:
        predecessors = ["%" + self._name(identity, item) for identity in item.integers(37)]
        parts = attribute_texts(item, opcode, calls, predecessors)
        if opcode == "compare" and item.text(102) == "TOTAL" and self._compares_floats(item):
            parts.insert(1, "order=TOTAL")
        if metadata.fields.keys() - _PLAIN_METADATA - _UNPRINTED_METADATA:
            parts.append(f"metadata={{{op_metadata_text(metadata)}}}")
        return ", ".join(parts)

    def _compares_floats(self, item: Message) -> bool:
        """Whether a total order needs to be said: integers have no other."""
        operands = item.integers(36)
        dtype = self._dtype(operands[0], item) if operands else ""
        return dtype.startswith(("f", "bf", "c"))

    def _backend_config(self, item: Message) -> str | None:
        if 99 in item:
            payload = item.message(99)
            raw = payload.raw(1)
            if not raw and payload.integer(2) < len(self._payloads):
                raw = self._payloads[payload.integer(2)]
        else:
            raw = item.raw(43)
        text = raw.decode("utf-8", "replace")
        return (_sorted_json(text) if self._is_newer else text) or None


def _is_newer(bodies: list[list[Message]]) -> bool:
    """Whether the XLA that wrote the proto dumps its text in the newer form.

    The newer form (libtpu 0.0.50, jaxlib 0.12; not libtpu 0.0.42 and jaxlib 0.10.2) writes `%tuple#1` where a
    get-tuple-element stands, and configurations with their keys sorted. The proto carries no version; but the older
    XLA gives every comparison a `comparison_type`, the newer gives it none.
    """
    compares = [item for body in bodies for item in body if item.raw(2) == b"compare"]
    return bool(compares) and not any(72 in item for item in compares)


def _sorted_json(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        return text


def _callees_first(computations: list[Message]) -> list[Message]:
    """Computations in the order of the text: what an instruction calls stands before, instructions taken by their ids.

    The proto itself lists them by id once a module is scheduled.
    """
    by_id = {item.integer(5): item for item in computations}
    calls = {identity: _callees(item) for identity, item in by_id.items()}
    nested = {identity for called in calls.values() for group in called for identity in group}
    order: list[Message] = []
    seen: set[int] = set()

    for root in [identity for identity in by_id if identity not in nested] + list(by_id):
        if root in seen:
            continue
        seen.add(root)
        waiting = [(root, iter(calls[root]))]
        while waiting:
            identity, rest = waiting[-1]
            group = next(rest, None)
            if group is None:
                order.append(by_id[identity])
                waiting.pop()
                continue
            fresh = [one for one in dict.fromkeys(group) if one in by_id and one not in seen]
            seen.update(fresh)
            waiting += [(one, iter(calls[one])) for one in reversed(fresh)]
    return order


def _callees(computation: Message) -> list[list[int]]:
    """What each calling instruction calls, instructions by their ids."""
    made = sorted((held.integer(35), held.integers(38)) for held in computation.messages(2) if 38 in held)
    return [called for _, called in made]


def _orders(schedule: Message) -> dict[int, list[int]]:
    """For each scheduled computation the ids of its instructions in order."""
    return {entry.integer(1): entry.message(2).integers(1) for entry in schedule.messages(1)}


def _ordered(items: list[Message], order: list[int] | None) -> list[Message]:
    """Instructions in the schedule's order, which the text follows; those it leaves out stand at the end."""
    if order is None:
        return items
    place = {identity: at for at, identity in enumerate(order)}
    return sorted(items, key=lambda item: place.get(item.integer(35), len(order)))
