"""Archives: unpacked into a temporary directory for as long as they are read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from hlotrace._sniff import archive_kind, describe, looks_binary, looks_like_hlo_text
from hlotrace.errors import HlotraceError

_OPENERS: dict[str, Callable[..., Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile)
_UNWANTED = (".ll", ".o", ".so", ".ptx")
_PACKED = (".gz", ".bz2", ".xz")


@contextmanager
def unpacked(path: Path, shown: str) -> Iterator[Path]:
    """A directory with the archive's files, gone when the context ends; `shown` names the archive in errors.

    Raises:
        HlotraceError: the archive is damaged or encrypted, or a compressed file holds no HLO.
    """
    with tempfile.TemporaryDirectory(prefix="hlotrace-") as temporary:
        directory = Path(temporary)
        with path.open("rb") as raw:
            unpack(raw, directory, shown)
        yield directory


def unpack(raw: IO[bytes], directory: Path, shown: str) -> None:
    """Write the files of an archive below `directory`; `shown` names the archive in errors."""
    kind = archive_kind(raw.read(512))
    raw.seek(0)
    try:
        if kind == "zip":
            _unpack_zip(raw, directory)
        else:
            _unpack_stream(_OPENERS[kind](raw) if kind in _OPENERS else raw, directory, shown)
    except _DAMAGE as error:
        raise HlotraceError(f"a damaged archive: {error}", place=shown, remedy="Copy or make it again.") from None
    except (RuntimeError, NotImplementedError) as error:
        raise HlotraceError(f"an archive that cannot be unpacked: {error}", place=shown) from None


def _unpack_zip(raw: IO[bytes], directory: Path) -> None:
    with zipfile.ZipFile(raw) as archive:
        for item in archive.infolist():
            if not item.is_dir():
                with archive.open(item) as member:
                    _write(member, directory, item.filename)


def _unpack_stream(stream: IO[bytes], directory: Path, shown: str) -> None:
    head = stream.read(1 << 16)
    stream.seek(0)
    if archive_kind(head) == "tar":
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for item in archive:
                member = archive.extractfile(item) if item.isfile() else None
                if member is not None:
                    _write(member, directory, item.name)
        return
    name = Path(shown).stem if shown.endswith(_PACKED) else Path(shown).name
    if not looks_like_hlo_text(head) and not (looks_binary(head) and name.endswith(".pb")):
        kind = describe(head, name)
        raise HlotraceError(f"expected HLO, found {kind.what}, compressed", place=shown, remedy=kind.remedy)
    _write(stream, directory, name)


def _write(member: IO[bytes], directory: Path, name: str) -> None:
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", ".")]
    if not parts or ".." in parts or name.endswith(_UNWANTED):
        return
    target = directory.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as out:
        shutil.copyfileobj(member, out, 1 << 20)
