"""What kind of work each instruction is.

Most opcodes are of one kind. A fusion is of the kind of the heaviest thing in it, nested fusions included: a matrix
product or convolution before a collective (a product that carries a collective along is a product), then a sort, a
reduction, and elementwise work on arrays, which makes it a loop fusion. Copies, slices, transposes, gathers, fills and
the scalar arithmetic of their indices make it data movement. An async start is of the kind of what it starts, moving
data being an async copy, and the other half of its pair is of the same kind. What touches host memory from a device
is `host`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo import _graph_kernels
from hlotrace.hlo.call_graph import REDUCER
from hlotrace.hlo.flops import ELEMENTWISE, TRANSCENDENTAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from hlotrace.hlo.call_graph import CallGraph
    from hlotrace.hlo.contractions import Contractions
    from hlotrace.hlo.custom_calls import Targets
    from hlotrace.hlo.module import HloModule
    from hlotrace.hlo.shape_columns import ShapeColumns

CATEGORIES = (
    "matmul",
    "convolution",
    "reduction",
    "loop fusion",
    "elementwise",
    "data movement",
    "async copy",
    "collective",
    "custom call",
    "host",
    "sort",
    "control",
    "parameter",
    "constant",
    "other",
)
"""Every value of the column `category`."""

_NUMBER = {name: number for number, name in enumerate(CATEGORIES)}
(
    _MATMUL,
    _CONVOLUTION,
    _REDUCTION,
    _LOOP_FUSION,
    _ELEMENTWISE,
    _DATA_MOVEMENT,
    _ASYNC_COPY,
    _COLLECTIVE,
    _CUSTOM_CALL,
    _HOST,
    _SORT,
    _CONTROL,
    _PARAMETER,
    _CONSTANT,
    _OTHER,
) = range(len(CATEGORIES))

_HEAVIEST_FIRST = (_CONVOLUTION, _MATMUL, _HOST, _COLLECTIVE, _CUSTOM_CALL, _SORT, _REDUCTION, _OTHER, _ELEMENTWISE)
_SCALAR = len(CATEGORIES)
"""The bit of elementwise work on scalars alone."""

COLLECTIVES = frozenset(
    {
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "ragged-all-to-all",
        "recv",
        "reduce-scatter",
        "send",
    }
)

_OPCODES: dict[str, Iterable[str]] = {
    "matmul": ("dot", "ragged-dot", "scaled-dot"),
    "convolution": ("convolution",),
    "reduction": ("batch-norm-grad", "batch-norm-training", "reduce", "reduce-window", "scan", "select-and-scatter"),
    "elementwise": ELEMENTWISE | TRANSCENDENTAL | {"map", "rng-get-and-update-state", "batch-norm-inference"},
    "data movement": (
        "broadcast", "concatenate", "copy", "dynamic-reshape", "dynamic-slice", "dynamic-update-slice", "gather",
        "iota", "pad", "reshape", "reverse", "scatter", "slice", "transpose",
    ),
    "async copy": ("copy-start", "copy-done"),
    "collective": [name + half for name in COLLECTIVES for half in ("", "-start", "-done")],
    "custom call": ("custom-call",),
    "host": ("infeed", "outfeed"),
    "sort": ("sort", "topk"),
    "control": (
        "add-dependency", "after-all", "bitcast", "call", "conditional", "create-token", "domain", "get-dimension-size",
        "get-tuple-element", "opt-barrier", "partition-id", "replica-id", "set-dimension-size", "trace", "tuple",
        "while",
    ),
    "parameter": ("parameter",),
    "constant": ("constant",),
}  # fmt: skip
_OF_OPCODE = {opcode: _NUMBER[name] for name, opcodes in _OPCODES.items() for opcode in opcodes}

_HOST_SPACE = 5
_FUSION, _ASYNC_START, _ASYNC_REST = -1, -2, -3

_TARGETS = (
    ("AllocateBuffer", _DATA_MOVEMENT),
    ("AssumeGatherIndicesInBound", _CONTROL),
    ("AsyncCollective", _COLLECTIVE),
    ("ConcatBitcast", _DATA_MOVEMENT),
    ("MoveTo", _HOST),
    ("Noop", _CONTROL),
    ("PrepareAsyncCall", _CONTROL),
    ("SPMD", _CONTROL),
    ("Sharding", _CONTROL),
    ("annotate_device_placement", _HOST),
    ("__cublas", _MATMUL),
    ("__onednn$matmul", _MATMUL),
    ("__triton_gemm", _MATMUL),
    ("__cudnn$conv", _CONVOLUTION),
    ("__onednn$conv", _CONVOLUTION),
)
"""Custom call targets, by how they begin, that say what kind of work they are."""


def categories(
    hlo: HloModule, shapes: ShapeColumns, products: Contractions, targets: Targets, graph: CallGraph
) -> NDArray[np.int32]:
    """The category of each instruction, into CATEGORIES; `products` are the dots and convolutions."""
    category = hlo.by_opcode(_of_opcode, np.int32)
    category[products.rows[products.is_matmul]] = _MATMUL
    by_target = [next((to for start, to in _TARGETS if name.startswith(start)), _CUSTOM_CALL) for name in targets.names]
    category = np.where(targets.code >= 0, np.array([*by_target, _OTHER], np.int32)[targets.code], category)
    category[_in_host_memory(shapes)[hlo.shape] & ((category == _DATA_MOVEMENT) | (category == _ASYNC_COPY))] = _HOST
    category[_host_transfers(hlo)] = _HOST
    _resolve(hlo, graph, shapes.elements[hlo.shape] == 1, category)
    return category


def _resolve(hlo: HloModule, graph: CallGraph, is_scalar: NDArray[np.bool_], category: NDArray[np.int32]) -> None:
    """Fill in the categories of fusions and async operations by what is in them."""
    bits = np.where(category >= 0, 1 << np.maximum(category, 0).astype(np.int64), 0)
    bits[(category == _ELEMENTWISE) & is_scalar] = 1 << _SCALAR
    inside = np.zeros(hlo.instruction_count, np.int64)
    _graph_kernels.contents(
        graph.order,
        hlo.computation_start,
        hlo.called_start,
        np.where(graph.role == REDUCER, np.int32(-1), hlo.called),
        bits,
        np.zeros(hlo.computation_count, np.int64),
        inside,
    )
    rows = np.flatnonzero((category == _FUSION) | (category == _ASYNC_START))
    found = np.where(inside[rows] & (1 << _SCALAR), _LOOP_FUSION, _DATA_MOVEMENT)
    found[inside[rows] & (1 << _DATA_MOVEMENT) != 0] = _DATA_MOVEMENT
    for heavy in reversed(_HEAVIEST_FIRST):
        found[inside[rows] & (1 << heavy) != 0] = _LOOP_FUSION if heavy == _ELEMENTWISE else heavy
    copies = (found == _DATA_MOVEMENT) & (category[rows] == _ASYNC_START)
    category[rows] = np.where(copies, _ASYNC_COPY, found)
    for row in np.flatnonzero(category == _ASYNC_REST).tolist():
        first, last = hlo.operand_start[row : row + 2].tolist()
        start = hlo.operand[first] if first < last else -1
        category[row] = category[start] if start >= 0 and category[start] >= 0 else _OTHER


def _of_opcode(opcode: str) -> int:
    known = _OF_OPCODE.get(opcode)
    if known is not None:
        return known
    if opcode == "fusion":
        return _FUSION
    if opcode.endswith("-start"):
        return _ASYNC_START
    return _ASYNC_REST if opcode.endswith(("-done", "-update")) else _OTHER


def _in_host_memory(shapes: ShapeColumns) -> NDArray[np.bool_]:
    """Which shapes are in host memory, or have an element that is."""
    on_host = shapes.space == _HOST_SPACE
    of = np.repeat(np.arange(len(on_host)), np.diff(shapes.child_start))
    on_host[of[on_host[shapes.child]]] = True
    return on_host


def _host_transfers(hlo: HloModule) -> NDArray[np.int64]:
    """The rows of sends and receives between a device and its host."""
    rows = np.flatnonzero(hlo.by_opcode(lambda opcode: opcode.startswith(("send", "recv")), bool))
    texts = hlo.raw_attributes.take(rows).to_pylist()
    return rows[[("is_host_transfer=true" in (text or "")) for text in texts]] if len(rows) else rows


def category_of_opcode(opcode: str) -> str | None:
    """The category of what is known by its opcode alone; None for fusions, async operations and unknown ones."""
    number = _OF_OPCODE.get(opcode)
    return None if number is None else CATEGORIES[number]
