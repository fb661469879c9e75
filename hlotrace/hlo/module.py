"""One HLO module in columns: what every reader of HLO makes, and what every figure is computed from.

Rows of an instruction column are instructions, in the order of the file; the instructions of one computation
stand together. Text and proto readers fill the same columns, so everything after them is shared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import DTypeLike, NDArray

    from hlotrace.hlo.shape import Shape

CALL_ROLES = (
    "calls",
    "to_apply",
    "body",
    "condition",
    "branch_computations",
    "true_computation",
    "false_computation",
    "select",
    "scatter",
    "called_computations",
    "comparator",
    "async",
    "other",
)
"""What `called_role` indexes: the attribute through which a computation is called."""


@dataclass(frozen=True)
class Frames:
    """The FileNames, FunctionNames, FileLocations and StackFrames tables; ids in HLO count from 1.

    Attributes:
        file_names, function_names: indexed by id - 1.
        locations: int64 [n, 6]: file id, function id, line, end line, column, end column.
        stack: int64 [n, 2]: location id, parent frame id, 0 for none. HLO text writes the parent's id plus one (the
            text and the proto of one module differ so, in every version looked at); its reader takes that back.
    """

    file_names: tuple[str, ...]
    function_names: tuple[str, ...]
    locations: NDArray[np.int64]
    stack: NDArray[np.int64]


@dataclass(frozen=True)
class HloModule:
    """One module, column by column.

    n instructions, c computations; `int32` arrays unless said otherwise; -1 stands for none.
    """

    name: str
    attributes: dict[str, str]
    """The header's attributes as raw text: is_scheduled, entry_computation_layout, replica_count, …"""

    computation_names: tuple[str, ...]
    computation_start: NDArray[np.int32]
    """[c + 1]: computation i holds the instruction rows start[i] to start[i + 1]."""
    computation_root: NDArray[np.int32]
    computation_line: NDArray[np.int32]
    """[c]: the line of its header in the file, from 1; -1 when not from text."""
    entry: int
    """The entry computation; -1 where the text marks none."""

    names: pa.StringArray
    """[n] without `%`."""
    opcode: NDArray[np.int32]
    """[n] into `opcodes`."""
    opcodes: tuple[str, ...]
    shape: NDArray[np.int32]
    """[n] into `shapes`."""
    shapes: tuple[Shape, ...]
    """The distinct result shapes."""
    parameter_number: NDArray[np.int32]
    line: NDArray[np.int32]

    operand_start: NDArray[np.int32]
    """[n + 1] into `operand` and `operand_element`."""
    operand: NDArray[np.int32]
    """The operand's row; -1 where it names nothing in this computation (then `problems` says so)."""
    operand_element: NDArray[np.int32]
    """The tuple element of `name#i`, -1 when the whole value is meant."""

    called_start: NDArray[np.int32]
    """[n + 1] into `called` and `called_role`."""
    called: NDArray[np.int32]
    """The computation's index."""
    called_role: NDArray[np.int32]
    """Into CALL_ROLES."""

    literal: pa.StringArray
    """[n], null when the parentheses hold operands: a constant's value and the like."""
    raw_attributes: pa.StringArray
    """[n] all attributes as text, less metadata and backend_config; empty when there are none."""
    backend_config: pa.StringArray
    """[n] null when there is none."""

    op_name: pa.StringArray
    """[n] from metadata, null when there is none."""
    source_file: pa.StringArray
    source_line: NDArray[np.int32]
    stack_frame: NDArray[np.int32]
    """[n] an id of `frames.stack`, 0 when there is none."""
    frames: Frames | None = None

    problems: tuple[tuple[str, str, str], ...] = field(default=())
    """(place, what, consequence) of everything that was read leniently."""

    @property
    def instruction_count(self) -> int:
        """How many instructions it has, all computations together."""
        return len(self.opcode)

    @property
    def computation_count(self) -> int:
        """How many computations it has."""
        return len(self.computation_names)

    def by_opcode(self, told: Callable[[str], object], dtype: DTypeLike) -> NDArray[Any]:
        """[n] what `told` says of each instruction's opcode; it is asked once for each distinct one."""
        return np.array([told(opcode) for opcode in self.opcodes], dtype)[self.opcode]

    def has_opcode(self, *opcodes: str) -> NDArray[np.bool_]:
        """[n] whether an instruction has one of these opcodes."""
        return self.by_opcode(opcodes.__contains__, bool)
