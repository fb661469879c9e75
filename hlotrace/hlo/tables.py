"""The tables of one module at one stage: computations, instructions, fusions, predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlotrace.devices import memory_space_name
from hlotrace.hlo import fusions as fused
from hlotrace.hlo.call_graph import ROLES
from hlotrace.hlo.category import CATEGORIES
from hlotrace.hlo.facts import Facts
from hlotrace.hlo.predictions import predictions_table
from hlotrace.hlo.schedule import schedule_index
from hlotrace.tables import COMPUTATIONS, FUSIONS, INSTRUCTIONS, PREDICTIONS, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hlotrace.devices import Chip
    from hlotrace.hlo.module import HloModule


def module_tables(
    hlo: HloModule,
    *,
    module: str,
    stage: str,
    platform: str,
    schedule: Sequence[str] | None = None,
    chip: Chip | None = None,
) -> dict[str, pa.Table]:
    """The tables `computations`, `instructions`, `fusions` and `predictions` of a module at a stage, as declared.

    Args:
        module: the module's name in the bundle.
        stage: `before_optimizations`, `after_optimizations`, `after_codegen`, or a pass's name.
        platform: `cpu`, `gpu` or `tpu`: what memory spaces are named after.
        schedule: the names of instructions in the order of the flattened schedule, as a live-range dump lists them.
            Without it a scheduled module's own order is taken, which newer texts give with elements of tuples left out.
        chip: what it is predicted for; without it there are no predictions.
    """
    facts = Facts(hlo)
    return {
        COMPUTATIONS.name: _computations(facts, module, stage),
        INSTRUCTIONS.name: _instructions(facts, module, stage, platform, schedule),
        FUSIONS.name: _fusions(facts, module),
        PREDICTIONS.name: predictions_table(facts, chip, module=module),
    }


def _computations(facts: Facts, module: str, stage: str) -> pa.Table:
    hlo, runs = facts.hlo, facts.execution
    names = pa.array(hlo.computation_names, pa.string())
    return _table(
        COMPUTATIONS,
        len(names),
        module=module,
        stage=stage,
        computation=names,
        role=_chosen(ROLES, runs.role),
        caller=hlo.names.take(_index(runs.caller)),
        trip_count=_index(runs.trips),
        execution_count=_index(runs.executions),
        instruction_count=np.diff(hlo.computation_start).astype(np.int64),
    )


def _instructions(facts: Facts, module: str, stage: str, platform: str, schedule: Sequence[str] | None) -> pa.Table:
    hlo, shapes, place = facts.hlo, facts.shapes, facts.sources
    moved = facts.traffic
    model, bundles = facts.cycles
    is_root = np.zeros(hlo.instruction_count, bool)
    is_root[hlo.computation_root[hlo.computation_root >= 0]] = True
    own_traffic = ~facts.in_kernel
    return _table(
        INSTRUCTIONS,
        hlo.instruction_count,
        module=module,
        stage=stage,
        computation=_chosen(hlo.computation_names, facts.graph.computation),
        instruction=hlo.names,
        opcode=_chosen(hlo.opcodes, hlo.opcode),
        category=_chosen(CATEGORIES, facts.category),
        is_root=is_root,
        is_launch=facts.is_launch,
        **_shape_columns(hlo, platform),
        logical_bytes=_index(shapes.logical[hlo.shape]),
        bytes=_index(shapes.allocated[hlo.shape]),
        operands=_operands(hlo),
        called=_named_lists(hlo.called_start, hlo.called, pa.array(hlo.computation_names, pa.string())),
        parameter_number=_index(hlo.parameter_number),
        fusion_kind=facts.fusion_kind,
        custom_call_target=facts.custom_call_target,
        op_name=hlo.op_name,
        source_file=place.file,
        source_line=place.line,
        user_file=place.user_file,
        user_line=place.user_line,
        source_stack=place.stack,
        flops=_index(facts.flops),
        product_dtype=facts.product_dtype,
        execution_count=_index(facts.execution.executions[facts.graph.computation]),
        branch=facts.branch,
        hbm_read_bytes=_index(np.where(own_traffic, moved.read, -1)),
        hbm_write_bytes=_index(np.where(own_traffic, moved.written, -1)),
        estimated_cycles=_index(model),
        bundle_cycles=_index(bundles),
        schedule_index=_positions(facts, schedule),
        line=_index(hlo.line),
        literal=hlo.literal,
        attributes=hlo.raw_attributes,
        backend_config=hlo.backend_config,
    )


def _shape_columns(hlo: HloModule, platform: str) -> dict[str, pa.Array]:
    """The columns that say a result's shape, made for each distinct shape and handed out."""
    arrays = [None if shape.is_tuple else shape for shape in hlo.shapes]
    spaces = [shape.memory_space if shape and shape.dtype not in ("token", "opaque") else None for shape in arrays]
    columns = {
        "shape": pa.array([shape.text for shape in hlo.shapes], pa.string()),
        "dtype": pa.array([shape.dtype if shape else None for shape in arrays], pa.string()),
        "dims": pa.array([shape.dims if shape else None for shape in arrays], pa.list_(pa.int64())),
        "layout": pa.array([shape.layout.text if shape and shape.layout else None for shape in arrays], pa.string()),
        "memory_space": pa.array(spaces, pa.int64()),
        "memory_space_name": pa.array(
            [None if space is None else memory_space_name(platform, space) for space in spaces], pa.string()
        ),
    }
    chosen = pa.array(hlo.shape)
    return {name: column.take(chosen) for name, column in columns.items()}


def _operands(hlo: HloModule) -> pa.ListArray:
    names = hlo.names.take(_index(hlo.operand))
    elements = np.flatnonzero(hlo.operand_element >= 0)
    if len(elements):
        with_element = pc.binary_join_element_wise(
            names.take(pa.array(elements)), pa.array(hlo.operand_element[elements]).cast(pa.string()), "#"
        )
        mask = np.zeros(len(names), bool)
        mask[elements] = True
        names = pc.replace_with_mask(names, pa.array(mask), with_element)
    return pa.ListArray.from_arrays(pa.array(hlo.operand_start), names)


def _positions(facts: Facts, schedule: Sequence[str] | None) -> pa.Array:
    if schedule is None:
        return _index(schedule_index(facts.hlo, facts.graph))
    return pc.index_in(facts.hlo.names, value_set=pa.array(schedule, pa.string())).cast(pa.int64())


def _fusions(facts: Facts, module: str) -> pa.Table:
    hlo, shapes, place = facts.hlo, facts.shapes, facts.sources
    found = fused.members(hlo, shapes, facts.graph.applied, facts.in_kernel)
    rows = pa.array(found.fusions)
    count = np.bincount(found.which, minlength=len(found.fusions)).astype(np.int64)
    op_names = hlo.op_name.dictionary_encode()
    roots = hlo.computation_root[found.computation]
    return _table(
        FUSIONS,
        len(found.fusions),
        module=module,
        fusion=hlo.names.take(rows),
        computation=_chosen(hlo.computation_names, found.computation),
        caller_computation=_chosen(hlo.computation_names, facts.graph.computation[found.fusions]),
        kind=facts.fusion_kind.take(rows),
        category=_chosen(CATEGORIES, facts.category[found.fusions]),
        root_opcode=_chosen(hlo.opcodes, np.where(roots >= 0, hlo.opcode[roots], -1)),
        member_count=count,
        member_opcodes=fused.opcode_counts(hlo, found),
        operand_bytes=_index(fused.operand_bytes(hlo, shapes, facts.operand_shape, found)),
        output_bytes=_index(shapes.allocated[hlo.shape[found.fusions]]),
        internal_bytes=_index(found.internal_bytes),
        launches_saved=np.maximum(count - 1, 0),
        flops=_index(facts.flops[found.fusions]),
        estimated_cycles=_index(facts.cycles[0][found.fusions]),
        execution_count=_index(facts.execution.executions[facts.graph.computation[found.fusions]]),
        op_names=fused.distinct_texts(
            found, op_names.indices.fill_null(-1).to_numpy(zero_copy_only=False), op_names.dictionary
        ),
        source_lines=fused.ranked_texts(found, place.place, place.places, _own_places(facts, found)),
    )


def _own_places(facts: Facts, found: fused.Members) -> NDArray[np.int32]:
    """The user's line of each fusion: its own, else that of the root of what it holds; -1 for none."""
    place, roots = facts.sources.place, facts.hlo.computation_root[found.computation]
    own = place[found.fusions]
    return np.where((own < 0) & (roots >= 0), place[roots], own)


def _table(declared: Table, rows: int, **columns: Any) -> pa.Table:
    """A table of the declared columns; a text stands for a column that is the same in all rows."""
    schema = declared.arrow_schema()
    arrays = []
    for field in schema:
        column = columns[field.name]
        if isinstance(column, str):
            column = pa.repeat(pa.scalar(column), rows)
        array = column if isinstance(column, pa.Array) else pa.array(column)
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _chosen(texts: Sequence[str], number: NDArray[np.int32]) -> pa.Array:
    """For each number the text that it stands for; null for -1."""
    return pa.array(texts, pa.string()).take(_index(number))


def _index(values: NDArray[Any]) -> pa.Array:
    """The values with null for -1."""
    return pa.array(values, mask=values < 0)


def _named_lists(start: NDArray[np.int32], number: NDArray[np.int32], names: pa.StringArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(start), names.take(_index(number)))
