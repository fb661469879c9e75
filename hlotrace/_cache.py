"""Tables on disk as Parquet, so that a second look at the same files needs no parsing.

An entry is a directory named by a key of the files' contents and of the code that read them. It is written aside and
renamed into place: readers and writers of several processes meet whole entries or none.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import hlotrace
from hlotrace._open import CACHE_NAME, Source
from hlotrace.bundle import MANIFEST_NAME
from hlotrace.native import user_cache
from hlotrace.tables import ALL_TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FORMAT = 1
KEPT_ENTRIES = 2
KEPT_PLACES = 100
ROW_GROUP_ROWS = 50_000
STALE_SECONDS = 3600

_PACKAGE = Path(hlotrace.__file__).parent
_READING_PACKAGES = ("hlotrace.hlo", "hlotrace.parsers", "hlotrace.trace")
_TRACES = "traces.txt"


class Cache:
    """The cached tables of one source; `directory` is None where nothing can be kept."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory

    @classmethod
    def of(cls, source: Source) -> Cache:
        """Where the tables of a source are kept: in the bundle itself, else in the user's cache directory."""
        key = hashlib.sha256(f"{_code_key()} {source.content_key()}".encode()).hexdigest()[:32]
        home = _home(source)
        return cls(home / key if home else None)

    def part(self, name: str) -> Cache:
        """The entry of tables that are made later than the others and apart from them."""
        return Cache(self.directory.with_name(f"{self.directory.name}-{name}") if self.directory else None)

    @property
    def exists(self) -> bool:
        """Whether there is an entry; a damaged one shows only when it is read."""
        return self.directory is not None and self.directory.is_dir()

    def read(self, name: str, module: str | None = None, columns: Sequence[str] | None = None) -> pa.Table | None:
        """A table as it was written, of one module or of all; None when it is not there or damaged.

        Args:
            columns: read only these; all when not given.
        """
        if not self.exists:
            return None
        assert self.directory is not None
        import pyarrow as pa

        try:
            table = _read_table(self.directory / f"{name}.parquet", ALL_TABLES[name].arrow_schema(), module, columns)
        except (pa.ArrowException, OSError, ValueError):
            return None
        with contextlib.suppress(OSError):
            os.utime(self.directory)
        return table

    def read_manifest(self) -> str | None:
        """The manifest's text; None where there was none."""
        if self.directory is None:
            return None
        try:
            return (self.directory / MANIFEST_NAME).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def read_traces(self) -> tuple[str, ...]:
        """The names of the traces that are there."""
        if self.directory is None:
            return ()
        try:
            return tuple((self.directory / _TRACES).read_text(encoding="utf-8", errors="surrogateescape").splitlines())
        except OSError:
            return ()

    def write(self, tables: dict[str, pa.Table], manifest: str | None = None, traces: Sequence[str] = ()) -> None:
        """Keep the tables; where that is not possible, nothing is kept and nothing is said."""
        if self.directory is None:
            return
        with contextlib.suppress(OSError):
            home = _made(self.directory.parent)
            aside = Path(tempfile.mkdtemp(prefix=".new-", dir=home))
            try:
                for name, table in tables.items():
                    _write_table(aside / f"{name}.parquet", table)
                if manifest is not None:
                    (aside / MANIFEST_NAME).write_text(manifest, encoding="utf-8")
                if traces:
                    (aside / _TRACES).write_text("\n".join(traces), encoding="utf-8", errors="surrogateescape")
                aside.rename(self.directory)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
            _prune(home, KEPT_ENTRIES)
            if home.parent == user_cache():
                os.utime(home)
                _prune(home.parent, KEPT_PLACES)

    def discard(self) -> None:
        """Drop a damaged entry; processes that read it keep the files they have open."""
        if self.directory is not None and self.directory.exists():
            with contextlib.suppress(OSError):
                aside = Path(tempfile.mkdtemp(prefix=".old-", dir=self.directory.parent))
                self.directory.rename(aside / "entry")
                shutil.rmtree(aside, ignore_errors=True)


def _home(source: Source) -> Path | None:
    bundle = source.bundle_directory()
    if bundle is not None and os.access(bundle, os.W_OK) and not bundle.is_relative_to(_PACKAGE):
        return bundle / CACHE_NAME
    where = str(source.local or source.path)
    try:
        return user_cache() / hashlib.sha256(where.encode(errors="surrogateescape")).hexdigest()[:16]
    except RuntimeError:  # no home directory
        return None


def _code_key() -> str:
    """Changes with the version, and with every edit of the code that makes the tables."""
    files = list(_PACKAGE.glob("*.py"))
    for name in _READING_PACKAGES:
        spec = importlib.util.find_spec(name)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            files += [*Path(place).glob("*.py"), *Path(place).glob("*.csv")]
    stamps = [f"{file} {info.st_size} {info.st_mtime_ns}" for file in sorted(files) if (info := file.stat())]
    return "\n".join([f"{FORMAT} {hlotrace.__version__}", *stamps])


def _made(home: Path) -> Path:
    if not home.is_dir():
        home.mkdir(parents=True, exist_ok=True)
        if home.name == CACHE_NAME:
            (home / ".gitignore").write_text("*\n", encoding="utf-8")
    return home


def _write_table(path: Path, table: pa.Table) -> None:
    """One row group for so many rows, so that one module of many can be read alone."""
    import pyarrow.parquet as pq

    pq.write_table(
        table, path, compression="zstd", row_group_size=ROW_GROUP_ROWS, write_page_checksum=True, store_schema=True
    )


def _read_table(path: Path, schema: pa.Schema, module: str | None, columns: Sequence[str] | None) -> pa.Table:
    """The rows of a module, from the row groups that can hold it.

    Raises:
        ValueError: its schema is another.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq  # and not pyarrow.dataset, whose import takes as long as reading

    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        if not file.schema_arrow.remove_metadata().equals(schema):
            raise ValueError(f"{path} has another schema")
        wanted = list(dict.fromkeys(columns)) if columns is not None else schema.names
        if module is None:
            return file.read(wanted).select(wanted).replace_schema_metadata()
        groups = [group for group in range(file.num_row_groups) if _may_hold(file, group, module)]
        table = file.read_row_groups(groups, list(dict.fromkeys((*wanted, "module"))))
        return table.filter(pc.equal(table["module"], module)).select(wanted).replace_schema_metadata()


def _may_hold(file: pq.ParquetFile, group: int, module: str) -> bool:
    part = file.metadata.row_group(group)
    index = file.schema_arrow.get_field_index("module")
    found = part.column(index).statistics
    return found is None or not found.has_min_max or found.min <= module <= found.max


def _prune(directory: Path, keep: int) -> None:
    """Keep the entries of each part that were used last, and remove what a killed process left long ago."""
    entries = sorted(((entry.stat().st_mtime, entry) for entry in directory.iterdir() if entry.is_dir()), reverse=True)
    whole: dict[str, list[Path]] = {}
    for _, entry in entries:
        if not entry.name.startswith("."):
            whole.setdefault(entry.name.partition("-")[2], []).append(entry)
    stale = [entry for used, entry in entries if entry.name.startswith(".") and used < time.time() - STALE_SECONDS]
    for entry in [entry for part in whole.values() for entry in part[keep:]] + stale:
        shutil.rmtree(entry, ignore_errors=True)
