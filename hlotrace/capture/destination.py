"""Where a bundle goes: it is built beside its place and moved there whole."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hlotrace import bundle
from hlotrace.errors import CaptureError, ParseError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_ROOM = 1 << 16


def cannot_write(error: OSError, directory: Path) -> CaptureError:
    """What ends a capture whose bundle cannot be written."""
    what = "no space left" if error.errno in _NO_SPACE else f"cannot write: {error.strerror}"
    return CaptureError(
        f"{what} in {directory}; nothing is kept", remedy="Make room there, or give another place with -o."
    )


@contextmanager
def told_when_full(directory: Path) -> Iterator[None]:
    """A full disk is told in one line.

    Raises:
        CaptureError: the block met one.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        raise cannot_write(error, directory) from None


def require_room(directory: Path) -> None:
    """Raise what a full disk raises, before it is quite full."""
    there = os.statvfs(directory)
    if there.f_blocks and there.f_bavail * there.f_frsize < _ROOM:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Destination:
    """The place of a bundle in the making.

    Args:
        path: where the bundle is to be.
        force: a bundle that is there already is replaced, once the new one is written; a complete one not by a partial.

    Raises:
        CaptureError: something is there that may not be replaced, or nothing can be written there.
    """

    def __init__(self, path: Path, *, force: bool) -> None:
        self.path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100, resolve() would follow the last link
        self.force = force
        self._check()
        self.staging = self._beside("partial")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.staging.mkdir()
        except OSError as error:
            raise CaptureError(
                f"cannot write a bundle there: {error.strerror}", place=str(path), remedy="Give another place with -o."
            ) from None

    def commit(self, status: str) -> Path:
        """Move the finished bundle, complete or partial, into its place, and give that place.

        A partial one goes beside a complete one that is there.

        Raises:
            CaptureError: another capture has put one there meanwhile; the message says where this one was kept.
        """
        if status == "partial" and self.force and self._is_complete():
            return self.staging.rename(self._beside("partial", hidden=False))
        old = None
        if self.force and self.path.exists():
            self._check()
            old = self._beside("old")
            self.path.rename(old)
        try:
            self.staging.rename(self.path)
        except OSError:
            if old is not None:
                old.rename(self.path)
            kept = self._beside("kept", hidden=False)
            self.staging.rename(kept)
            raise CaptureError(
                "something was put there while this capture ran", place=str(self.path), remedy=f"This bundle is {kept}."
            ) from None
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
        return self.path

    def discard(self) -> None:
        """Remove what was staged, if it is still there."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.staging)

    def _is_complete(self) -> bool:
        try:
            return bundle.read_manifest(self.path).status == "complete"
        except (OSError, ParseError):
            return False

    def _check(self) -> None:
        place, remedy = str(self.path), "Give another place with -o."
        parent = next(parent for parent in self.path.parents if parent.exists())
        if not parent.is_dir():
            raise CaptureError(f"{parent} is no directory", place=place, remedy=remedy)
        if not os.path.lexists(self.path) or (self.path.is_dir() and not any(self.path.iterdir())):
            return
        if not (self.path / bundle.MANIFEST_NAME).is_file():
            raise CaptureError("what is there is no bundle, and is left alone", place=place, remedy=remedy)
        if not self.force:
            remedy = "Replace it with --force, or give another place with -o."
            raise CaptureError("there is a bundle already", place=place, remedy=remedy)

    def _beside(self, kind: str, *, hidden: bool = True) -> Path:
        dot = "." if hidden else ""
        return self.path.with_name(f"{dot}{self.path.name}.{secrets.token_hex(4)}.{kind}")
