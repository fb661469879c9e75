"""Any path to tables: a bundle, a dump or log directory, an HLO file, a trace, an archive of them or a remote place.

    tables = hlotrace.load("gs://bucket/run7")
    tables["instructions"]          # a pandas frame with the declared columns
    tables.arrow("instructions")    # the pyarrow table behind it

The module itself can be called, so that `hlotrace.load(path)` works whether or not it was imported before.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

from hlotrace._cache import Cache
from hlotrace._open import Source, open_path
from hlotrace.bundle import MANIFEST_NAME, manifest_from_text
from hlotrace.errors import unknown_name
from hlotrace.tables import ALL_TABLES, TRACE_TABLES, to_frame

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from hlotrace._assemble import Assembled, Progress
    from hlotrace.bundle import Manifest


class Tables(Mapping[str, "pd.DataFrame"]):
    """The declared tables of one path, each read when it is first asked for.

    Frames hold pandas' `str`, nullable `Int64`, `float64`, nullable `boolean`, and Arrow lists.

    Attributes:
        path: what was opened, as the user wrote it.
        module: the one module the tables are restricted to; None for all.
    """

    def __init__(self, store: _Store, module: str | None = None) -> None:
        self.path = store.source.path
        self.module = module
        self._store = store
        self._frames: dict[str, pd.DataFrame] = {}

    @property
    def manifest(self) -> Manifest | None:
        """What the capture says of itself; None for files that no capture made."""
        return self._store.manifest

    @property
    def traces(self) -> tuple[str, ...]:
        """The profiler's traces that are there, relative to what was opened; nothing in them was read for this."""
        return self._store.traces

    def arrow(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A declared table as pyarrow has it.

        Args:
            columns: only these, which is faster where the table has not been read yet.

        Raises:
            HlotraceError: no table has that name, or the files cannot be read.
        """
        if name not in ALL_TABLES:
            raise unknown_name("table", name, ALL_TABLES)
        return self._store.table(name, self.module, columns)

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._frames:
            self._frames[name] = to_frame(self.arrow(name))
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(ALL_TABLES)

    def __len__(self) -> int:
        return len(ALL_TABLES)

    def __contains__(self, name: object) -> bool:
        return name in ALL_TABLES

    def __repr__(self) -> str:
        return f"<Tables of {self.path}{f', module {self.module}' if self.module else ''}>"

    def select(self, module: str) -> Tables:
        """The same tables with the rows of one module only; `problems` stays whole.

        Raises:
            HlotraceError: there is no such module.
        """
        known = self.arrow("modules")["module"].to_pylist()
        if module not in known:
            raise unknown_name("module", module, known, place=self.path)
        return Tables(self._store, module)


class _Store:
    """Where the tables of a source come from: this process, the cache, or the files themselves."""

    def __init__(self, source: Source, progress: Progress | None = None) -> None:
        self.source = source
        self._progress = progress
        self._cache = Cache.of(source)
        self._built: Assembled | None = None
        self._parts: dict[str, dict[str, pa.Table]] = {}
        self._read: dict[tuple[str, str | None], pa.Table] = {}
        self._lock = threading.RLock()
        if not self._cache.exists and source.bundle_directory() is None:
            self._build()

    @cached_property
    def manifest(self) -> Manifest | None:
        text = self._manifest_text()
        return manifest_from_text(text, f"{self.source.path}: {MANIFEST_NAME}") if text is not None else None

    def _manifest_text(self) -> str | None:
        if self._built is not None:
            return self._built.manifest
        bundle = self.source.bundle_directory()
        if bundle is not None:
            return (bundle / MANIFEST_NAME).read_text(encoding="utf-8", errors="replace")
        return self._cache.read_manifest()

    @cached_property
    def traces(self) -> tuple[str, ...]:
        if self._built is None and not self._cache.exists:
            self._build()
        return self._built.traces if self._built is not None else self._cache.read_traces()

    def table(self, name: str, module: str | None, columns: Sequence[str] | None = None) -> pa.Table:
        """A table of one module or of all; one without a column `module` is always whole."""
        if "module" not in ALL_TABLES[name].column_names:
            module = None
        wanted = None if columns is None else list(dict.fromkeys(columns))
        with self._lock:
            if wanted is not None and (name, module) not in self._read:
                return self._find(name, module, wanted).select(wanted)
            if (name, module) not in self._read:
                self._read[name, module] = self._find(name, module)
            whole = self._read[name, module]
        return whole if wanted is None else whole.select(wanted)

    def _find(self, name: str, module: str | None, columns: list[str] | None = None) -> pa.Table:
        if name in TRACE_TABLES:
            return self._traced("events" if name == "events" else "trace", name, module, columns)
        if self._built is None:
            table = self._cache.read(name, module, columns)
            if table is not None:
                return self._with_traced(name, table, columns)
        return self._with_traced(name, _of_module((self._built or self._build()).tables[name], module), columns)

    def _with_traced(self, name: str, table: pa.Table, columns: list[str] | None) -> pa.Table:
        """Problems of the traces join the others as soon as the traces are read, which of a bare trace is at once."""
        if name != "problems" or not self.traces:
            return table
        is_bare = self.source.bundle_directory() is None
        if not is_bare and "trace" not in self._parts and not self._cache.part("trace").exists:
            return table
        import pyarrow as pa

        more = self._traced("trace", "problems", None, columns)
        return pa.concat_tables([table if columns is None else table.select(columns), more])

    def _traced(self, part: str, name: str, module: str | None, columns: list[str] | None) -> pa.Table:
        """A table that is read from traces; empty where there are none."""
        if not self.traces:
            return ALL_TABLES[name].arrow_schema().empty_table()
        cache = self._cache.part(part)
        if part not in self._parts:
            table = cache.read(name, module, columns)
            if table is not None:
                return table
            from hlotrace._traces import assemble_traces

            cache.discard()
            with self.source.tree() as tree:
                read = assemble_traces(tree, self.source.path, self._of_all, with_events=part == "events")
            self._parts[part] = read
            cache.write(read)
        return _of_module(self._parts[part][name], module)

    def _of_all(self, name: str, columns: Sequence[str]) -> pa.Table:
        return self.table(name, None, columns)

    def _build(self) -> Assembled:
        from hlotrace._assemble import assemble

        self._cache.discard()
        with self.source.tree() as tree:
            self._built = assemble(tree, self.source.path, self._progress)
        self._cache.write(self._built.tables, self._built.manifest, self._built.traces)
        return self._built


def _of_module(table: pa.Table, module: str | None) -> pa.Table:
    if module is None or "module" not in table.column_names:
        return table
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["module"], module))


def load(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Tables:
    """Open a bundle, a dump directory, a profiler's log directory, one file, an archive of them, or a remote place.

    One file is HLO (text or proto) or a trace (`.xplane.pb`, `.trace.json.gz`). Traces are read when one of their
    tables is first asked for.

    What was read is kept as Parquet: in the bundle itself, else in the user's cache directory.

    Args:
        path: a path on this machine, or a URL that fsspec knows (`gs://…`, `s3://…`).
        progress: called while files are parsed, with how many modules are read and how many there are.

    Raises:
        HlotraceError: there is nothing to read, or it is something else; the message says what.
        MissingDependency: a remote path whose file system is not installed.
    """
    return Tables(_Store(open_path(path), progress))


class _Callable(ModuleType):
    def __call__(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> Tables:
        return load(path, progress=progress)


sys.modules[__name__].__class__ = _Callable
