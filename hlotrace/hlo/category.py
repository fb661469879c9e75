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
from numba import njit

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
    "reduction": ("reduce", "reduce-window", "scan", "select-and-scatter"),
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
    ("AsyncCollective", _COLLECTIVE),
    ("ConcatBitcast", _DATA_MOVEMENT),
    ("MoveTo", _HOST),
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
    category = np.array([_of_opcode(opcode) for opcode in hlo.opcodes], np.int32)[hlo.opcode]
    category[products.rows[products.is_matmul]] = _MATMUL
    by_target = [next((to for start, to in _TARGETS if name.startswith(start)), _CUSTOM_CALL) for name in targets.names]
    category = np.where(targets.code >= 0, np.array([*by_target, _OTHER], np.int32)[targets.code], category)
    category[_in_host_memory(shapes)[hlo.shape] & ((category == _DATA_MOVEMENT) | (category == _ASYNC_COPY))] = _HOST
    category[_host_transfers(hlo)] = _HOST
    result: NDArray[np.int32] = _by_content(
        graph.order,
        hlo.computation_start,
        hlo.called_start,
        np.where(graph.role == REDUCER, np.int32(-1), hlo.called),
        category,
        shapes.elements[hlo.shape] == 1,
        hlo.operand_start,
        hlo.operand,
        np.array(_HEAVIEST_FIRST, np.int32),
    )
    return result


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
    transfers = np.array([opcode.startswith(("send", "recv")) for opcode in hlo.opcodes], bool)
    rows = np.flatnonzero(transfers[hlo.opcode])
    texts = hlo.raw_attributes.take(rows).to_pylist()
    return rows[[("is_host_transfer=true" in (text or "")) for text in texts]] if len(rows) else rows


@njit(cache=True)
def _by_content(
    order: NDArray[np.int32],
    computation_start: NDArray[np.int32],
    called_start: NDArray[np.int32],
    called: NDArray[np.int32],
    category: NDArray[np.int32],
    is_scalar: NDArray[np.bool_],
    operand_start: NDArray[np.int32],
    operand: NDArray[np.int32],
    heaviest_first: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Resolve fusions and async operations by the categories of what is in them."""
    content = np.zeros(len(order), np.int64)
    for computation in order:
        for row in range(computation_start[computation], computation_start[computation + 1]):
            inside = np.int64(0)
            for edge in range(called_start[row], called_start[row + 1]):
                if called[edge] >= 0:
                    inside |= content[called[edge]]
            own = category[row]
            if own in (_FUSION, _ASYNC_START):
                category[row] = _LOOP_FUSION if inside & (1 << _SCALAR) else _DATA_MOVEMENT
                if inside & (1 << _DATA_MOVEMENT):
                    category[row] = _DATA_MOVEMENT
                for heavy in heaviest_first[::-1]:
                    if inside & (1 << heavy):
                        category[row] = _LOOP_FUSION if heavy == _ELEMENTWISE else heavy
                if own == _ASYNC_START and category[row] == _DATA_MOVEMENT:
                    category[row] = _ASYNC_COPY
            elif own == _ASYNC_REST:
                first = operand[operand_start[row]] if operand_start[row] < operand_start[row + 1] else -1
                category[row] = category[first] if first >= 0 else _OTHER
            elif own == _ELEMENTWISE and is_scalar[row]:
                content[computation] |= 1 << _SCALAR
            else:
                content[computation] |= 1 << own
            content[computation] |= inside
    return category
