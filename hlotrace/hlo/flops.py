"""Floating-point operations of one execution of each instruction, by the conventions of XLA's HloCostAnalysis.

An elementwise operation takes one a result element, whatever its type; transcendental functions are counted apart by
XLA and take none here. A reduction applies its reducer once for each element that disappears. A fusion takes what its
members take, an async start what it starts. A custom call takes what its cost estimate states; without one it is not
known, as are fusions around it. Loops, conditionals and calls take none themselves: the instructions of the
computations that they enter stand for them. So a module's total is the sum over its launches (`is_launch`) of `flops`
times `execution_count`, of a conditional's branches the one that takes most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo import _graph_kernels
from hlotrace.hlo.attributes import WindowDimension, numbers, window, window_elements
from hlotrace.hlo.call_graph import ASYNC, FUSION, REDUCER
from hlotrace.hlo.custom_calls import stated_flops
from hlotrace.hlo.module import CALL_ROLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.call_graph import CallGraph
    from hlotrace.hlo.contractions import Contractions
    from hlotrace.hlo.custom_calls import Targets
    from hlotrace.hlo.module import HloModule
    from hlotrace.hlo.shape import Shape
    from hlotrace.hlo.shape_columns import ShapeColumns

TRANSCENDENTAL = frozenset(
    {
        "acos", "acosh", "asin", "asinh", "atan2", "atanh", "cbrt", "cosh", "cosine", "erf", "exponential",
        "exponential-minus-one", "log", "log-plus-one", "logistic", "power", "rsqrt", "sine", "sinh", "sqrt", "tan",
        "tanh", "rng", "rng-bit-generator",
    }
)  # fmt: skip
"""Opcodes that HloCostAnalysis counts as transcendentals, not as flops."""

ELEMENTWISE = frozenset(
    {
        "abs", "add", "and", "bitcast-convert", "ceil", "clamp", "compare", "complex", "convert", "count-leading-zeros",
        "divide", "floor", "imag", "is-finite", "maximum", "minimum", "multiply", "negate", "not", "or",
        "popcnt", "real", "reduce-precision", "remainder", "round-nearest-afz", "round-nearest-even", "select",
        "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "stochastic-convert", "subtract", "xor",
    }
)  # fmt: skip
"""Opcodes that take one operation a result element."""

_PER_RESULT_ELEMENT = ELEMENTWISE | {"all-reduce", "all-reduce-start"}
_FFT_FACTOR = 2 * 4
"""A fused multiply-add is two operations, and a complex multiplication four of them."""


def flops(
    hlo: HloModule,
    shapes: ShapeColumns,
    operand_shape: NDArray[np.int32],
    products: Contractions,
    targets: Targets,
    graph: CallGraph,
) -> NDArray[np.int64]:
    """Operations of one execution of each instruction, `products` being its dots; -1 where they cannot be told."""
    counted = hlo.has_opcode(*_PER_RESULT_ELEMENT)
    own = np.where(counted, shapes.elements[hlo.shape], 0)
    own[products.rows] = products.flops
    own[graph.caller[graph.role == ASYNC]] = 0
    applications = _whole(graph).astype(np.int64)
    module = _Module(hlo, shapes, operand_shape)
    _measure_special(module, own, applications)
    _measure_custom_calls(module, targets, own)
    return with_members(hlo, graph, own, applications)


def _whole(graph: CallGraph) -> NDArray[np.bool_]:
    """Which calls apply what they call as a whole, once."""
    whole: NDArray[np.bool_] = (graph.role == FUSION) | (graph.role == ASYNC)
    return whole


def with_members(
    hlo: HloModule, graph: CallGraph, own: NDArray[np.int64], applications: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """`own`, one a row, with what fusions and async starts apply added to them; -1 where it cannot be told.

    Args:
        applications: for each call how often one execution applies what it calls; once for None.
    """
    whole = _whole(graph)
    # What a custom call calls (a comparator) is no work beside its own.
    custom = hlo.has_opcode("custom-call")[graph.caller]
    entered = ~whole & ~custom & (graph.role != REDUCER)
    _graph_kernels.sum_up(
        graph.order,
        hlo.computation_start,
        hlo.called_start,
        hlo.called,
        whole.astype(np.int64) if applications is None else applications,
        entered.view(np.uint8),
        own,
        np.zeros(hlo.computation_count, np.int64),
    )
    return own


@dataclass(frozen=True)
class _Module:
    """A module with the shapes of its operands; answers what the special opcodes ask."""

    hlo: HloModule
    shapes: ShapeColumns
    operand_shape: NDArray[np.int32]

    def operand(self, row: int, number: int) -> Shape | None:
        edge = int(self.hlo.operand_start[row]) + number
        if not 0 <= edge < self.hlo.operand_start[row + 1] or self.operand_shape[edge] < 0:
            return None
        return self.shapes.shapes[self.operand_shape[edge]]

    def result(self, row: int) -> Shape:
        """The shape of its result, the first element of a tuple."""
        shape = self.hlo.shapes[self.hlo.shape[row]]
        return shape.elements[0] if shape.elements else shape

    def attributes(self, row: int) -> str:
        return self.hlo.raw_attributes[row].as_py() or ""


def _measure_special(module: _Module, own: NDArray[np.int64], applications: NDArray[np.int64]) -> None:
    """Fill in, for opcodes with a rule of their own, what they take or how often they apply what they call."""
    hlo = module.hlo
    for row in np.flatnonzero(hlo.has_opcode(*_RULES)).tolist():
        opcode = hlo.opcodes[hlo.opcode[row]]
        count = _RULES[opcode](module, row)
        if opcode in _DIRECT:
            own[row] = count
            continue
        for edge in range(hlo.called_start[row], hlo.called_start[row + 1]):
            applications[edge] = count
            if CALL_ROLES[hlo.called_role[edge]] == "select":
                applications[edge] = count * (window_elements(module.attributes(row)) - 1)


def _measure_custom_calls(module: _Module, targets: Targets, own: NDArray[np.int64]) -> None:
    hlo = module.hlo
    rows = np.flatnonzero(hlo.has_opcode("custom-call"))
    if not len(rows):
        return
    own[rows] = stated_flops(hlo, targets, rows)
    for row in np.flatnonzero(targets.calls("TopK") & (own < 0)).tolist():
        own[row] = _selected(module, row)


def _selected(module: _Module, row: int) -> int:
    """Each element is held against each of the k that are kept."""
    kept = module.result(row).dims
    elements = _size(module.operand(row, 0))
    return elements * kept[-1] if kept and elements >= 0 and kept[-1] >= 0 else -1


def _size(shape: Shape | None) -> int:
    return -1 if shape is None or -1 in shape.dims else prod(shape.dims)


def _reductions(module: _Module, row: int) -> int:
    before, after = _size(module.operand(row, 0)), _size(module.result(row))
    return max(before - after, 0) if before >= 0 and after >= 0 else -1


def _window_reductions(module: _Module, row: int) -> int:
    result, attributes = module.result(row), module.attributes(row)
    wide = [at for at, dimension in enumerate(window(attributes)) if dimension.size != 1]
    if (
        len(wide) == 1
        and wide[0] < len(result.dims)
        and _covers_everywhere(window(attributes)[wide[0]], result.dims[wide[0]])
    ):
        # A reduction that is broadcast again; XLA counts it so, and adds where one would multiply.
        length = result.dims[wide[0]]
        return length - 1 + _size(result) // length
    return _size(result) * (window_elements(attributes) - 1)


def _covers_everywhere(dimension: WindowDimension, length: int) -> bool:
    """Whether at each of `length` positions the window reaches from the first to the last element."""
    return dimension.size == 2 * length - 1 and dimension.low == dimension.high == length - 1 > 0


def _selections(module: _Module, row: int) -> int:
    return _size(module.operand(row, 1))


def _updates(module: _Module, row: int) -> int:
    """Elements of the updates of a scatter: operands are n arrays, the indices, n updates."""
    operands = int(module.hlo.operand_start[row + 1] - module.hlo.operand_start[row])
    return _size(module.operand(row, operands // 2 + 1))


def _steps(module: _Module, row: int) -> int:
    shape, along = module.operand(row, 0), numbers(module.attributes(row), "dimensions")
    return shape.dims[along[0]] if shape and along and along[0] < len(shape.dims) else -1


def _comparisons(module: _Module, row: int) -> int:
    elements = _size(module.operand(row, 0))
    return elements * (elements - 1).bit_length() if elements > 1 else min(elements, 0)


def _transform(module: _Module, row: int) -> int:
    lengths = numbers(module.attributes(row), "fft_length")
    return _FFT_FACTOR * prod(length.bit_length() - 1 for length in lengths) * _size(module.operand(row, 0))


def _cholesky(module: _Module, row: int) -> int:
    shape = module.operand(row, 0)
    return shape.dims[-1] * _size(shape) // 3 if shape and shape.dims else -1


def _triangular_solve(module: _Module, row: int) -> int:
    shape = module.operand(row, 0)
    return 2 * shape.dims[-1] * _size(module.operand(row, 1)) if shape and shape.dims else -1


_DIRECT: dict[str, Callable[[_Module, int], int]] = {
    "sort": _comparisons,
    "fft": _transform,
    "cholesky": _cholesky,
    "triangular-solve": _triangular_solve,
}
"""What an opcode takes by itself."""

_RULES: dict[str, Callable[[_Module, int], int]] = {
    **_DIRECT,
    "reduce": _reductions,
    "reduce-window": _window_reductions,
    "select-and-scatter": _selections,
    "scatter": _updates,
    "scan": _steps,
    "map": lambda module, row: _size(module.result(row)),
}
"""Of opcodes that are not in `_DIRECT`: how often they apply what they call."""
