"""Our model of the bytes that one execution of an instruction reads from and writes to HBM, or to another memory space.

HBM is the default memory space: on a CPU host memory, on a GPU device memory. An instruction reads its distinct
operands and writes its results as far as they are in HBM, padding included, with these exceptions.

* Slices and gathers read what they touch; a dynamic-update-slice or scatter touches what it updates, in place.
* A fusion reads of each operand what its members ask for: a member that slices asks for the slice, an elementwise
  one for what its own users ask for. When its result is an update in place of an operand, the update alone is written.
* An asynchronous copy, slice or collective counts at its start, with both sides; its other half counts nothing, nor
  do the fusions that carry it along meanwhile.
* Loops, conditionals and calls count nothing: the instructions of the computations that they enter do. Tuples and
  bitcasts move nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo import _value_kernels, fused_demand
from hlotrace.hlo.category import COLLECTIVES
from hlotrace.hlo.shape_columns import DEFAULT_SPACE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.call_graph import CallGraph
    from hlotrace.hlo.custom_calls import Targets
    from hlotrace.hlo.fused_demand import Uses
    from hlotrace.hlo.module import HloModule
    from hlotrace.hlo.shape_columns import ShapeColumns

_SYNC_FLAG_SPACE = 2
_NOTHING = (
    "add-dependency", "after-all", "bitcast", "call", "conditional", "constant", "create-token", "domain",
    "get-dimension-size", "get-tuple-element", "opt-barrier", "parameter", "partition-id", "replica-id", "trace",
    "while",
)  # fmt: skip
_WHOLE = (
    "dot", "convolution", "ragged-dot", "scaled-dot", "sort", "topk", "fft", "cholesky", "triangular-solve",
    "custom-call", "reduce-window", "select-and-scatter", "rng", "rng-bit-generator", "map", "scan", "infeed",
    "outfeed",
)  # fmt: skip
_RULES = {
    **dict.fromkeys(_NOTHING, fused_demand.NOTHING),
    **dict.fromkeys(_WHOLE, fused_demand.WHOLE),
    **dict.fromkeys(("slice", "dynamic-slice", "gather"), fused_demand.SLICE),
    **dict.fromkeys(("concatenate", "pad", "reduce"), fused_demand.SHARE),
    "dynamic-update-slice": fused_demand.UPDATE,
    "scatter": fused_demand.SCATTER,
    "tuple": fused_demand.TUPLE,
    "fusion": fused_demand.FUSION,
}
_WITHOUT_TRAFFIC = (
    "AllocateBuffer",
    "AsyncCollectiveDone",
    "ConcatBitcast",
    "Noop",
    "PrepareAsyncCall",
    "SPMD",
    "Sharding",
)
_WRITES_ELEMENT = {"copy-start": 0, "recv": 0, "all-gather-start": 1, "collective-permute-start": 1}
"""Of the tuples that starts make, the element that is written."""


@dataclass(frozen=True)
class Traffic:
    """One row an instruction: bytes of one execution, -1 where they cannot be told."""

    read: NDArray[np.int64]
    written: NDArray[np.int64]


def traffic(
    hlo: HloModule,
    shapes: ShapeColumns,
    operand_shape: NDArray[np.int32],
    targets: Targets,
    graph: CallGraph,
    space: int = DEFAULT_SPACE,
) -> Traffic:
    """Bytes of one execution of each instruction of `hlo` in one memory space, HBM when none is named."""
    held = shapes.in_space(space)
    rule = hlo.by_opcode(_rule, np.int32)
    rule[targets.calls(*_WITHOUT_TRAFFIC)] = fused_demand.NOTHING
    rule[targets.calls("AssumeGatherIndicesInBound")] = fused_demand.ELEMENTWISE
    rule[hlo.has_opcode("call") & (graph.applied >= 0)] = fused_demand.FUSION
    _pass_over_carried(hlo, shapes, graph, rule)
    use = fused_demand.uses(hlo, shapes, operand_shape, rule, graph)
    demand = fused_demand.demand(hlo, use, graph.order)
    own = (rule == fused_demand.NOTHING) & (use.source == np.arange(len(rule))) & (hlo.parameter_number < 0)
    demand.written[own & ~hlo.has_opcode("constant")] = 0
    needed = np.where(demand.of_operand >= 0, demand.of_operand, use.size)
    sliced = use.first & (rule[use.row] == fused_demand.SLICE)
    needed[sliced] = use.result_size[use.row[sliced]]
    wrote = _writes(hlo, shapes, held, use, demand.written, targets.calls("AsyncCollectiveStart"))
    changing, part = _changed_part(hlo, use)
    wrote[changing] *= part
    needed[use.first & (rule[use.row] == fused_demand.UPDATE)] = 0
    scattered = np.flatnonzero(use.first & (rule[use.row] == fused_demand.SCATTER))
    needed[scattered] = use.size[fused_demand.update_operand(hlo, use, use.row[scattered])]
    inside = np.where(operand_shape >= 0, held[operand_shape], -1).astype(np.float64)
    read = np.empty(hlo.instruction_count)
    _value_kernels.reads(hlo.operand_start, hlo.operand, hlo.operand_element, needed, use.size, inside, read)
    idle = (rule == fused_demand.NOTHING) | (rule == fused_demand.TUPLE)
    read[idle] = wrote[idle] = 0
    unknown = (wrote < 0) | (read < 0)
    return Traffic(*(np.where(unknown, -1, np.rint(column)).astype(np.int64) for column in (read, wrote)))


def _rule(opcode: str) -> int:
    known = _RULES.get(opcode)
    if known is not None:
        return known
    if opcode.endswith(("-done", "-update")):
        return fused_demand.NOTHING
    if opcode.endswith("-start") or opcode in COLLECTIVES:
        return fused_demand.WHOLE
    return fused_demand.ELEMENTWISE


def _pass_over_carried(hlo: HloModule, shapes: ShapeColumns, graph: CallGraph, rule: NDArray[np.int32]) -> None:
    """In a fusion that has a sync flag as a parameter an async collective is under way: those in it count nothing."""
    collective = hlo.has_opcode(*COLLECTIVES)
    if not collective.any():
        return
    fused = np.zeros(hlo.computation_count, bool)
    fused[graph.applied[graph.applied >= 0]] = True
    flagged = np.zeros(hlo.computation_count, bool)
    flags = (hlo.parameter_number >= 0) & (shapes.space[hlo.shape] == _SYNC_FLAG_SPACE)
    flagged[graph.computation[flags]] = True
    rule[collective & (fused & flagged)[graph.computation]] = fused_demand.NOTHING


def _changed_part(hlo: HloModule, use: Uses) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows of updates, and what part of their array each changes."""
    rows = np.flatnonzero(
        ((use.rule == fused_demand.UPDATE) | (use.rule == fused_demand.SCATTER)) & (np.diff(hlo.operand_start) > 0)
    )
    update = use.size[fused_demand.update_operand(hlo, use, rows)]
    return rows, np.minimum(update / np.maximum(use.size[hlo.operand_start[rows]], 1), 1)


def _writes(
    hlo: HloModule,
    shapes: ShapeColumns,
    held: NDArray[np.int64],
    use: Uses,
    written: NDArray[np.float64],
    starts: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Bytes that each instruction writes as a kernel, -1 where not known; `starts` write element 1.

    `held` is what of each shape is in the memory space that is looked at.
    """
    wrote = held[hlo.shape].astype(np.float64)
    element = hlo.by_opcode(_written_element, np.int32)
    element[starts] = 1
    at = shapes.child_start[hlo.shape] + element
    rows = np.flatnonzero((element >= 0) & (at < shapes.child_start[hlo.shape + 1]))
    wrote[rows] = held[shapes.child[at[rows]]]
    wrote[hlo.has_opcode("send", "outfeed")] = 0

    fusions = np.flatnonzero((use.applied >= 0) & (hlo.computation_root[use.applied] >= 0))
    roots = hlo.computation_root[use.applied[fusions]]
    part = np.where(written < 0, 1, np.minimum(written / np.maximum(use.result_size, 1), 1))
    starting = hlo.has_opcode("fusion")[fusions] & ~starts[roots]
    shape = np.where(starting, hlo.shape[fusions], hlo.shape[roots])
    single = use.rule[roots] != fused_demand.TUPLE
    whole = np.where(starts[roots], wrote[roots], held[shape])
    wrote[fusions[single]] = (whole * part[roots])[single]
    wrote[fusions[~single]] = _tuple_writes(hlo, shapes, held, roots[~single], shape[~single], part)
    return wrote


def _tuple_writes(
    hlo: HloModule,
    shapes: ShapeColumns,
    held: NDArray[np.int64],
    roots: NDArray[np.int32],
    shape: NDArray[np.int32],
    part: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Bytes of the tuples in rows `roots`, as of shape `shape`, when each element is written in part."""
    edges, which = fused_demand.result_operands(hlo, roots)
    child = shapes.child_start[shape][which] + edges - hlo.operand_start[roots][which]
    within = child < shapes.child_start[shape + 1][which]
    size = held[shapes.child[child[within]]]
    rows = hlo.operand[edges[within]]
    total = np.zeros(len(roots))
    np.add.at(total, which[within], size * np.where(rows >= 0, part[rows], 1))
    total[held[shape] < 0] = -1
    return total


def _written_element(opcode: str) -> int:
    """The element of its result tuple that an opcode writes; -1 where it writes all of its result."""
    if opcode in _WRITES_ELEMENT:
        return _WRITES_ELEMENT[opcode]
    return 1 if opcode.endswith("-start") and opcode != "all-reduce-start" else -1
