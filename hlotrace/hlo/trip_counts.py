"""How often loops run, from what the compiler wrote down, else from the condition and what the body does to its state.

A loop's state is a tuple. The scalars of it that the condition reads are traced as integer expressions of the state:
in the condition, in the body (what they are one trip later) and before the loop (what they begin as). A condition that
compares an element that grows by a constant with a constant has its count in closed form; everything else that stays
in scalars is stepped through, up to a limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo.module import CALL_ROLES
from hlotrace.hlo.scalars import Affine, Expression, Operation, Path, affine, constant, evaluate, operation

if TYPE_CHECKING:
    from collections.abc import Callable

    from hlotrace.hlo.call_graph import CallGraph
    from hlotrace.hlo.module import HloModule

_KNOWN = re.compile(r"known_trip_count\W{1,4}n\W{1,4}(\d+)")
_INDEX = re.compile(r"\bindex=(\d+)")
_DIRECTION = re.compile(r"\bdirection=(\w\w)")
_PASSES_ON = frozenset({"copy", "bitcast", "reshape", "convert", "broadcast", "copy-start", "copy-done", "opt-barrier"})
_ENTERED = frozenset({"fusion", "call"})
_DEEPEST = 150
_MOST_STEPS = 1 << 16


class _Unknown(Exception):
    """A value that is no integer expression of constants and loop state."""


@dataclass(frozen=True)
class _Scope:
    """Where a computation is looked at from: what its parameters stand for.

    `parameter(number, path)` gives the expression of an element of a parameter.
    """

    parameter: Callable[[int, Path], Expression]
    seen: dict[tuple[int, Path], Expression] = field(default_factory=dict)


def trip_counts(hlo: HloModule, graph: CallGraph) -> dict[int, int]:
    """For each row of a `while` how often its body runs; rows that are missing have no count that can be known."""
    if "while" not in hlo.opcodes:
        return {}
    tracer = _Tracer(hlo, graph)
    return {
        row: count
        for row in np.flatnonzero(hlo.has_opcode("while")).tolist()
        if (count := tracer.trip_count(row)) is not None
    }


class _Tracer:
    """Follows scalars through a module's tuples, fusions, calls and loops."""

    def __init__(self, hlo: HloModule, graph: CallGraph) -> None:
        self.hlo = hlo
        # Single elements of a memoryview are read several times faster than those of an array.
        self.opcode, self.parameter_number = hlo.opcode.data, hlo.parameter_number.data
        self.operand_start, self.operand, self.element = (
            hlo.operand_start.data,
            hlo.operand.data,
            hlo.operand_element.data,
        )
        self.computation = graph.computation
        self.calling = graph.caller
        self.outside: dict[int, _Scope] = {}
        self.depth = 0

    def trip_count(self, loop: int) -> int | None:
        """The trips of the `while` in row `loop`; None when they depend on data or cannot be followed."""
        config = self.hlo.backend_config[loop].as_py() or self.hlo.raw_attributes[loop].as_py() or ""
        known = _KNOWN.search(config)
        if known:
            return int(known[1])
        try:
            condition = self._root(self._called(loop, "condition"), _state_scope())
            return self._count(loop, condition)
        except _Unknown:
            return None

    def _count(self, loop: int, condition: Expression) -> int | None:
        body = self._called(loop, "body")
        scope = _state_scope()
        following: dict[Path, Expression] = {}
        waiting = list(condition.reads)
        while waiting:
            path = waiting.pop()
            if path not in following:
                following[path] = self._root(body, scope, path)
                waiting.extend(following[path].reads)
        around = self._scope_around(self.computation[loop])
        start = {path: self._operand(loop, 0, path, around) for path in following}
        known = {path: value.value for path, value in start.items() if value.value is not None}
        return count_trips(condition, following, known) if len(known) == len(start) else None

    def _called(self, row: int, role: str) -> int:
        hlo = self.hlo
        for edge in range(hlo.called_start[row], hlo.called_start[row + 1]):
            if CALL_ROLES[hlo.called_role[edge]] == role and hlo.called[edge] >= 0:
                return int(hlo.called[edge])
        raise _Unknown

    def _root(self, computation: int, scope: _Scope, path: Path = ()) -> Expression:
        root = int(self.hlo.computation_root[computation])
        if root < 0:
            raise _Unknown
        return self._value(root, path, scope)

    def _operand(self, row: int, number: int, path: Path, scope: _Scope) -> Expression:
        edge = self.operand_start[row] + number
        if edge >= self.operand_start[row + 1] or self.operand[edge] < 0:
            raise _Unknown
        element = self.element[edge]
        return self._value(self.operand[edge], path if element < 0 else (element, *path), scope)

    def _value(self, row: int, path: Path, scope: _Scope) -> Expression:
        key = (row, path)
        if key not in scope.seen:
            if self.depth > _DEEPEST:
                raise _Unknown
            self.depth += 1
            try:
                scope.seen[key] = self._compute(row, path, scope)
            finally:
                self.depth -= 1
        return scope.seen[key]

    def _compute(self, row: int, path: Path, scope: _Scope) -> Expression:
        opcode = self.hlo.opcodes[self.opcode[row]]
        if opcode == "parameter":
            return scope.parameter(self.parameter_number[row], path)
        if opcode == "tuple" and path:
            return self._operand(row, path[0], path[1:], scope)
        if opcode == "get-tuple-element":
            return self._operand(row, 0, (self._number(row, _INDEX), *path), scope)
        if opcode in _PASSES_ON:
            return self._operand(row, 0, path[1:] if opcode == "copy-start" else path, scope)
        if opcode in _ENTERED:
            return self._enter(row, path, scope)
        if opcode == "while":
            return self._through_loop(row, path, scope)
        if path:
            raise _Unknown
        return self._scalar(row, opcode, scope)

    def _scalar(self, row: int, opcode: str, scope: _Scope) -> Expression:
        if opcode == "constant":
            value = _literal(self.hlo.literal[row].as_py())
            if value is None:
                raise _Unknown
            return constant(value)
        name = opcode
        if opcode == "compare":
            name = self._text(row, _DIRECTION)
        elif opcode == "not" and self.hlo.shapes[self.hlo.shape[row]].dtype == "pred":
            name = "NOT"
        count = self.operand_start[row + 1] - self.operand_start[row]
        found = operation(name, [self._operand(row, number, (), scope) for number in range(count)])
        if found is None:
            raise _Unknown
        return found

    def _enter(self, row: int, path: Path, scope: _Scope) -> Expression:
        """What the computation that a fusion or call runs makes of its operands."""
        target = self._called(row, "calls" if self._calls(row, "calls") else "to_apply")
        inner = _Scope(lambda number, rest: self._operand(row, number, rest, scope))
        return self._root(target, inner, path)

    def _through_loop(self, row: int, path: Path, scope: _Scope) -> Expression:
        """An element of a loop's result: what went in, when the body hands it on as it is."""
        after = self._root(self._called(row, "body"), _state_scope(), path)
        if after != Affine(path):
            raise _Unknown
        return self._operand(row, 0, path, scope)

    def _scope_around(self, computation: int) -> _Scope:
        """The scope of a computation in its place in the program: its parameters are what its only caller gives."""
        if computation not in self.outside:
            self.outside[computation] = _Scope(self._outside_parameter(computation))
        return self.outside[computation]

    def _outside_parameter(self, computation: int) -> Callable[[int, Path], Expression]:
        callers = self.calling[self.hlo.called == computation]

        def parameter(number: int, path: Path) -> Expression:
            if len(callers) != 1:
                raise _Unknown
            row = int(callers[0])
            around = self._scope_around(int(self.computation[row]))
            opcode = self.hlo.opcodes[self.opcode[row]]
            if opcode == "while":
                return self._through_loop(row, path, around)
            if opcode not in _ENTERED:
                raise _Unknown
            return self._operand(row, number, path, around)

        return parameter

    def _calls(self, row: int, role: str) -> bool:
        edges = slice(self.hlo.called_start[row], self.hlo.called_start[row + 1])
        return bool((self.hlo.called_role[edges] == CALL_ROLES.index(role)).any())

    def _text(self, row: int, pattern: re.Pattern[str]) -> str:
        match = pattern.search(self.hlo.raw_attributes[row].as_py() or "")
        if not match:
            raise _Unknown
        return match[1]

    def _number(self, row: int, pattern: re.Pattern[str]) -> int:
        return int(self._text(row, pattern))


def _state_scope() -> _Scope:
    return _Scope(lambda _, path: Affine(path))


def _literal(text: str | None) -> int | None:
    if text in ("true", "false"):
        return int(text == "true")
    try:
        return int(text or "")
    except ValueError:
        return None


def count_trips(condition: Expression, following: dict[Path, Expression], start: dict[Path, int]) -> int | None:
    """How often a loop runs that goes on while `condition` holds; None when it runs longer than is worth following.

    Args:
        condition: over the state, true when not 0.
        following: for each element that matters what it is one trip later, over the state before.
        start: what each is at the beginning.
    """
    steady = _steady(condition, following, start)
    if steady is not None:
        return _steps(*steady)
    state = dict(start)
    for trips in range(_MOST_STEPS):
        if not evaluate(condition, state):
            return trips
        before, state = state, {path: evaluate(value, state) for path, value in following.items()}
        if state == before:
            return None
    return None


def _steady(
    condition: Expression, following: dict[Path, Expression], start: dict[Path, int]
) -> tuple[str, int, int, int] | None:
    """Direction, first value, bound and step of a condition that compares an element growing by a constant with one."""
    if not isinstance(condition, Operation) or condition.name not in _MIRRORED:
        return None
    left, right = (affine(_hold_fixed(part, following, start)) for part in condition.operands)
    name = condition.name
    if left is None or right is None:
        return None
    if left.path is None:
        left, right, name = right, left, _MIRRORED[name]
    if left.path is None or right.path is not None:
        return None
    step = affine(following[left.path])
    if step is None or step.path != left.path:
        return None
    return name, start[left.path] + left.offset, right.offset, step.offset


def _hold_fixed(value: Expression, following: dict[Path, Expression], start: dict[Path, int]) -> Expression:
    """An element that the body does not change is the constant that it began as."""
    found = affine(value)
    if found is not None and found.path is not None and following[found.path] == Affine(found.path):
        return constant(start[found.path] + found.offset)
    return value


_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}


def _steps(name: str, first: int, bound: int, step: int) -> int | None:
    """How often `first`, growing by `step`, stays on its side of `bound`; None when it does for ever."""
    if name == "NE":
        distance = bound - first
        return distance // step if step and distance % step == 0 and distance // step >= 0 else None
    if name in ("GT", "GE"):
        first, bound, step = -first, -bound, -step
    if name in ("LE", "GE"):
        bound += 1
    if first >= bound:
        return 0
    return -((first - bound) // step) if step > 0 else None
