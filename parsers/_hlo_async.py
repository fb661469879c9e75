"""The short form of asynchronous operations: `call-start(x), to_apply=f` is an async-start of a computation around it.

XLA's parser makes that computation: a parameter for each operand, and the operation as root. The update and done
forms become `async-update` and `async-done`, which name no computation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo.module import CALL_ROLES
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_draft import LINE

if TYPE_CHECKING:
    from hlotrace.hlo.shape import Shape
    from hlotrace.parsers._hlo_draft import Draft

_OWN_OPCODES = frozenset(
    f"{name}-{phase}"
    for names, phases in (
        (("all-gather", "all-reduce", "collective-permute", "copy"), ("start", "done")),
        (("async",), ("start", "update", "done")),
        (("send", "recv"), ("done",)),
    )
    for name in names
    for phase in phases
)
_PHASES = ("start", "update", "done")
_CALLS = CALL_ROLES.index("calls")


def wrap_async(draft: Draft) -> bool:
    """Write the short forms out; whether there was a start among them."""
    short = {
        number: tuple(opcode.rsplit("-", 1))
        for number, opcode in enumerate(draft.opcodes)
        if opcode not in _OWN_OPCODES and opcode.rpartition("-")[2] in _PHASES
    }
    _drop_calls_of_followers(draft)
    if not short:
        return False
    wrapper = _Wrapper(draft)
    for row in np.flatnonzero(np.isin(draft.rows[:, a.OPCODE], list(short))).tolist():
        opcode, phase = short[int(draft.rows[row, a.OPCODE])]
        if phase != "start" or wrapper.wrap(row, opcode):
            draft.rows[row, a.OPCODE] = draft.opcode_number(f"async-{phase}")
    wrapper.finish()
    return bool(wrapper.computations)


def _drop_calls_of_followers(draft: Draft) -> None:
    """Older texts name the computation at async-update and async-done too; it runs once, from the start."""
    followers = [number for number, opcode in enumerate(draft.opcodes) if opcode in ("async-update", "async-done")]
    if followers and len(draft.calls):
        draft.calls = draft.calls[~np.isin(draft.rows[draft.calls[:, a.OWNER], a.OPCODE], followers)]


class _Wrapper:
    """Collects the computations around operations, and their rows, operands, calls and attributes."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        draft.rows[:, a.DONE] *= 4  # room between them for the computations that come in
        draft.computations[:, a.C_DONE] *= 4
        self.computation_name = draft.add("async_wrapped")
        self.parameter_name = draft.add("async_param")
        self.computations: list[np.ndarray] = []
        self.rows: list[np.ndarray] = []
        self.operands: list[list[int]] = []
        self.pieces: list[np.ndarray] = []
        self.calls: list[list[int]] = []

    def wrap(self, start: int, opcode: str) -> bool:
        """Make the computation around the operation that `start` begins; False where its shape is no start's."""
        draft = self.draft
        number = draft.rows[start, a.SHAPE]
        elements = draft.shapes[number].elements if number >= 0 else ()
        if len(elements) < 2 or not elements[0].is_tuple:
            return False
        computation = len(draft.computations) + len(self.computations)
        operands = np.flatnonzero(draft.operands[:, a.OWNER] == start)
        parameters = [self._parameter(start, computation, at, int(row)) for at, row in enumerate(operands)]
        root = self._row(start, computation, draft.add(opcode), elements[1], opcode)
        self.rows[-1][[a.OP_NAME, a.OP_NAME_END]] = draft.rows[start, [a.OP_NAME, a.OP_NAME_END]]
        for column in (a.FILE, a.FILE_END, a.SOURCE_LINE, a.FRAME, a.CONFIG, a.CONFIG_END):
            self.rows[-1][column] = draft.rows[start, column]
        self.operands += [[root, -1, -1, -1, parameter, -1] for parameter in parameters]
        for piece in draft.pieces[draft.pieces[:, a.OWNER] == start]:
            self.pieces.append(np.array([root, *piece[1:]]))
        draft.calls[draft.calls[:, a.OWNER] == start, a.OWNER] = root
        self.calls.append([start, -1, computation, _CALLS])
        self.computations.append(
            np.array([*self.computation_name, draft.rows[start, LINE], root, 0, draft.rows[start, a.DONE] - 1, root])
        )
        return True

    def _parameter(self, start: int, computation: int, position: int, operand: int) -> int:
        draft = self.draft
        target, element = draft.operands[operand, [a.TARGET, a.ELEMENT]].tolist()
        shape = draft.shapes[draft.rows[target, a.SHAPE]] if target >= 0 else None
        if shape is not None and 0 <= element < len(shape.elements):
            shape = shape.elements[element]
        row = self._row(start, computation, self.parameter_name, shape, "parameter")
        self.rows[-1][a.PARAMETER] = position
        return row

    def _row(self, start: int, computation: int, name: tuple[int, int], shape: Shape | None, opcode: str) -> int:
        """A new row on the line of `start`; its number."""
        draft = self.draft
        row = np.full(a.ROW_WIDTH, -1, np.int64)
        row[[a.NAME, a.NAME_END, a.COMPUTATION]] = *name, computation
        row[[LINE, a.OPCODE]] = draft.rows[start, LINE], draft.opcode_number(opcode)
        row[[a.SHAPE, a.FRAME]] = -1 if shape is None else draft.shape_number(shape), 0
        row[a.DONE] = len(self.rows)
        self.rows.append(row)
        return len(draft.rows) + len(self.rows) - 1

    def finish(self) -> None:
        """Enter all into the draft's tables."""
        for table, entries in (
            ("rows", self.rows),
            ("operands", self.operands),
            ("pieces", self.pieces),
            ("calls", self.calls),
            ("computations", self.computations),
        ):
            if entries:
                self.draft.append(table, np.array(entries))
