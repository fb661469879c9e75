"""From where to where in the flattened schedule each value lives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class LiveRanges:
    """The live ranges of a module's values, as the compiler wrote them down or as we found them.

    Attributes:
        schedule: the instruction at each position.
        instruction, shape_index: of each value, such as `fusion.3` and `{}`.
        start, end: int64, the first and the last position at which it lives; `len(schedule)` is the module's end.
        peak: the position that the compiler calls the peak; None where it names none.
        problems: (place, what, consequence) of what could not be read.
    """

    schedule: tuple[str, ...]
    instruction: tuple[str, ...]
    shape_index: tuple[str, ...]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    peak: int | None = None
    problems: tuple[tuple[str, str, str], ...] = field(default=())
