"""Shapes that a text leaves out, inferred as XLA does from operands, attributes and the computations called."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hlotrace.hlo.attributes import WindowDimension, dimension_labels, number, numbers, window
from hlotrace.hlo.shape import Layout, Shape
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_draft import Owned

if TYPE_CHECKING:
    from collections.abc import Callable

    from hlotrace.parsers._hlo_draft import Draft


class Known(NamedTuple):
    """What tells an instruction's shape: shapes of operands, attributes, results of what it calls, what is written."""

    operands: list[Shape]
    attributes: str
    results: list[Shape]
    written: Shape

    def dims(self, name: str) -> tuple[int, ...]:
        """The numbers of an attribute such as `dimensions={0,1}`."""
        return numbers(self.attributes, name)


def array(dtype: str, dims: tuple[int, ...], layout: Layout | None = None) -> Shape:
    """An array; without a layout dimensions are major to minor."""
    braces = f"{{{layout.text}}}" if layout else ""
    return Shape(f"{dtype}[{','.join(map(str, dims))}]{braces}", dtype, dims, (False,) * len(dims), layout)


def tuple_of(shapes: list[Shape]) -> Shape:
    """A tuple of these shapes."""
    return Shape(f"({', '.join(shape.text for shape in shapes)})", "tuple", elements=tuple(shapes))


def _with_dtype(shape: Shape, dtype: str) -> Shape:
    return array(dtype, shape.dims, shape.layout)


def _first(known: Known) -> Shape:
    return known.operands[0]


def _second(known: Known) -> Shape:
    return known.operands[1]


def _real_part(known: Known) -> Shape:
    dtype = {"c64": "f32", "c128": "f64"}.get(_first(known).dtype)
    return _with_dtype(_first(known), dtype) if dtype else _first(known)


def _tuple_element(known: Known) -> Shape:
    return _first(known).elements[number(known.attributes, "index", 0)]


def _transpose(known: Known) -> Shape:
    shape, order = _first(known), known.dims("dimensions")
    layout = shape.layout or Layout(tuple(reversed(range(len(shape.dims)))))
    minor_to_major = tuple(order.index(dimension) for dimension in layout.minor_to_major)
    text = ",".join(map(str, minor_to_major)) + layout.text.partition(":")[1] + layout.text.partition(":")[2]
    moved = Layout(
        *(minor_to_major, layout.tiles, layout.element_bits, layout.memory_space, layout.tail_alignment, text)
    )
    return array(shape.dtype, tuple(shape.dims[dimension] for dimension in order), moved)


def _dot(known: Known) -> Shape:
    left, right = known.operands[0], known.operands[-1 if len(known.operands) == 2 else len(known.operands) // 2]
    batch = known.dims("lhs_batch_dims")
    left_used = {*batch, *known.dims("lhs_contracting_dims")}
    right_used = {*known.dims("rhs_batch_dims"), *known.dims("rhs_contracting_dims")}
    dims = (
        *(left.dims[dimension] for dimension in batch),
        *(size for dimension, size in enumerate(left.dims) if dimension not in left_used),
        *(size for dimension, size in enumerate(right.dims) if dimension not in right_used),
    )
    return array(left.dtype, dims)


def _windowed(size: int, of: WindowDimension) -> int:
    """How many places a window has along a dimension."""
    base = (size - 1) * of.lhs_dilate + 1 if size else 0
    span = (of.size - 1) * of.rhs_dilate + 1
    return max((base + of.low + of.high - span) // of.stride + 1, 0)


def _convolution(known: Known) -> Shape:
    left, right = known.operands
    labels = dimension_labels(known.attributes)
    if labels is None:
        raise LookupError("dim_labels")
    dims = [0] * len(left.dims)
    dims[labels.output_batch] = left.dims[labels.lhs_batch] // number(known.attributes, "batch_group_count", 1)
    dims[labels.output_feature] = right.dims[labels.rhs_output]
    for at, of in enumerate(window(known.attributes)):
        dims[labels.output_spatial[at]] = _windowed(left.dims[labels.lhs_spatial[at]], of)
    return array(left.dtype, tuple(dims))


def _reduce_window(known: Known) -> Shape:
    dims = tuple(map(_windowed, _first(known).dims, window(known.attributes)))
    initial = known.operands[len(known.operands) // 2 :]
    return array(initial[0].dtype, dims) if len(initial) == 1 else tuple_of([array(of.dtype, dims) for of in initial])


def _reduce(known: Known) -> Shape:
    reduced = known.dims("dimensions")
    inputs, result = known.operands[: len(known.operands) // 2], known.results[0]
    dtypes = [element.dtype for element in result.elements] if result.is_tuple else [result.dtype]
    shapes = [
        array(dtype, tuple(size for at, size in enumerate(shape.dims) if at not in reduced))
        for shape, dtype in zip(inputs, dtypes, strict=True)
    ]
    return tuple_of(shapes) if result.is_tuple else shapes[0]


def _pad(known: Known) -> Shape:
    text = known.attributes.partition("padding=")[2].partition(",")[0]
    dims = []
    for size, part in zip(_first(known).dims, text.split("x"), strict=False):
        low, high, *interior = map(int, part.strip().split("_"))
        dims.append(size + low + high + max(size - 1, 0) * (interior[0] if interior else 0))
    return array(_first(known).dtype, tuple(dims))


def _concatenate(known: Known) -> Shape:
    at = known.dims("dimensions")[0]
    dims = list(_first(known).dims)
    dims[at] = sum(shape.dims[at] for shape in known.operands)
    return array(_first(known).dtype, tuple(dims))


def _scan(known: Known) -> Shape:
    at, carries = known.dims("dimensions")[0], number(known.attributes, "num_carries", 0)
    size, result = _first(known).dims[at], known.results[0]
    results = list(result.elements) if result.is_tuple else [result]
    stacked = [
        array(shape.dtype, (*shape.dims[:at], size, *shape.dims[at:])) if position < len(results) - carries else shape
        for position, shape in enumerate(results)
    ]
    return tuple_of(stacked) if result.is_tuple else stacked[0]


ONE_OPERAND = (
    "abs", "acos", "acosh", "asin", "asinh", "atanh", "cbrt", "ceil", "cholesky", "copy", "cosh", "cosine",
    "count-leading-zeros", "domain", "erf", "exponential", "exponential-minus-one", "floor", "imag", "is-finite",
    "log", "log-plus-one", "logistic", "negate", "not", "opt-barrier", "popcnt", "real", "reverse",
    "round-nearest-afz", "round-nearest-even", "rsqrt", "sign", "sine", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
TWO_OPERANDS = (
    "add", "and", "atan2", "compare", "complex", "divide", "dot", "maximum", "minimum", "multiply", "or", "power",
    "remainder", "set-dimension-size", "shift-left", "shift-right-arithmetic", "shift-right-logical",
    "stochastic-convert", "subtract", "xor",
)  # fmt: skip

_RULES: dict[str, Callable[[Known], Shape]] = {
    # Most give what their first operand is; those that do not follow below, and replace these.
    **dict.fromkeys((*ONE_OPERAND, *TWO_OPERANDS, "select-and-scatter", "while"), _first),
    **dict.fromkeys(("clamp", "select", "triangular-solve"), _second),
    **dict.fromkeys(("compare", "is-finite"), lambda known: _with_dtype(_first(known), "pred")),
    **dict.fromkeys(("abs", "real", "imag"), _real_part),
    **dict.fromkeys(("call", "conditional"), lambda known: known.results[0]),
    **dict.fromkeys(("dot", "scaled-dot"), _dot),
    **dict.fromkeys(("after-all",), lambda _: Shape("token[]", "token")),
    **dict.fromkeys(("replica-id", "partition-id"), lambda _: array("u32", ())),
    "complex": lambda known: _with_dtype(_first(known), "c64" if _first(known).dtype == "f32" else "c128"),
    "tuple": lambda known: tuple_of(known.operands),
    "get-tuple-element": _tuple_element,
    "get-dimension-size": lambda _: array("s32", ()),
    "transpose": _transpose,
    "convolution": _convolution,
    "reduce-window": _reduce_window,
    "reduce": _reduce,
    "pad": _pad,
    "concatenate": _concatenate,
    "scan": _scan,
    "sort": lambda known: _first(known) if len(known.operands) == 1 else tuple_of(known.operands),
    "map": lambda known: array(known.results[0].dtype, _first(known).dims),
}


class Inference:
    """Infers the shapes of a draft's instructions, for which those before them must be known."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._operands, self._pieces, self._calls = map(Owned, (draft.operands, draft.pieces, draft.calls))

    def shape(self, row: int, rule: Callable[[Known], Shape] | None = None) -> Shape | None:
        """The shape of a row by a rule, that of its opcode where none is given; None where it cannot be told."""
        rule = rule or _RULES.get(self.draft.opcodes[self.draft.rows[row, a.OPCODE]])
        try:
            return rule(self._known(row)) if rule else None
        except (LookupError, ValueError):
            return None

    def _known(self, row: int) -> Known:
        draft = self.draft
        operands = draft.operands[self._operands(row)][:, [a.TARGET, a.ELEMENT]]
        called = draft.calls[self._calls(row), a.STOP]
        return Known(
            [self._operand(*entry) for entry in operands.tolist()],
            ", ".join(draft.string(start, end) for _, start, end in draft.pieces[self._pieces(row)].tolist()),
            [self._shape(root) for root in draft.computations[called, a.C_ROOT].tolist()],
            draft.shapes[draft.rows[row, a.SHAPE]] if draft.rows[row, a.SHAPE] >= 0 else Shape("", "opaque"),
        )

    def _operand(self, row: int, element: int) -> Shape:
        shape = self._shape(row)
        return shape.elements[element] if element >= 0 else shape

    def _shape(self, row: int) -> Shape:
        number = int(self.draft.rows[row, a.SHAPE]) if row >= 0 else -1
        if number < 0:
            raise LookupError("the shape it depends on is not known either")
        return self.draft.shapes[number]
