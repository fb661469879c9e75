"""HLO text of every era, read into the columns of modules.

The grammar is in the scanner (`_hlo_scan` and what it uses), which numba compiles: it is imported when it is first
needed. Here a text becomes modules: many in one file, with what other programs wrote around them, and errors with a
place. What XLA's own parser would reject but can be understood, such as operands defined later, is read; what XLA adds
while parsing, such as the computation around `call-start`, is added alike (`_hlo_async`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.errors import ParseError
from hlotrace.parsers import _hlo_arrays as a

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule
    from hlotrace.hlo.shape import Shape
    from hlotrace.parsers._hlo_arrays import Found

_MESSAGES = {
    a.NO_COMPUTATION: "expected a computation: `[ENTRY] name (parameters) -> result {`",
    a.SECOND_ENTRY: "expected one ENTRY in a module",
    a.NOT_CLOSED: "expected `}` after the computation that begins here; the text ends",
    a.NO_INSTRUCTION: "expected an instruction: `[ROOT] name = shape opcode(operands)`",
    a.NO_EQUALS: "expected `=` after an instruction's name",
    a.BAD_SHAPE: "expected a shape that ends; its parentheses are not closed",
    a.NO_OPCODE: "expected a shape and an opcode with its operands in parentheses",
    a.BAD_PARAMETER: "expected a parameter's number and `)`",
    a.BAD_OPERAND: "expected an operand's name or `)`",
    a.NO_COMMA: "expected `,` or `)` after an operand",
    a.BAD_ATTRIBUTE: "expected an attribute: `name=value` after the comma",
    a.BAD_VALUE: "expected an attribute with a value that ends",
    a.NAME_TWICE: "expected a name that no other instruction of the computation has",
    a.SECOND_ROOT: "expected one ROOT in a computation",
    a.TOO_DEEP: f"expected computations and operands to nest at most {a.MOST_NESTED} deep",
    a.BAD_CALL: "expected the name of a computation",
    a.BAD_METADATA: "expected `name=value` in the metadata",
    a.JUNK_INSIDE: "expected a computation or `HloModule`",
    a.BAD_LITERAL: "expected `)` after a constant's value; the text ends",
}
_SEPARATOR = re.compile(rb"^[ \t]*// -----", re.MULTILINE)
_LARGEST = 2**31 - 1
_MOST_LOOKED_AT = 20
_SAMPLE = 1 << 15


def read_modules(text: str | bytes, *, place: str = "<text>") -> Iterator[HloModule]:
    """The modules of a text, in its order.

    Args:
        text: what a dump holds, or a log with HLO in it; bytes are taken as UTF-8.
        place: what errors and problems call the text, such as the file's path.

    Raises:
        ParseError: the text is no HLO, or what follows the modules read so far is damaged; its place is
            `place:line:column`.
    """
    data = _bytes_of(text, place)
    reader = _Reader(data, place)
    try:
        module = reader.read()
    except ParseError:
        clean = _without_prefixes(data)
        if clean is None:
            raise
        reader = _Reader(clean, place)
        module = reader.read()
    del data, text
    while module is not None:
        yield module
        module = reader.read()


def parse(text: str | bytes, *, place: str = "<text>") -> Mapping[str, pd.DataFrame]:
    """The tables `computations`, `instructions` and `fusions` of a text that holds one module.

    Its stage and its platform, which name memory spaces, are what the module itself gives away.

    Raises:
        ParseError: the text is no HLO, or holds several modules.
    """
    tables = None
    for number, made in enumerate(parse_all(text, place=place)):
        if number:
            raise ParseError("expected one module, found several", place=place, remedy="parse_all gives them all.")
        tables = made
    assert tables is not None
    return tables


def parse_all(text: str | bytes, *, place: str = "<text>") -> Iterator[Mapping[str, pd.DataFrame]]:
    """The tables of each module of a text, in its order.

    Raises:
        ParseError: the text is no HLO, or what follows the modules given so far is damaged.
    """
    import pyarrow as pa

    from hlotrace.hlo.guesses import guessed_stage, platform_of
    from hlotrace.hlo.tables import module_tables
    from hlotrace.tables import to_frame

    for hlo in read_modules(text, place=place):
        tables = module_tables(hlo, module=hlo.name, stage=guessed_stage(hlo), platform=platform_of(hlo) or "cpu")
        pa.default_memory_pool().release_unused()  # what making them took, before frames take more
        yield {name: to_frame(table) for name, table in tables.items()}


def _bytes_of(text: str | bytes, place: str) -> bytes:
    """The text as valid UTF-8 without zeros."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if not data.isascii() and not isinstance(text, str):
        data = data.decode("utf-8", "replace").encode()
    if len(data) > _LARGEST:
        raise ParseError(f"expected at most 2 GiB of HLO text, found {len(data):,} bytes", place=place)
    if not data or data.isspace():
        raise ParseError("expected HLO text, found nothing", place=place)
    zero = data.find(b"\0")
    if zero >= 0:
        raise ParseError("expected HLO text, found a zero byte", place=_place(data, zero, place))
    return data


def _without_prefixes(data: bytes) -> bytes | None:
    """The text with the prefix that a logger gave to lines blanked out; None where `HloModule` has no prefix.

    The prefix is what stands before `HloModule` on its line; on other lines its numbers may be others.
    """
    at = -1
    for _ in range(_MOST_LOOKED_AT):
        at = data.find(b"HloModule ", at + 1)
        if at < 0:
            return None
        prefix = data[data.rfind(b"\n", 0, at) + 1 : at]
        if prefix.strip() and not re.search(rb'^\s*(//|#|;)|["{}]', prefix):
            pattern = re.sub(rb"\d+", rb"\\d+", re.escape(prefix))
            return re.sub(rb"(?m)^" + pattern, lambda match: b" " * len(match[0]), data)
    return None


def _place(data: bytes, at: int, place: str) -> str:
    """`place:line:column` of a byte."""
    begin = data.rfind(b"\n", 0, at) + 1
    column = len(data[begin:at].decode("utf-8", "replace")) + 1
    line = data.count(b"\n", 0, at) + 1
    return f"{place}:{line}:{column}"


class _Reader:
    """Reads one module after the other."""

    def __init__(self, data: bytes, place: str) -> None:
        self.data = data
        self.place = place
        self.text: NDArray[np.uint8] = np.frombuffer(data, np.uint8)  # a zero follows: Python ends its bytes so
        self.position = 0
        self._counted, self._line = 0, 1
        self._expected_size = len(data)
        self._count = 0
        self._is_cut = False

    def read(self) -> HloModule | None:
        """The next module; None at the end of the text.

        Raises:
            ParseError: what comes next is no module, or there was none at all.
        """
        while self.position < len(self.data):
            start = self.position
            found, end = self._scan(start)
            again = self._second_begins(found)
            if again is not None and not self._is_cut and _SEPARATOR.search(self.data, start, again):
                self._is_cut = True
                self.text = np.frombuffer(bytearray(self.data + b"\0"), np.uint8)
                continue
            if again is not None or found.state[a.ERROR]:
                raise self._error(found, again)
            self.position = self._after(found, end)
            if len(found.computations):
                self._count += 1
                self._expected_size = 2 * (self.position - start)
                module = self._module(found, start)
                a.give_back(found.memory)
                if self.position >= len(self.data):
                    self._let_go()
                return module
            if found.state[a.MODULE_NAME] >= 0:
                raise ParseError("expected a computation after the header", place=self._at(found.state[a.MODULE_NAME]))
            if found.state[a.JUNK] >= 0 and not self._count and self.position >= len(self.data):
                what = "expected HLO: `HloModule`, a computation or an instruction"
                raise ParseError(what, place=self._at(found.state[a.JUNK]))
        if not self._count:
            raise ParseError("expected HLO, found only comments", place=self.place)
        return None

    def _let_go(self) -> None:
        """Free the text, which is not needed while the last module is worked on."""
        self.data, self.position = b"", 0
        self.text = np.empty(0, np.uint8)

    def _scan(self, start: int) -> tuple[Found, int]:
        """What a scan from `start` found, and where the text for it ended: at a separator where it is cut at them."""
        from hlotrace.parsers._hlo_scan import scan_module

        separator = _SEPARATOR.search(self.data, start) if self._is_cut else None
        end = separator.start() if separator else len(self.data)
        if separator:
            self.text[end] = 0
        room = self._room(start, end)
        memory = a.memory_for(room)
        while True:
            memory[a.POSITION], memory[a.SIZE] = start, end
            scan_module(self.text, memory)
            if memory[a.ERROR] != a.FULL:
                break
            room *= 2
            memory = a.memory_for(room)
        if separator:
            self.text[end] = self.data[end]
        return a.Found(memory), end

    def _room(self, start: int, end: int) -> int:
        """For how many instructions there should be room: about the lines, of which samples are counted."""
        size = min(end - start, self._expected_size)
        samples = [start, start + size // 2, start + max(size - _SAMPLE, 0)]
        newlines = max(self.data.count(b"\n", at, at + _SAMPLE) for at in samples)
        return 64 + max(size // 256, 5 * newlines * size // (4 * min(size + 1, _SAMPLE)))

    def _after(self, found: Found, end: int) -> int:
        """Where the next module is looked for: behind the separator where the text was cut."""
        position = int(found.state[a.POSITION])
        if position < end or end == len(self.data):
            return position
        newline = self.data.find(b"\n", end)
        return newline + 1 if newline >= 0 else len(self.data)

    def _second_begins(self, found: Found) -> int | None:
        """The place of a second entry, or of a second computation of one name; None where there is none."""
        from hlotrace.parsers._hlo_gather import gather

        if found.state[a.ERROR] == a.SECOND_ENTRY:
            return int(found.state[a.ERROR_PLACE])
        if found.state[a.ERROR]:
            return None
        names = gather(self.text, found.computations[:, [a.C_NAME, a.C_NAME_END]]).drop_null()
        if len(names.unique()) == len(names):
            return None
        seen: set[str] = set()
        for name, place in zip(names.to_pylist(), found.computations[:, a.C_PLACE].tolist(), strict=False):
            if name in seen:
                return int(place)
            seen.add(name)
        return None

    def _error(self, found: Found, again: int | None) -> ParseError:
        error = int(found.state[a.ERROR])
        what = _MESSAGES.get(error, "expected a name that no other computation has")
        return ParseError(what, place=self._at(again if again is not None else found.state[a.ERROR_PLACE]))

    def _at(self, position: int | np.int64) -> str:
        return _place(self.data, int(position), self.place)

    def _module(self, found: Found, start: int) -> HloModule:
        """The columns of what was found."""
        from hlotrace.parsers._hlo_build import build
        from hlotrace.parsers._hlo_complete import complete
        from hlotrace.parsers._hlo_draft import Draft
        from hlotrace.parsers._hlo_frames import read_frames

        state = found.state
        self._line += self.data.count(b"\n", self._counted, start)
        self._counted = start
        draft = Draft(self.text, found, self._shapes(found), self.place, start, self._line)
        problems = self._junk_at_end(found)
        complete(draft, problems)
        has_name, has_frames = state[a.MODULE_NAME] >= 0, state[a.FRAMES] >= 0
        return build(
            draft,
            name=draft.string(state[a.MODULE_NAME], state[a.MODULE_NAME_END]) if has_name else None,
            attributes={draft.string(*row[:2]): draft.string(*row[2:]) for row in found.attributes.tolist()},
            frames=read_frames(draft.string(state[a.FRAMES], state[a.FRAMES_END])) if has_frames else None,
            problems=problems,
        )

    def _shapes(self, found: Found) -> list[Shape]:
        from hlotrace.hlo.shape_text import ShapeError, parse_shape

        shapes = []
        for start, end, _ in found.shapes.tolist():
            try:
                shapes.append(parse_shape(self.data[start:end].decode()))
            except ShapeError as error:
                raise ParseError(error.what, place=self._at(start + error.offset)) from None
        return shapes

    def _junk_at_end(self, found: Found) -> list[tuple[str, str, str]]:
        """Lines behind the last module that are no HLO, as a problem; between modules they are the log's own."""
        if found.state[a.JUNK] < 0 or self.position < len(self.data):
            return []
        count = int(found.state[a.JUNK_LINES])
        return [(self._at(found.state[a.JUNK]), f"{count} lines from here on are no HLO", "they are passed over")]
