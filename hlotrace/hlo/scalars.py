"""Integer expressions over the scalars of a loop's state: constants, `element + offset`, and operations on those."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Path = tuple[int, ...]
"""Where an element stands in the state's tuple: `(3,)`, or `(3, 0)` when tuples nest."""


@dataclass(slots=True)
class Affine:
    """The state's element at `path` plus `offset`; without a path the constant `offset`."""

    path: Path | None
    offset: int = 0

    @property
    def reads(self) -> frozenset[Path]:
        """The elements it depends on."""
        return frozenset() if self.path is None else frozenset({self.path})

    @property
    def value(self) -> int | None:
        """Its value where it is a constant."""
        return self.offset if self.path is None else None


@dataclass(slots=True)
class Operation:
    """A named operation on expressions."""

    name: str
    operands: tuple[Expression, ...]
    reads: frozenset[Path]

    @property
    def value(self) -> None:
        """It has no value that is known beforehand."""


Expression = Affine | Operation


def _quotient(a: int, b: int) -> int:
    """Division as XLA has it: towards zero, -1 for a divisor of 0."""
    return -1 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


_OPERATIONS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": _quotient,
    "remainder": lambda a, b: a if b == 0 else a - b * _quotient(a, b),
    "minimum": min,
    "maximum": max,
    "clamp": lambda low, value, high: min(max(low, value), high),
    "negate": lambda a: -a,
    "NOT": lambda a: int(not a),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "select": lambda which, a, b: a if which else b,
    "LT": lambda a, b: int(a < b),
    "LE": lambda a, b: int(a <= b),
    "GT": lambda a, b: int(a > b),
    "GE": lambda a, b: int(a >= b),
    "EQ": lambda a, b: int(a == b),
    "NE": lambda a, b: int(a != b),
}


def constant(value: int) -> Affine:
    """The expression of a number."""
    return Affine(None, value)


def affine(expression: Expression) -> Affine | None:
    """The expression where it is an element plus a constant, else None."""
    return expression if isinstance(expression, Affine) else None


def operation(name: str, operands: list[Expression]) -> Expression | None:
    """The operation `name` (an opcode, or a direction for a comparison), simplified; None when it is not known."""
    function = _OPERATIONS.get(name)
    if function is None or not operands:
        return None
    values = [part.value for part in operands]
    if None not in values:
        return constant(function(*values))
    if name in ("add", "subtract"):
        left, right = operands
        if isinstance(left, Affine) and isinstance(right, Affine):
            if right.path is None:
                return Affine(left.path, function(left.offset, right.offset))
            if left.path is None and name == "add":
                return Affine(right.path, left.offset + right.offset)
    reads = frozenset().union(*(part.reads for part in operands))
    return Operation(name, tuple(operands), reads)


def evaluate(expression: Expression, state: Mapping[Path, int]) -> int:
    """The value of an expression for a state that has all the elements it reads."""
    return _evaluate(expression, state, {})


def _evaluate(expression: Expression, state: Mapping[Path, int], done: dict[int, int]) -> int:
    if isinstance(expression, Affine):
        return expression.offset + (0 if expression.path is None else state[expression.path])
    value = done.get(id(expression))
    if value is None:
        operands = [_evaluate(part, state, done) for part in expression.operands]
        value = done[id(expression)] = _OPERATIONS[expression.name](*operands)
    return value
