"""The modules of the opened bundles, each cut out of its bundle's tables once and kept."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from hlotrace.analyses import costs, fusions, op_counts, sources
from hlotrace.analyses.alive import CATEGORIES, spaces
from hlotrace.analyses.modules import by_size, chosen_module
from hlotrace.app.lookup import Groups, Lookup
from hlotrace.app.state import State
from hlotrace.errors import unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    import pandas as pd

    from hlotrace.load import Tables


T = TypeVar("T")

COLUMNS = tuple(
    dict.fromkeys(
        (
            *costs.COLUMNS,
            *op_counts.COLUMNS,
            *fusions.MEMBER_COLUMNS,
            "bytes",
            "schedule_index",
        )
    )
)
"""The columns of `instructions` that pages and their analyses read: fewer are cut out of the table faster."""


class Module:
    """One module: its row of `modules` as a dict, and its part of every table."""

    def __init__(self, bundle: Tables, row: dict[str, Any]) -> None:
        self.bundle = bundle
        self.row = row
        self.name: str = row["module"]
        self.tables: Tables = bundle.select(self.name)
        self.kept: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def keep(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once for each key: tables do not change while the app runs."""
        if key not in self.kept:
            self.kept[key] = make()
        found: T = self.kept[key]
        return found

    def _part(self, table: str) -> pd.DataFrame:
        with self._lock:
            return self.tables[table]

    @cached_property
    def instructions(self) -> pd.DataFrame:
        """The instructions of all stages, with the columns that pages read."""
        return self._part("instructions")[list(COLUMNS)]

    @cached_property
    def final(self) -> pd.DataFrame:
        """The instructions of the final stage: what runs."""
        return self._stage(self.row["final_stage"], self.instructions)

    @cached_property
    def before(self) -> pd.DataFrame:
        """The instructions before optimisation; none where that stage was not dumped."""
        return self._stage(op_counts.BEFORE, self.instructions)

    @staticmethod
    def _stage(stage: str | None, frame: pd.DataFrame) -> pd.DataFrame:
        return frame[(frame["stage"] == stage).fillna(False).astype(bool)].reset_index(drop=True)

    @cached_property
    def lookup(self) -> Lookup:
        """The instructions that run, indexed."""
        return self._lookup(self.final, self.row["final_stage"])

    @cached_property
    def before_lookup(self) -> Lookup:
        """The instructions before optimisation, indexed."""
        return self._lookup(self.before, op_counts.BEFORE)

    def _lookup(self, frame: pd.DataFrame, stage: str | None) -> Lookup:
        return Lookup(frame, lambda: self._stage(stage, self._part("instructions")[["stage", *sources.STACKS]]))

    def buffer_groups(self, by: str) -> Groups:
        """Rows of `buffers` by a column."""
        return self.keep(("buffers", by), lambda: Groups(self.buffers[by]))

    @cached_property
    def computations(self) -> pd.DataFrame:
        """The computations of all stages."""
        return self._part("computations")

    @cached_property
    def fusions(self) -> pd.DataFrame:
        """The fusions, the costliest first, with their totals over one run."""
        return fusions.fusion_groups(self._part("fusions")).reset_index(drop=True)

    @cached_property
    def buffers(self) -> pd.DataFrame:
        """The values that live in device memory, those of private stacks left out."""
        frame = self._part("buffers")
        return frame[frame["category"].isin(CATEGORIES)].reset_index(drop=True)

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """Live bytes by schedule position and memory space."""
        return self._part("memory_timeline").reset_index(drop=True)

    @cached_property
    def spaces(self) -> dict[int, str]:
        """The memory spaces that have a timeline, with their names."""
        named = self.buffers.drop_duplicates("memory_space").set_index("memory_space")["memory_space_name"]
        return {space: str(named.get(space) or f"S({space})") for space in spaces(self.timeline)}


class Bundles:
    """Everything the app was opened with."""

    def __init__(self, tables_by_name: Mapping[str, Tables]) -> None:
        self.tables = dict(tables_by_name)
        self._modules: dict[tuple[str, str], Module] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """The bundles' names, in the order they were given."""
        return list(self.tables)

    def bundle(self, name: str | None) -> str:
        """The bundle `name`, or the first.

        Raises:
            HlotraceError: none of the opened bundles has that name.
        """
        if name is None and self.tables:
            return self.names[0]
        if name is None or name not in self.tables:
            raise unknown_name("bundle", name or "", self.names)
        return name

    def module_names(self, bundle: str | None) -> list[str]:
        """The modules of a bundle, the largest first."""
        return [row["module"] for row in by_size(self.tables[self.bundle(bundle)]["modules"])]

    def module(self, bundle: str | None, module: str | None) -> Module:
        """A module of a bundle; the largest where none is named.

        Raises:
            HlotraceError: there is no such bundle or module.
        """
        bundle = self.bundle(bundle)
        tables = self.tables[bundle]
        with self._lock:
            key = (bundle, module or "")
            if key not in self._modules:
                found = chosen_module(tables["modules"], module)
                kept = self._modules.setdefault((bundle, found["module"]), Module(tables, found))
                self._modules[key] = kept
            return self._modules[key]

    def at(self, view: Mapping[str, Any] | None, **values: Any) -> tuple[Module, State]:
        """The module and the state that the browser's stores describe.

        Raises:
            HlotraceError: there is no such bundle or module.
        """
        state = State.of({**(view or {}), **values})
        return self.module(state.bundle, state.module), state
