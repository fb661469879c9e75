"""The `fusions` table: what each fusion holds, and what holding it together saves.

Members are the instructions of the fused computation and of fusions nested in it, without those that compute nothing
(parameters, constants, tuples, get-tuple-elements, bitcasts) and without the nested fusions themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.hlo import _value_kernels
from hlotrace.hlo.attributes import number as attribute_number
from hlotrace.hlo.fused_demand import ends_of_chains, parameter_rows, result_operands

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
    is_fusion = hlo.has_opcode("fusion") & (applied >= 0)
    fusions = np.flatnonzero(is_fusion & ~in_fusion).astype(np.int32)
    nothing = hlo.has_opcode(*_COMPUTES_NOTHING)
    nested = np.where(is_fusion & in_fusion, applied, np.int32(-1))
    which, row = _collect(hlo, applied[fusions], nested, ~nothing & ~(is_fusion & in_fusion))
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
    total = np.empty(len(found.fusions), np.int64)
    _value_kernels.sum_distinct(found.fusions, hlo.operand_start, hlo.operand, hlo.operand_element, size, total)
    return total


def distinct_texts(found: Members, code: NDArray[np.int32], texts: pa.StringArray) -> pa.ListArray:
    """For each fusion the texts of its members, each once, in order; `code` is of each instruction, -1 for none."""
    offsets = np.zeros(len(found.fusions) + 1, np.int32)
    codes = np.empty(len(found.row), np.int32)
    last_group = np.full(len(texts), -1, np.int32)
    length = _value_kernels.distinct_codes(found.which, code[found.row], last_group, offsets[1:], codes)
    np.cumsum(offsets, out=offsets)
    codes = codes[:length]
    return pa.ListArray.from_arrays(pa.array(offsets), texts.take(pa.array(codes)))


def _collect(
    hlo: HloModule, computation: NDArray[np.int32], nested: NDArray[np.int32], counted: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The counted rows of each computation, nested ones in their place, and which computation each is of."""
    room = int(counted.sum())
    while True:
        which, rows = np.empty(room, np.int32), np.empty(room, np.int32)
        at, end = np.empty(hlo.computation_count, np.int32), np.empty(hlo.computation_count, np.int32)
        length = _value_kernels.collect_members(
            computation, hlo.computation_start, nested, counted.view(np.uint8), at, end, which, rows
        )
        if length <= room:
            return which[:length], rows[:length]
        room = length


def _origins(hlo: HloModule, nested: NDArray[np.int32], is_nested: NDArray[np.bool_]) -> NDArray[np.int32]:
    """For each row the one that makes its value, through bitcasts, tuples, and nested fusions and their parameters."""
    origin = np.arange(hlo.instruction_count, dtype=np.int32)
    through = hlo.has_opcode("bitcast", "get-tuple-element") & (np.diff(hlo.operand_start) > 0)
    origin[through] = hlo.operand[hlo.operand_start[:-1][through]]
    rows = np.flatnonzero(is_nested & (hlo.computation_root[nested] >= 0))
    origin[rows] = hlo.computation_root[nested[rows]]
    parameter = parameter_rows(hlo, nested)
    origin[parameter[parameter >= 0]] = hlo.operand[parameter >= 0]
    _through_tuples(hlo, origin, nested)
    return ends_of_chains(origin)


def _through_tuples(hlo: HloModule, origin: NDArray[np.int32], nested: NDArray[np.int32]) -> None:
    """Elements of nested fusions with several results are the operands of their root."""
    rows = np.flatnonzero(hlo.has_opcode("get-tuple-element") & (origin >= 0))
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
    tuples = hlo.has_opcode("tuple")[roots]
    elements = hlo.operand[result_operands(hlo, roots[tuples])[0]]
    results = origin[np.concatenate([roots[~tuples], elements[elements >= 0]])]
    is_result = np.zeros(hlo.instruction_count, bool)
    is_result[results[results >= 0]] = True
    reads = np.zeros(hlo.instruction_count, np.int64)
    last_reader = np.full(hlo.instruction_count, -1, np.int32)
    _value_kernels.count_reads(row, hlo.operand_start, hlo.operand, origin, last_reader, reads)
    size = shapes.allocated[hlo.shape[row]]
    kept = size * (reads[row] + ~is_result[row])
    total = np.bincount(which, np.where(size < 0, 0, kept), minlength=len(computation)).astype(np.int64)
    total[which[size < 0]] = -1
    return total
