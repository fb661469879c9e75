"""The targets of custom calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Targets:
    """The distinct targets, and which of them each instruction calls (-1: it is no custom call)."""

    names: Sequence[str]
    code: NDArray[np.int32]

    def calls(self, *starts: str) -> NDArray[np.bool_]:
        """Which instructions call a target whose name begins in one of these ways."""
        wanted = np.array([name.startswith(starts) for name in self.names] + [False], bool)
        found: NDArray[np.bool_] = wanted[self.code]
        return found


def targets_of(column: pa.StringArray) -> Targets:
    """The targets of a column that has them, null where there is none."""
    if column.null_count == len(column):
        return Targets((), np.full(len(column), -1, np.int32))
    encoded = column.dictionary_encode()
    return Targets(encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False))
