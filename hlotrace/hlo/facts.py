"""What is derived from a module, each thing once, when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlotrace.hlo.branches import branches
from hlotrace.hlo.call_graph import CallGraph, call_graph
from hlotrace.hlo.category import categories
from hlotrace.hlo.contractions import Contractions, contractions, product_dtypes
from hlotrace.hlo.custom_calls import Targets, targets_of
from hlotrace.hlo.estimates import estimated_cycles
from hlotrace.hlo.execution import Execution, execution
from hlotrace.hlo.flops import flops
from hlotrace.hlo.launches import launches
from hlotrace.hlo.shape_columns import ShapeColumns, operand_shapes, shape_columns
from hlotrace.hlo.sources import Sources, sources
from hlotrace.hlo.traffic import Traffic, traffic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule

_VMEM, _CMEM = 1, 3


@dataclass(frozen=True)
class Facts:
    """The columns that follow from a module's own: one row an instruction where nothing else is said."""

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
    def branch(self) -> pa.StringArray:
        """The branches of conditionals that an instruction stands in; null for none."""
        return branches(self.hlo, self.graph, self.execution).take(pa.array(self.graph.computation))

    @cached_property
    def product_dtype(self) -> pa.StringArray:
        """What the products in an instruction multiply; null where it has none."""
        return product_dtypes(self.hlo, self.shapes, self.operand_shape, self.products, self.graph)

    @cached_property
    def flops(self) -> NDArray[np.int64]:
        """Floating-point operations of one execution; -1 where not known."""
        return flops(self.hlo, self.shapes, self.operand_shape, self.products, self.targets, self.graph)

    @cached_property
    def is_launch(self) -> NDArray[np.bool_]:
        """Whether a device is asked to start it."""
        return launches(self.hlo, self.targets, self.graph)

    @cached_property
    def category(self) -> NDArray[np.int32]:
        """Into CATEGORIES."""
        return categories(self.hlo, self.shapes, self.products, self.targets, self.graph)

    @cached_property
    def traffic(self) -> Traffic:
        """Bytes that one execution moves through HBM, as if members of fusions stood alone."""
        return traffic(self.hlo, self.shapes, self.operand_shape, self.targets, self.graph)

    @cached_property
    def vmem_traffic(self) -> Traffic:
        """The same through VMEM, or CMEM on the chips that have it in its place."""
        return traffic(self.hlo, self.shapes, self.operand_shape, self.targets, self.graph, space=self.fast_space)

    @property
    def fast_space(self) -> int:
        """The number of the memory beside the core that the compiler assigns values to."""
        return _CMEM if (self.shapes.space == _CMEM).any() else _VMEM

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
        rows = np.flatnonzero(hlo.has_opcode(opcode))
        if not len(rows):
            return pa.nulls(hlo.instruction_count, pa.string())
        found = pc.extract_regex(hlo.raw_attributes.take(pa.array(rows)), pattern).field("value")
        place = np.full(hlo.instruction_count, -1, np.int64)
        place[rows] = np.arange(len(rows))
        return found.take(pa.array(place, mask=place < 0))
