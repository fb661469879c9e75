"""Where a path leads: a directory, a file, an archive or a remote place, and the files that are in it."""

from __future__ import annotations

import difflib
import hashlib
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hlotrace._sniff import HEAD_BYTES, archive_kind, is_chrome_trace
from hlotrace.bundle import MANIFEST_NAME, PROFILE, PROGRAMS
from hlotrace.errors import HlotraceError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

CACHE_NAME = ".hlotrace-cache"
MAX_FILES = 200_000
MAX_DEPTH = 8

_DUMP_NAME = re.compile(r"module_\d+\.")
_REMOTE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")

Listing = dict[str, tuple[int, str]]
"""Relative POSIX path → size in bytes and a stamp that changes when the file does."""


@dataclass(frozen=True)
class Tree:
    """Files that can be read now: `fs` reads `root/path` for each path of `listing`.

    Attributes:
        is_directory: a directory was opened; otherwise a lone file in `listing` is what was asked for.
    """

    fs: AbstractFileSystem
    root: str
    listing: Listing
    is_directory: bool = False

    def join(self, path: str) -> str:
        """The path for `fs` of a path relative to the root."""
        return f"{self.root}/{path}" if path else self.root

    def read(self, path: str) -> bytes:
        """All bytes of one file."""
        data: bytes = self.fs.cat_file(self.join(path))
        return data

    def mapped(self, path: str) -> bytes:
        """All bytes of one file, of a file on this machine as a memory map of it."""
        if "file" not in self.fs.protocol or not self.listing[path][0]:
            return self.read(path)
        with Path(self.join(path)).open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # type: ignore[return-value]

    def head(self, path: str) -> bytes:
        """The first bytes of one file."""
        data: bytes = self.fs.cat_file(self.join(path), start=0, end=min(HEAD_BYTES, self.listing[path][0]))
        return data


@dataclass(frozen=True)
class Source:
    """A path that was found.

    Attributes:
        path: as the user wrote it.
        local: where it is on this machine; None for a remote place.
        listing: what is there; an archive counts as one file.
    """

    path: str
    kind: Literal["directory", "file", "archive"]
    local: Path | None
    listing: Listing = field(repr=False)

    def content_key(self) -> str:
        """A digest of the names, sizes and stamps of all files."""
        digest = hashlib.sha256()
        for name, (size, stamp) in sorted(self.listing.items()):
            digest.update(f"{name}\0{size}\0{stamp}\n".encode(errors="surrogateescape"))
        return digest.hexdigest()

    def bundle_directory(self) -> Path | None:
        """The directory on this machine that holds the one manifest; None when there is none."""
        roots = bundle_roots(self.listing)
        return self.local / roots[0] if self.kind == "directory" and self.local and len(roots) == 1 else None

    @contextmanager
    def tree(self) -> Iterator[Tree]:
        """The files, readable while the context lasts: an archive is unpacked into a temporary directory."""
        if self.local is None:
            from hlotrace._remote import remote_tree

            with remote_tree(self) as tree:
                yield tree
        elif self.kind == "archive":
            from hlotrace._archive import unpacked

            with unpacked(self.local, self.path) as directory:
                yield Tree(_local_fs(), directory.as_posix(), list_directory(directory, self.path))
        else:
            is_directory = self.kind == "directory"
            root = self.local if is_directory else self.local.parent
            yield Tree(_local_fs(), root.as_posix(), self.listing, is_directory)


def open_path(path: str | os.PathLike[str]) -> Source:
    """Find what a path names.

    Raises:
        HlotraceError: there is nothing, or it cannot be read.
        MissingDependency: a remote path whose file system is not installed.
    """
    text = os.fspath(path)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if _REMOTE.match(text):
        from hlotrace._remote import open_remote

        return open_remote(text)
    local = Path(text).expanduser()
    try:
        return _open_local(text, local)
    except FileNotFoundError:
        raise HlotraceError("no such file or directory", place=text, remedy=_did_you_mean(local)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise HlotraceError(f"cannot be read: {reason}", place=text) from None


def _open_local(text: str, local: Path) -> Source:
    local = local.resolve(strict=True)
    if local.is_dir():
        return Source(text, "directory", local, list_directory(local, text))
    if not local.is_file():
        raise HlotraceError("expected a file or a directory, found neither", place=text)
    with local.open("rb") as file:
        head = file.read(512)
    info = local.stat()
    is_archive = archive_kind(head) is not None and not is_chrome_trace(head, local.name)
    kind: Literal["file", "archive"] = "archive" if is_archive else "file"
    return Source(text, kind, local, {local.name: (info.st_size, _stamp(info))})


def _did_you_mean(local: Path) -> str:
    parent = local.parent
    names = [entry.name for entry in os.scandir(parent)] if parent.is_dir() and os.access(parent, os.R_OK) else []
    close = difflib.get_close_matches(local.name, names, n=3)
    return f"Nearest here: {', '.join(close)}." if close else ""


def _local_fs() -> AbstractFileSystem:
    from fsspec.implementations.local import LocalFileSystem

    return LocalFileSystem()


def is_dump_name(name: str) -> bool:
    """Whether a file's name is one that XLA gives to what it dumps of a module."""
    return _DUMP_NAME.match(name) is not None


def bundle_roots(listing: Listing) -> list[str]:
    """The directories, relative to the root, that hold a manifest and a programs folder."""
    holders = [path.removesuffix(MANIFEST_NAME) for path in listing if path.rpartition("/")[2] == MANIFEST_NAME]
    return sorted(holder for holder in holders if any(path.startswith(f"{holder}{PROGRAMS}/") for path in listing))


def list_directory(root: Path, shown: str) -> Listing:
    """The files that matter under a directory: a bundle's with its traces, else the dumps in it, else all further down.

    Raises:
        HlotraceError: there are more than a dump directory would hold.
    """
    listing: Listing = {}
    if (root / MANIFEST_NAME).is_file() and (root / PROGRAMS).is_dir():
        _add(listing, root / MANIFEST_NAME, MANIFEST_NAME)
        _walk(root / PROGRAMS, f"{PROGRAMS}/", 1, listing, shown)
        if (root / PROFILE).is_dir():
            _walk(root / PROFILE, f"{PROFILE}/", 1, listing, shown)
        # A bundle is written once and keeps its cache when it is copied or moved.
        return {name: (size, stamp.partition(" ")[0]) for name, (size, stamp) in listing.items()}
    _walk(root, "", 0, listing, shown)
    return listing


def _walk(directory: Path, prefix: str, depth: int, listing: Listing, shown: str) -> None:
    below: list[os.DirEntry[str]] = []
    dumps_here = False
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except PermissionError:
        return
    for entry in entries:
        if entry.is_dir():
            below.append(entry)
        elif entry.is_file():
            dumps_here = dumps_here or is_dump_name(entry.name)
            _add(listing, entry, prefix + entry.name)
    if len(listing) > MAX_FILES:
        raise HlotraceError(f"more than {MAX_FILES:,} files", place=shown, remedy="Name the dump directory itself.")
    if dumps_here or depth >= MAX_DEPTH:
        return
    for entry in below:
        if not entry.name.startswith(".") and not entry.is_symlink():
            _walk(directory / entry.name, f"{prefix}{entry.name}/", depth + 1, listing, shown)


def _add(listing: Listing, path: Path | os.DirEntry[str], name: str) -> None:
    try:
        info = path.stat()
    except FileNotFoundError:  # gone since it was listed
        return
    listing[name] = (info.st_size, _stamp(info))


def _stamp(info: os.stat_result) -> str:
    """When a file was written, and which it is: a copy may bring its time and size along."""
    return f"{info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino}"
