"""The tables of one module at one stage: computations, instructions, fusions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlotrace.devices import memory_space_name
from hlotrace.hlo import fusions as fused
from hlotrace.hlo.call_graph import ROLES, CallGraph, call_graph
from hlotrace.hlo.category import CATEGORIES, categories
from hlotrace.hlo.contractions import Contractions, contractions
from hlotrace.hlo.custom_calls import Targets, targets_of
from hlotrace.hlo.estimates import estimated_cycles
from hlotrace.hlo.execution import Execution, execution
from hlotrace.hlo.flops import flops
from hlotrace.hlo.launches import launches
from hlotrace.hlo.schedule import schedule_index
from hlotrace.hlo.shape_columns import ShapeColumns, operand_shapes, shape_columns
from hlotrace.hlo.sources import Sources, sources
from hlotrace.hlo.traffic import traffic
from hlotrace.tables import COMPUTATIONS, FUSIONS, INSTRUCTIONS, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule


def module_tables(
    hlo: HloModule, *, module: str, stage: str, platform: str, schedule: Sequence[str] | None = None
) -> dict[str, pa.Table]:
    """The tables `computations`, `instructions` and `fusions` of a module at a stage, as declared.

    Args:
        module: the module's name in the bundle.
        stage: `before_optimizations`, `after_optimizations`, `after_codegen`, or a pass's name.
        platform: `cpu`, `gpu` or `tpu`: what memory spaces are named after.
        schedule: the names of instructions in the order of the flattened schedule, as a live-range dump lists them.
            Without it a scheduled module's own order is taken, which newer texts give with elements of tuples left out.
    """
    facts = Facts(hlo)
    return {
        COMPUTATIONS.name: _computations(facts, module, stage),
        INSTRUCTIONS.name: _instructions(facts, module, stage, platform, schedule),
        FUSIONS.name: _fusions(facts, module),
    }


@dataclass(frozen=True)
class Facts:
    """What is derived from a module, each thing once, when it is first asked for. One row an instruction."""

    hlo: HloModule

    @cached_property
    def shapes(self) -> ShapeColumns:
        """What is known of the module's shapes."""
        return shape_columns(self.hlo)

    @cached_property
    def operand_shape(self) -> NDArray[np.int32]:
        """For each operand its shape."""
        return operand_shapes(self.hlo, self.shapes)

    @cached_property
    def graph(self) -> CallGraph:
        """Which computation calls which."""
        return call_graph(self.hlo)

    @cached_property
    def execution(self) -> Execution:
        """Roles and counts of computations."""
        return execution(self.hlo, self.graph)

    @cached_property
    def in_kernel(self) -> NDArray[np.bool_]:
        """Whether an instruction is part of a fusion, a reducer or what an async start runs."""
        inside: NDArray[np.bool_] = self.graph.in_kernel[self.graph.computation]
        return inside

    @cached_property
    def custom_call_target(self) -> pa.StringArray:
        """Null where it is no custom call."""
        return self._attribute("custom-call", r'custom_call_target="(?P<value>(?:[^"\\]|\\.)*)"')

    @cached_property
    def targets(self) -> Targets:
        """The targets of custom calls."""
        return targets_of(self.custom_call_target)

    @cached_property
    def fusion_kind(self) -> pa.StringArray:
        """Null where it is no fusion."""
        return self._attribute("fusion", r"\bkind=(?P<value>\w+)")

    @cached_property
    def products(self) -> Contractions:
        """Dots and convolutions."""
        return contractions(self.hlo, self.shapes, self.operand_shape)

    @cached_property
    def flops(self) -> NDArray[np.int64]:
        """Floating-point operations of one execution; -1 where not known."""
        return flops(self.hlo, self.shapes, self.operand_shape, self.products, self.graph)

    @cached_property
    def is_launch(self) -> NDArray[np.bool_]:
        """Whether a device is asked to start it."""
        return launches(self.hlo, self.targets, self.graph)

    @cached_property
    def category(self) -> NDArray[np.int32]:
        """Into CATEGORIES."""
        return categories(self.hlo, self.shapes, self.products, self.targets, self.graph)

    @cached_property
    def cycles(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The compiler's estimate, and the cycles of scheduled bundles."""
        return estimated_cycles(self.hlo.backend_config)

    @cached_property
    def sources(self) -> Sources:
        """Files, lines and stacks."""
        return sources(self.hlo)

    def _attribute(self, opcode: str, pattern: str) -> pa.StringArray:
        """What `pattern` finds in the attributes of instructions of `opcode`; null for others."""
        hlo = self.hlo
        number = hlo.opcodes.index(opcode) if opcode in hlo.opcodes else -1
        rows = np.flatnonzero(hlo.opcode == number)
        if not len(rows):
            return pa.nulls(hlo.instruction_count, pa.string())
        found = pc.extract_regex(hlo.raw_attributes.take(pa.array(rows)), pattern).field("value")
        place = np.full(hlo.instruction_count, -1, np.int64)
        place[rows] = np.arange(len(rows))
        return found.take(pa.array(place, mask=place < 0))


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
    moved = traffic(hlo, shapes, facts.operand_shape, facts.targets, facts.graph)
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
        source_stack=place.stack,
        flops=_index(facts.flops),
        execution_count=_index(facts.execution.executions[facts.graph.computation]),
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
        source_lines=fused.distinct_texts(found, place.place, place.places),
    )


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
