"""The instructions of one stage, indexed once, so that a selection finds its rows at once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotrace.analyses.op_counts import group_keys

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

NONE: NDArray[np.int64] = np.empty(0, dtype=np.int64)


class Groups:
    """Rows by the value of one column, by number; rows without a value are in no group."""

    def __init__(self, values: pd.Series) -> None:
        codes, names = values.factorize()
        self.names: list[str] = [str(name) for name in names]
        self.codes: NDArray[np.int64] = np.asarray(codes, dtype=np.int64)
        order = np.argsort(self.codes, kind="stable")
        bounds = np.searchsorted(self.codes[order], np.arange(len(self.names) + 1))
        self._order, self._bounds = order, bounds
        self._number = {name: number for number, name in enumerate(self.names)}

    def rows(self, name: str) -> NDArray[np.int64]:
        """The rows of one value, in order."""
        number = self._number.get(name)
        return NONE if number is None else self._order[self._bounds[number] : self._bounds[number + 1]]

    def rows_of(self, names: list[str]) -> NDArray[np.int64]:
        """The rows of several values, in order."""
        found = [self.rows(name) for name in names]
        return np.sort(np.concatenate(found)) if found else NONE

    def count(self, name: str) -> int:
        """How many rows have the value."""
        return len(self.rows(name))

    def name_of(self, row: int) -> str | None:
        """The value in a row."""
        code = int(self.codes[row])
        return self.names[code] if code >= 0 else None


class Lookup:
    """Rows of a frame of instructions by name, by group, by op_name."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._groups: dict[str, Groups] = {}

    def groups(self, by: str) -> Groups:
        """Rows by a column, or by `source` (file:line) or `scope`."""
        if by not in self._groups:
            keys = self.frame[by] if by in self.frame.columns else group_keys(self.frame, by)
            self._groups[by] = Groups(keys)
        return self._groups[by]

    @cached_property
    def names(self) -> NDArray[Any]:
        """The instructions' names."""
        return self.frame["instruction"].to_numpy(dtype=object)

    @cached_property
    def schedule(self) -> NDArray[np.float64]:
        """Schedule positions, NaN where there is none."""
        return self.frame["schedule_index"].to_numpy(dtype="float64", na_value=np.nan)

    def scope(self, scope: str) -> NDArray[np.int64]:
        """The rows whose op_name is, or lies in, a scope."""
        groups = self.groups("op_name")
        inside = scope + "/"
        return groups.rows_of([name for name in groups.names if name == scope or name.startswith(inside)])
