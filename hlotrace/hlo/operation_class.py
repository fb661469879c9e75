"""Classes of launches by how well their time can be told beforehand: one rule of prediction goes for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo import _graph_kernels
from hlotrace.hlo.call_graph import REDUCER
from hlotrace.hlo.category import CATEGORIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.facts import Facts

CLASSES = (
    "matmul fusion",
    "loop fusion",
    "reduce",
    "data movement fusion",
    "bare broadcast, copy or convert",
    "bare slice or pad",
    "gather or scatter",
    "sort",
    "Pallas call",
    "custom call",
    "async copy",
    "collective",
    "host transfer",
    "other",
)
"""Every value of the column `class` of `predictions`."""

PALLAS_TARGET = "tpu_custom_call"

_OF_CATEGORY = {
    "matmul": "matmul fusion",
    "convolution": "matmul fusion",
    "reduction": "reduce",
    "loop fusion": "loop fusion",
    "elementwise": "loop fusion",
    "data movement": "data movement fusion",
    "async copy": "async copy",
    "collective": "collective",
    "custom call": "custom call",
    "host": "host transfer",
    "sort": "sort",
}
_BARE = ("broadcast", "copy", "convert", "iota", "transpose", "reshape", "reverse")
_CUTS = ("slice", "dynamic-slice", "dynamic-update-slice", "pad", "concatenate")
_INDEXED = ("gather", "scatter")


def operation_classes(facts: Facts) -> NDArray[np.int32]:
    """The class of each instruction, into CLASSES; what is no launch gets one too, which means nothing."""
    number = {name: at for at, name in enumerate(CLASSES)}
    of_category = np.array([number[_OF_CATEGORY.get(name, "other")] for name in CATEGORIES], np.int32)
    found = of_category[facts.category]
    moving = (found == number["data movement fusion"]) | (found == number["loop fusion"])
    found[moving & facts.hlo.has_opcode(*_BARE)] = number["bare broadcast, copy or convert"]
    found[moving & facts.hlo.has_opcode(*_CUTS)] = number["bare slice or pad"]
    found[moving & _applies_any(facts, _INDEXED)] = number["gather or scatter"]
    found[facts.targets.calls(PALLAS_TARGET)] = number["Pallas call"]
    return found


def _applies_any(facts: Facts, opcodes: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which instructions have one of these opcodes, or apply a computation that holds one."""
    hlo, graph = facts.hlo, facts.graph
    bits = hlo.has_opcode(*opcodes).astype(np.int64)
    inside = np.zeros(hlo.instruction_count, np.int64)
    called = np.where(graph.role == REDUCER, np.int32(-1), hlo.called)
    totals = np.zeros(hlo.computation_count, np.int64)
    _graph_kernels.contents(graph.order, hlo.computation_start, hlo.called_start, called, bits, totals, inside)
    return (bits | inside) != 0
