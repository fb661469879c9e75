"""What the computations of fusions ask of their parameters, and how much of their results they write.

A fusion makes no more of a member than its users ask for, so demands run from the results back to the parameters. Of
each operand a member asks for a fixed part, and for a part in proportion to what is asked of itself. Demands are
counted in elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotrace.hlo import _value_kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.call_graph import CallGraph
    from hlotrace.hlo.module import HloModule
    from hlotrace.hlo.shape_columns import ShapeColumns

NOTHING, ELEMENTWISE, WHOLE, SLICE, UPDATE, SCATTER, SHARE, TUPLE, FUSION = range(9)
"""How an instruction uses its operands.

ELEMENTWISE asks of each as much as is asked of it, WHOLE everything, SLICE as much of the first and all of the others.
UPDATE and SCATTER change part of the first. SHARE asks for the same share of an operand as of the result. FUSION goes
by the computation that it applies.
"""

_LONGEST_CHAIN_LOG2 = 32
"""Chains of instructions are followed by doubling; a chain that is longer goes round in a circle."""

_SEEN_THROUGH = ("bitcast", "reshape", "get-tuple-element")
"""Opcodes that name the bytes of their operand anew."""


@dataclass(frozen=True)
class Uses:
    """How the instructions of a module use each other.

    Attributes:
        rule: for each instruction, as above.
        applied: for each instruction the computation that it applies as a fusion does, -1 for none.
        row: for each operand the instruction that it belongs to. number: which of its operands it is.
        first: whether it is what a slice is taken of or an update changes.
        size: elements of each operand, 0 where not known.
        result_size: elements of each instruction.
        source: for each instruction the one whose bytes it names, -1 where that is not known.
    """

    rule: NDArray[np.int32]
    applied: NDArray[np.int32]
    row: NDArray[np.int32]
    number: NDArray[np.int32]
    first: NDArray[np.bool_]
    size: NDArray[np.float64]
    result_size: NDArray[np.float64]
    source: NDArray[np.int32]


@dataclass(frozen=True)
class Demand:
    """What fused computations need and make, in elements.

    Attributes:
        of_operand: of each operand of a fusion; of other operands -1.
        written: of each instruction that is a result of a fused computation, -1 where it is written whole.
    """

    of_operand: NDArray[np.float64]
    written: NDArray[np.float64]


def uses(
    hlo: HloModule,
    shapes: ShapeColumns,
    operand_shape: NDArray[np.int32],
    rule: NDArray[np.int32],
    graph: CallGraph,
) -> Uses:
    """How the instructions of `hlo` use each other."""
    lengths = np.diff(hlo.operand_start)
    row = np.repeat(np.arange(hlo.instruction_count, dtype=np.int32), lengths)
    number = np.arange(len(row), dtype=np.int32) - hlo.operand_start[row]
    arrays = np.where(rule == SCATTER, np.maximum(lengths // 2, 1), (rule == SLICE) | (rule == UPDATE))
    first = number < arrays[row]
    size = np.where(operand_shape >= 0, np.maximum(shapes.elements[operand_shape], 0), 0).astype(np.float64)
    result_size = np.maximum(shapes.elements[hlo.shape], 0).astype(np.float64)
    seen_through = hlo.has_opcode(*_SEEN_THROUGH) & (lengths > 0)
    source = np.arange(hlo.instruction_count, dtype=np.int32)
    source[seen_through] = hlo.operand[hlo.operand_start[:-1][seen_through]]
    return Uses(rule, graph.applied, row, number, first, size, result_size, ends_of_chains(source))


def ends_of_chains(following: NDArray[np.int32]) -> NDArray[np.int32]:
    """For each row the last of the chain that it begins; `following` is a row itself at the end, -1 where it is cut."""
    for _ in range(_LONGEST_CHAIN_LOG2):
        further = np.where(following >= 0, following[following], -1)
        if (further == following).all():
            break
        following = further
    return following


def demand(hlo: HloModule, use: Uses, order: NDArray[np.int32]) -> Demand:
    """Demands on operands of fusions and what fusions write; `order` has computations after those that they call."""
    is_applied = np.zeros(hlo.computation_count, bool)
    is_applied[use.applied[use.applied >= 0]] = True
    results, handed_on = _results(hlo, use, is_applied)
    in_place, written = _updates_in_place(hlo, use, results)
    written[results[handed_on]] = 0
    touched = np.zeros(hlo.instruction_count)
    np.add.at(touched, results[~handed_on], use.result_size[results[~handed_on]])
    fixed, proportional = _parts(hlo, use, in_place)
    parameter = parameter_rows(hlo, use.applied)
    _value_kernels.ask_back(
        order[is_applied[order]],
        hlo.computation_start,
        hlo.operand_start,
        hlo.operand,
        use.applied,
        parameter,
        use.size,
        use.result_size,
        fixed,
        proportional,
        touched,
    )
    of_fusion = use.applied[use.row] >= 0
    return Demand(
        np.where(of_fusion & (parameter >= 0), touched[parameter], np.where(of_fusion, use.size, -1)), written
    )


def result_operands(hlo: HloModule, roots: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The operands (as entries of `hlo.operand`) of the tuples in rows `roots`, and for each which of `roots` it is."""
    lengths = hlo.operand_start[roots + 1] - hlo.operand_start[roots]
    which = np.repeat(np.arange(len(roots)), lengths)
    within = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return hlo.operand_start[roots][which] + within, which


def _results(hlo: HloModule, use: Uses, is_applied: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """The rows that are results of fused computations, and which of them are parameters in a tuple, handed on."""
    roots = hlo.computation_root[is_applied & (hlo.computation_root >= 0)]
    tuples = use.rule[roots] == TUPLE
    edges, _ = result_operands(hlo, roots[tuples])
    elements = hlo.operand[edges]
    elements = elements[elements >= 0]
    handed_on = np.concatenate([np.zeros((~tuples).sum(), bool), hlo.parameter_number[elements] >= 0])
    return np.concatenate([roots[~tuples], elements]), handed_on


def _updates_in_place(
    hlo: HloModule, use: Uses, results: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which updates change an operand of their fusion in place, and how many elements each result then writes."""
    in_place = np.zeros(hlo.instruction_count, bool)
    written = np.full(hlo.instruction_count, -1.0)
    changed = np.full(hlo.instruction_count, -1, np.int32)  # the parameter that a result is an update of
    source = use.source[results]
    results, source = results[source >= 0], source[source >= 0]
    updating = (use.rule[source] == UPDATE) | (use.rule[source] == SCATTER)
    updating &= hlo.operand_start[source] < hlo.operand_start[source + 1]
    base = _parameter_behind(hlo, use, hlo.operand_start[source[updating]])
    update, result = source[updating][base >= 0], results[updating][base >= 0]
    in_place[update] = True
    written[result] = use.size[update_operand(hlo, use, update)]
    changed[result] = base[base >= 0]
    nested = (use.applied[source] >= 0) & (hlo.computation_root[use.applied[source]] >= 0)
    result, source = results[nested], source[nested]
    inner = hlo.computation_root[use.applied[source]]
    for _ in range(hlo.computation_count):
        found = np.flatnonzero((changed[inner] >= 0) & (changed[result] < 0))
        edge = hlo.operand_start[source[found]] + hlo.parameter_number[changed[inner[found]]]
        found, edge = (part[edge < hlo.operand_start[source[found] + 1]] for part in (found, edge))
        base = _parameter_behind(hlo, use, edge)
        found, base = found[base >= 0], base[base >= 0]
        if not len(found):
            break
        written[result[found]] = written[inner[found]]
        changed[result[found]] = base
    return in_place, written


def _parameter_behind(hlo: HloModule, use: Uses, edges: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    """The parameters whose bytes these operands name; -1 for an operand that is made inside."""
    row = hlo.operand[edges]
    row = np.where(row >= 0, use.source[row], -1)
    return np.where((row >= 0) & (hlo.parameter_number[row] >= 0), row, -1)


def update_operand(hlo: HloModule, use: Uses, rows: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    """The operands that hold the new values of updates: of a scatter of n arrays the one after them and the indices."""
    count = hlo.operand_start[rows + 1] - hlo.operand_start[rows]
    number = np.where(use.rule[rows] == UPDATE, 1, count // 2 + 1)
    return hlo.operand_start[rows] + np.minimum(number, count - 1)


def _parts(hlo: HloModule, use: Uses, in_place: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each operand how much is asked for whatever is asked of the result, and how much for each element of that."""
    rule = use.rule[use.row]
    seen_through = use.source[use.row] != use.row
    alike = (rule == ELEMENTWISE) | seen_through | use.first
    proportional = np.where(alike, 1.0, 0.0)
    share = rule == SHARE
    proportional[share] = use.size[share] / np.maximum(use.result_size[use.row[share]], 1)
    changing = (rule == SLICE) | (rule == UPDATE) | (rule == SCATTER)
    whole = (rule == WHOLE) | (~use.first & changing)
    fixed = np.where(whole, use.size, 0.0)
    kept = use.first & in_place[use.row]
    proportional[kept] = 0
    scattered = np.flatnonzero(kept & (rule == SCATTER))
    fixed[scattered] = use.size[update_operand(hlo, use, use.row[scattered])]
    return fixed, proportional


def parameter_rows(hlo: HloModule, applied: NDArray[np.int32]) -> NDArray[np.int32]:
    """For each operand of an instruction that applies a computation the row of its parameter there; -1 for others."""
    parameters = np.flatnonzero(hlo.parameter_number >= 0)
    computation = np.searchsorted(hlo.computation_start, parameters, side="right") - 1
    counts = np.bincount(computation, minlength=hlo.computation_count)
    start = np.cumsum(counts) - counts
    place = np.full(len(parameters) + 1, -1, np.int32)
    number = hlo.parameter_number[parameters]
    proper = number < counts[computation]
    place[start[computation[proper]] + number[proper]] = parameters[proper]
    lengths = np.diff(hlo.operand_start)
    inside = np.repeat(applied, lengths)
    number = np.arange(len(inside), dtype=np.int32) - np.repeat(hlo.operand_start[:-1], lengths)
    known = (inside >= 0) & (number < counts[inside])
    return np.where(known, place[np.where(known, start[inside] + number, -1)], np.int32(-1))
