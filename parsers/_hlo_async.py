"""The short form of asynchronous operations: `call-start(x), to_apply=f` is an async-start of a computation around it.

XLA's parser makes that computation: a parameter for each operand, and the operation as root. The update and done
forms become `async-update` and `async-done`, which name no computation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo.module import CALL_ROLES
from hlotrace.hlo.shape import Shape
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_draft import LINE, Owned
from hlotrace.parsers._hlo_implied import agree
from hlotrace.parsers._hlo_infer import ONE_OPERAND, TWO_OPERANDS

if TYPE_CHECKING:
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
_ARITY = {**dict.fromkeys(ONE_OPERAND, 1), **dict.fromkeys(TWO_OPERANDS, 2)}
_PLACEHOLDER = Shape("f32[1]", "f32", (1,), (False,))
"""What XLA takes for an operand that is bound nowhere."""


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
        self._operands, self._pieces, self._calls = map(Owned, (draft.operands, draft.pieces, draft.calls))
        later = [number for number, name in enumerate(draft.opcodes) if name.endswith(("-update", "-done"))]
        self._followers = {
            self._bound(row)[0][0]: row
            for row in np.flatnonzero(np.isin(draft.rows[:, a.OPCODE], later)).tolist()
            if self._bound(row)
        }
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
        elements: tuple[Shape, ...] = draft.shapes[number].elements if number >= 0 else ()
        if len(elements) < 2 or not elements[0].is_tuple:
            return False
        computation = len(draft.computations) + len(self.computations)
        shapes, result = self._signature(start, opcode, elements[1])
        parameters = [self._parameter(start, computation, at, shape) for at, shape in enumerate(shapes)]
        root = self._row(start, computation, draft.add(opcode), result, opcode)
        self.rows[-1][[a.OP_NAME, a.OP_NAME_END]] = draft.rows[start, [a.OP_NAME, a.OP_NAME_END]]
        for column in (a.FILE, a.FILE_END, a.SOURCE_LINE, a.FRAME, a.CONFIG, a.CONFIG_END):
            self.rows[-1][column] = draft.rows[start, column]
        self.operands += [[root, -1, -1, -1, parameter, -1] for parameter in parameters]
        self.pieces += [np.array([root, *piece[1:]]) for piece in draft.pieces[self._pieces(start)]]
        draft.calls[self._calls(start), a.OWNER] = root
        self.calls.append([start, -1, computation, _CALLS])
        self.computations.append(
            np.array([*self.computation_name, draft.rows[start, LINE], root, 0, draft.rows[start, a.DONE] - 1, root])
        )
        return True

    def _signature(self, start: int, opcode: str, result: Shape) -> tuple[list[Shape | None], Shape | None]:
        """The shapes of the operation's operands and of its result.

        Operands may also come with updates, and a result with the done. Where a call or fusion is bound to none or
        some of its operands only, they are the parameters of what it calls.
        """
        draft = self.draft
        operands, row, final = self._bound(start), start, result
        while row in self._followers:
            row = self._followers[row]
            operands += self._bound(row)[1:]
            shape = self._shape(row, -1)
            is_update = draft.opcodes[draft.rows[row, a.OPCODE]].endswith("-update")
            final = shape.elements[1] if is_update and shape and len(shape.elements) > 1 else shape or final
        parameters = self._parameters_called(start) if opcode in ("call", "fusion") else []
        if len(parameters) <= len(operands):
            absent = [_PLACEHOLDER] * (_ARITY.get(opcode, 0) - len(operands))
            final = final if final and not agree(final, result) else result
            return [*(self._shape(row, element) for row, element in operands), *absent], final
        root = draft.computations[draft.rows[parameters[0], a.COMPUTATION], a.C_ROOT]
        return [self._shape(row, -1) for row in parameters], self._shape(int(root), -1)

    def _bound(self, row: int) -> list[list[int]]:
        """The operands of an instruction: row and element of each."""
        bound: list[list[int]] = self.draft.operands[self._operands(row)][:, [a.TARGET, a.ELEMENT]].tolist()
        return bound

    def _parameters_called(self, start: int) -> list[int]:
        """The rows of the parameters, in order, of the computation that is called; none where there is not one."""
        draft = self.draft
        called = draft.calls[self._calls(start), a.STOP]
        if len(called) != 1:
            return []
        rows = np.flatnonzero((draft.rows[:, a.COMPUTATION] == called) & (draft.rows[:, a.PARAMETER] >= 0))
        parameters: list[int] = rows[np.argsort(draft.rows[rows, a.PARAMETER], kind="stable")].tolist()
        return parameters

    def _shape(self, row: int, element: int) -> Shape | None:
        number = int(self.draft.rows[row, a.SHAPE]) if row >= 0 else -1
        if number < 0:
            return None
        shape = self.draft.shapes[number]
        return shape.elements[element] if 0 <= element < len(shape.elements) else shape

    def _parameter(self, start: int, computation: int, position: int, shape: Shape | None) -> int:
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
