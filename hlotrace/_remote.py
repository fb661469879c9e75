"""Remote places, through fsspec: gs://, s3://, memory:// and whatever else is installed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotrace._open import CACHE_NAME, MAX_FILES, Listing, Source, Tree
from hlotrace._sniff import archive_kind, is_chrome_trace
from hlotrace.errors import HlotraceError, MissingDependency

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_EXTRAS = {"gs": "gcs", "gcs": "gcs", "s3": "s3", "s3a": "s3"}
_STAMPS = ("mtime", "LastModified", "last_modified", "updated", "modified", "created", "etag", "ETag", "md5Hash")


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turn what a store's client raises into one line; their errors have no common type."""
    protocol = url.partition("://")[0].rpartition("::")[2]
    try:
        yield
    except HlotraceError:
        raise
    except FileNotFoundError:
        raise HlotraceError("no such file or directory", place=url) from None
    except ImportError as error:
        extra = _EXTRAS.get(protocol)
        remedy = f'Install it with: pip install "hlotrace[{extra}]"' if extra else f"{error}."
        raise MissingDependency(
            f"{protocol}:// needs a package that is not installed", place=url, remedy=remedy
        ) from None
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise HlotraceError(f"cannot be read: {reason[0] if reason else type(error).__name__}", place=url) from None


def _connect(url: str) -> tuple[AbstractFileSystem, str]:
    from fsspec.core import url_to_fs

    fs, path = url_to_fs(url)
    return fs, path.rstrip("/")


def open_remote(url: str) -> Source:
    """Find what a remote path names: its files' names, sizes and stamps, nothing read yet but the first bytes.

    Raises:
        HlotraceError: there is nothing, or the store refuses.
        MissingDependency: the store's file system is not installed.
    """
    with _explained(url):
        fs, path = _connect(url)
        info = fs.info(path)
        if info["type"] == "directory":
            return Source(url, "directory", None, _list(fs, path, url))
        head = fs.cat_file(path, start=0, end=512) if info["size"] else b""
        is_archive = archive_kind(head) is not None and not is_chrome_trace(head, path)
        kind = "archive" if is_archive else "file"
        return Source(url, kind, None, {path.rpartition("/")[2]: _entry(info)})  # type: ignore[arg-type]


def _list(fs: AbstractFileSystem, path: str, url: str) -> Listing:
    found: dict[str, dict[str, Any]] = fs.find(path, detail=True)
    if not found:
        raise FileNotFoundError(path)
    if len(found) > MAX_FILES:
        raise HlotraceError(f"more than {MAX_FILES:,} files", place=url, remedy="Name the dump directory itself.")
    names = {name[len(path) :].lstrip("/"): info for name, info in found.items()}
    return {name: _entry(info) for name, info in names.items() if CACHE_NAME not in name}


def _entry(info: dict[str, Any]) -> tuple[int, str]:
    return int(info["size"] or 0), " ".join(str(info[key]) for key in _STAMPS if key in info)


@contextmanager
def remote_tree(source: Source) -> Iterator[Tree]:
    """The files of a remote place; an archive comes here first, into a temporary directory."""
    from fsspec.implementations.local import LocalFileSystem

    from hlotrace._archive import unpack
    from hlotrace._open import list_directory

    with _explained(source.path), tempfile.TemporaryDirectory(prefix="hlotrace-") as temporary:
        fs, path = _connect(source.path)
        if source.kind == "archive":
            directory = Path(temporary)
            with fs.open(path, "rb") as raw:
                unpack(raw, directory, source.path)
            yield Tree(LocalFileSystem(), directory.as_posix(), list_directory(directory, source.path))
        elif source.kind == "directory":
            yield Tree(fs, path, source.listing, is_directory=True)
        else:
            yield Tree(fs, path.rpartition("/")[0], source.listing)
