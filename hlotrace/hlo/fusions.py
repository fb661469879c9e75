"""The `fusions` table: what each fusion holds, and what holding it together saves.

Members are the instructions of the fused computation and of fusions nested in it, without those that compute nothing
(parameters, constants, tuples, get-tuple-elements, bitcasts) and without the nested fusions themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numba import njit

from hlotrace.hlo.attributes import number as attribute_number
from hlotrace.hlo.fused_demand import LONGEST_CHAIN_LOG2, parameter_rows, result_operands

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule
    from hlotrace.hlo.shape_columns import ShapeColumns

_COMPUTES_NOTHING = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")


@dataclass(frozen=True)
class Members:
    """The members of the fusions of a module.

    Attributes:
        fusions: the rows of fusions that stand outside of other fusions.
        computation: of each the computation that holds its members.
        which: for each member the index into `fusions`. row: its row.
        internal_bytes: of each fusion, as the column says; -1 where sizes are not known.
    """

    fusions: NDArray[np.int32]
    computation: NDArray[np.int32]
    which: NDArray[np.int32]
    row: NDArray[np.int32]
    internal_bytes: NDArray[np.int64]


def members(hlo: HloModule, shapes: ShapeColumns, applied: NDArray[np.int32], in_fusion: NDArray[np.bool_]) -> Members:
    """Collect the members of the fusions of `hlo`.

    Args:
        applied: for each instruction the computation that it applies as a fusion, -1 for none.
        in_fusion: for each instruction whether it stands in a fused computation.
    """
    is_fusion = _is_one_of(hlo, "fusion") & (applied >= 0)
    fusions = np.flatnonzero(is_fusion & ~in_fusion).astype(np.int32)
    nothing = _is_one_of(hlo, *_COMPUTES_NOTHING)
    nested = np.where(is_fusion & in_fusion, applied, np.int32(-1))
    which, row = _collect(applied[fusions], hlo.computation_start, nested, ~nothing & ~(is_fusion & in_fusion))
    origin = _origins(hlo, nested, is_fusion & in_fusion)
    internal = _internal_bytes(hlo, shapes, applied[fusions], which, row, origin)
    return Members(fusions, applied[fusions], which, row, internal)


def opcode_counts(hlo: HloModule, found: Members) -> pa.ListArray:
    """For each fusion its members' opcodes as `add x3`, most frequent first, then in order of appearance."""
    size = len(hlo.opcodes)
    keys, first, counts = np.unique(
        found.which.astype(np.int64) * size + hlo.opcode[found.row], return_index=True, return_counts=True
    )
    which = keys // size
    order = np.lexsort((first, -counts, which))
    pairs, inverse = np.unique(counts[order] * size + keys[order] % size, return_inverse=True)
    texts = pa.array([f"{hlo.opcodes[pair % size]} x{pair // size}" for pair in pairs.tolist()], pa.string())
    offsets = np.zeros(len(found.fusions) + 1, np.int32)
    np.cumsum(np.bincount(which, minlength=len(found.fusions)), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), texts.take(pa.array(inverse)))


def operand_bytes(
    hlo: HloModule, shapes: ShapeColumns, operand_shape: NDArray[np.int32], found: Members
) -> NDArray[np.int64]:
    """For each fusion the allocated bytes of its distinct operands; -1 where one is not known."""
    size = np.where(operand_shape >= 0, shapes.allocated[operand_shape], -1)
    total: NDArray[np.int64] = _sum_distinct(found.fusions, hlo.operand_start, hlo.operand, hlo.operand_element, size)
    return total


def distinct_texts(found: Members, code: NDArray[np.int32], texts: pa.StringArray) -> pa.ListArray:
    """For each fusion the texts of its members, each once, in order; `code` is of each instruction, -1 for none."""
    offsets, codes = _distinct(len(found.fusions), found.which, code[found.row], len(texts))
    return pa.ListArray.from_arrays(pa.array(offsets), texts.take(pa.array(codes)))


def _is_one_of(hlo: HloModule, *opcodes: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.array([opcode in opcodes for opcode in hlo.opcodes], bool)[hlo.opcode]
    return found


def _origins(hlo: HloModule, nested: NDArray[np.int32], is_nested: NDArray[np.bool_]) -> NDArray[np.int32]:
    """For each row the one that makes its value, through bitcasts, tuples, and nested fusions and their parameters."""
    origin = np.arange(hlo.instruction_count, dtype=np.int32)
    through = _is_one_of(hlo, "bitcast", "get-tuple-element") & (np.diff(hlo.operand_start) > 0)
    origin[through] = hlo.operand[hlo.operand_start[:-1][through]]
    rows = np.flatnonzero(is_nested & (hlo.computation_root[nested] >= 0))
    origin[rows] = hlo.computation_root[nested[rows]]
    parameter = parameter_rows(hlo, nested)
    origin[parameter[parameter >= 0]] = hlo.operand[parameter >= 0]
    _through_tuples(hlo, origin, nested)
    for _ in range(LONGEST_CHAIN_LOG2):
        further = np.where(origin >= 0, origin[origin], -1)
        if (further == origin).all():
            break
        origin = further
    return origin


def _through_tuples(hlo: HloModule, origin: NDArray[np.int32], nested: NDArray[np.int32]) -> None:
    """Elements of nested fusions with several results are the operands of their root."""
    if "get-tuple-element" not in hlo.opcodes:
        return
    elements = hlo.opcode == hlo.opcodes.index("get-tuple-element")
    rows = np.flatnonzero(elements & (origin >= 0))
    for row in rows[nested[origin[rows]] >= 0].tolist():
        root = int(hlo.computation_root[nested[origin[row]]])
        edge = int(hlo.operand_start[root]) + attribute_number(hlo.raw_attributes[row].as_py() or "", "index", 0)
        if root >= 0 and hlo.opcodes[hlo.opcode[root]] == "tuple" and edge < hlo.operand_start[root + 1]:
            origin[row] = hlo.operand[edge]


def _internal_bytes(
    hlo: HloModule,
    shapes: ShapeColumns,
    computation: NDArray[np.int32],
    which: NDArray[np.int32],
    row: NDArray[np.int32],
    origin: NDArray[np.int32],
) -> NDArray[np.int64]:
    """Written once, unless it is a result, and read once by each member that uses it."""
    roots = hlo.computation_root[computation]
    roots = roots[roots >= 0]
    tuples = _is_one_of(hlo, "tuple")[roots]
    elements = hlo.operand[result_operands(hlo, roots[tuples])[0]]
    results = origin[np.concatenate([roots[~tuples], elements[elements >= 0]])]
    is_result = np.zeros(hlo.instruction_count, bool)
    is_result[results[results >= 0]] = True
    reads = _count_reads(row, hlo.operand_start, hlo.operand, origin)
    size = shapes.allocated[hlo.shape[row]]
    kept = size * (reads[row] + ~is_result[row])
    total = np.bincount(which, np.where(size < 0, 0, kept), minlength=len(computation)).astype(np.int64)
    total[which[size < 0]] = -1
    return total


@njit(cache=True)
def _collect(
    computation: NDArray[np.int32],
    computation_start: NDArray[np.int32],
    nested: NDArray[np.int32],
    counted: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The counted rows of each computation, nested ones in their place, and which computation each is of."""
    which = np.empty(0, np.int32)
    rows = np.empty(0, np.int32)
    deepest = len(computation_start)
    at = np.empty(deepest, np.int32)
    end = np.empty(deepest, np.int32)
    length = 0
    for filling in range(2):
        if filling:
            which, rows, length = np.empty(length, np.int32), np.empty(length, np.int32), 0
        for number in range(len(computation)):
            depth = 0
            at[0], end[0] = computation_start[computation[number]], computation_start[computation[number] + 1]
            while depth >= 0:
                if at[depth] == end[depth]:
                    depth -= 1
                    continue
                row = at[depth]
                at[depth] += 1
                if counted[row]:
                    if filling:
                        which[length], rows[length] = number, row
                    length += 1
                if nested[row] >= 0 and depth + 1 < deepest:
                    depth += 1
                    at[depth], end[depth] = computation_start[nested[row]], computation_start[nested[row] + 1]
    return which, rows


@njit(cache=True)
def _sum_distinct(
    rows: NDArray[np.int32],
    operand_start: NDArray[np.int32],
    operand: NDArray[np.int32],
    element: NDArray[np.int32],
    size: NDArray[np.int64],
) -> NDArray[np.int64]:
    """For each row the sizes of its operands, a repeated one counted once; -1 where one is not known."""
    total = np.zeros(len(rows), np.int64)
    for number in range(len(rows)):
        first = operand_start[rows[number]]
        for edge in range(first, operand_start[rows[number] + 1]):
            repeated = False
            for other in range(first, edge):
                repeated |= operand[other] == operand[edge] and element[other] == element[edge]
            if size[edge] < 0 or total[number] < 0:
                total[number] = -1
            elif not repeated:
                total[number] += size[edge]
    return total


@njit(cache=True)
def _count_reads(
    rows: NDArray[np.int32],
    operand_start: NDArray[np.int32],
    operand: NDArray[np.int32],
    origin: NDArray[np.int32],
) -> NDArray[np.int64]:
    """For each instruction how many of `rows` use it, each counted once."""
    reads = np.zeros(len(origin), np.int64)
    last_reader = np.full(len(origin), -1, np.int64)
    for row in rows:
        for edge in range(operand_start[row], operand_start[row + 1]):
            source = origin[operand[edge]] if operand[edge] >= 0 else -1
            if source >= 0 and last_reader[source] != row:
                last_reader[source] = row
                reads[source] += 1
    return reads


@njit(cache=True)
def _distinct(
    groups: int, which: NDArray[np.int32], code: NDArray[np.int32], codes: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct codes of each group in order of appearance, one group after another, and where each begins."""
    last_group = np.full(codes, -1, np.int64)
    found = np.empty(len(code), np.int32)
    offsets = np.zeros(groups + 1, np.int32)
    length = 0
    for at in range(len(code)):
        if code[at] >= 0 and last_group[code[at]] != which[at]:
            last_group[code[at]] = which[at]
            found[length] = code[at]
            length += 1
            offsets[which[at] + 1] += 1
    return np.cumsum(offsets).astype(np.int32), found[:length]
