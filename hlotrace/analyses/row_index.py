"""Rows by name, where a row may have several names or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NONE: NDArray[np.int64] = np.empty(0, dtype=np.int64)


class RowIndex:
    """Which rows have a name.

    Args:
        codes: into `names`, one a pair of a name and a row; -1 for none. rows: the row of each pair.
    """

    def __init__(self, names: Sequence[str], codes: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        self.names = list(names)
        known = codes >= 0
        pairs = np.unique(codes[known].astype(np.int64) << 32 | rows[known])
        self._rows = pairs & 0xFFFFFFFF
        self._bounds = np.searchsorted(pairs >> 32, np.arange(len(self.names) + 1))
        self._number = {name: number for number, name in enumerate(self.names)}

    def rows(self, name: str) -> NDArray[np.int64]:
        """The rows that have a name, in order."""
        number = self._number.get(name)
        return NONE if number is None else self._rows[self._bounds[number] : self._bounds[number + 1]]

    def rows_of(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The rows that have any of several names, in order."""
        return np.unique(np.concatenate([NONE, *(self.rows(name) for name in names)]))

    def count(self, name: str) -> int:
        """How many rows have the name."""
        return len(self.rows(name))
