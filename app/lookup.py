"""The instructions of one stage, indexed once, so that a selection finds its rows at once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotrace.analyses.op_counts import group_keys
from hlotrace.analyses.row_index import RowIndex
from hlotrace.analyses.sources import by_any_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import NDArray


class Groups(RowIndex):
    """Rows by the value of one column, by number; rows without a value are in no group."""

    def __init__(self, values: pd.Series) -> None:
        codes, names = values.factorize()
        self.codes: NDArray[np.int64] = np.asarray(codes, dtype=np.int64)
        super().__init__([str(name) for name in names], self.codes, np.arange(len(self.codes)))

    def name_of(self, row: int) -> str | None:
        """The value in a row."""
        code = int(self.codes[row])
        return self.names[code] if code >= 0 else None


class Lookup:
    """Rows of a frame of instructions by name, by group, by op_name, by any frame of their stacks.

    Args:
        stacks: gives the stacks of the same instructions, which are asked for only when a line is looked for.
    """

    def __init__(self, frame: pd.DataFrame, stacks: Callable[[], pd.DataFrame]) -> None:
        self.frame = frame
        self._stacks = stacks
        self._groups: dict[str, Groups] = {}

    def groups(self, by: str) -> Groups:
        """Rows by a column, or by `source` (the user's own line) or `scope`."""
        if by not in self._groups:
            keys = self.frame[by] if by in self.frame.columns else group_keys(self.frame, by)
            self._groups[by] = Groups(keys)
        return self._groups[by]

    @cached_property
    def places(self) -> RowIndex:
        """Rows by each `file:line` of their stacks."""
        return by_any_frame(self._stacks())

    def all_by(self, kind: str) -> RowIndex:
        """Rows by what a selection of a kind names: a source line has all that come through it."""
        return self.places if kind == "source" else self.groups(kind)

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
