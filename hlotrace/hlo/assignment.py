"""A buffer assignment in columns: allocations and the values assigned to them, filled alike from text and proto."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

CATEGORIES = ("argument", "output", "alias", "temp", "constant", "preallocated", "thread_local")
"""What `BufferAssignment.category` indexes; `alias` is both argument and output."""

ARGUMENT, OUTPUT, ALIAS, TEMP, CONSTANT, PREALLOCATED, THREAD_LOCAL = range(len(CATEGORIES))


@dataclass(frozen=True)
class BufferAssignment:
    """Allocations (a of them, in the compiler's order) and values (v, the values of an allocation together).

    Attributes:
        index: [a] the allocation's number.
        size: [a] bytes.
        color: [a] the memory space.
        category: [a] into CATEGORIES.
        parameter_number: [a] the entry parameter it holds, -1 for none.
        parameter_index: [a] where in that parameter, as `{0}`; empty when it holds none.
        value_start: [a + 1] allocation i holds the values start[i] to start[i + 1].
        value_id: [v] the compiler's number of the value.
        instruction: [v] the instruction that defines it.
        shape_index: [v] where in its result, as `{}` or `{1,0}`.
        offset: [v] where in the allocation it begins, in bytes.
        value_size: [v] bytes.
        shape: [v] the text of its shape with layout, null where it is not known.
        problems: (place, what, consequence) of everything that was read leniently.
    """

    index: NDArray[np.int64]
    size: NDArray[np.int64]
    color: NDArray[np.int64]
    category: NDArray[np.int32]
    parameter_number: NDArray[np.int64]
    parameter_index: tuple[str, ...]

    value_start: NDArray[np.int64]
    value_id: NDArray[np.int64]
    instruction: pa.StringArray
    shape_index: pa.StringArray
    offset: NDArray[np.int64]
    value_size: NDArray[np.int64]
    shape: pa.StringArray

    problems: tuple[tuple[str, str, str], ...] = field(default=())

    @property
    def value_allocation(self) -> NDArray[np.int64]:
        """[v] the row of each value's allocation."""
        return np.repeat(np.arange(len(self.index)), np.diff(self.value_start))


def categorize(
    *, parameter: bool, output: bool, thread_local: bool = False, constant: bool = False, preallocated: bool = False
) -> int:
    """The category of an allocation by what the compiler says of it."""
    if thread_local:
        return THREAD_LOCAL
    if parameter:
        return ALIAS if output else ARGUMENT
    if output:
        return OUTPUT
    if constant:
        return CONSTANT
    return PREALLOCATED if preallocated else TEMP
