"""What a file is, told from its first bytes: for the one line that says why it cannot be read as HLO."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

HEAD_BYTES = 1 << 16

_DUMP = "Dump HLO with XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text', or run hlotrace capture."
_RIEGELI = "Open the .xplane.pb of the same run: this version reads no Riegeli records."
_TRACE = "Trace again, or look for the other file of the same run."

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "an ELF object file"),
    (b"\x89PNG", "a PNG image"),
    (b"%PDF", "a PDF document"),
    (b"PAR1", "a Parquet file"),
    (b"SQLite format 3", "a SQLite database"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"ML\xefR", "MLIR bytecode"),
)

_SIDE_FILE = re.compile(r"^module_\d+\.|_optimizations-(buffer-assignment|live-range|memory-usage-report)")
_XPLANE = re.compile(rb"\x12.{1,2}(/host:|/device:|Task Environment)", re.DOTALL)
_CHROME = re.compile(rb'"(traceEvents|displayTimeUnit)"')
_LFS = b"version https://git-lfs"
_HTML = re.compile(rb"\s*(<!doctype html|<html)", re.IGNORECASE)
_MLIR = re.compile(rb"^\s*(#loc.*\n)*\s*module\b.*\{|stablehlo\.|func\.func", re.MULTILINE)
_HLO_LINE = re.compile(
    rb"^\s*(ENTRY\b.*\{|(ROOT )?%?[\w.-]+ = \(*(pred|token|opaque|[subfc]\w*\d\w*)\[[\d,<=?]*\])", re.MULTILINE
)
_HLO_HEADER = re.compile(rb"^[^\n]*\bHloModule\b", re.MULTILINE)


@dataclass(frozen=True)
class Kind:
    """What a file is, in words that finish "found …", and what to do; uncertain of bytes that may be a proto."""

    what: str
    remedy: str = ""
    is_certain: bool = True


def archive_kind(head: bytes) -> str | None:
    """`gzip`, `bzip2`, `xz`, `zip` or `tar` when the bytes say so, whatever the file's name."""
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "zip"
    if head[:3] == b"BZh":
        return "bzip2"
    if head[:6] == b"\xfd7zXZ\x00":
        return "xz"
    return "tar" if head[257:262] == b"ustar" else None


def looks_like_hlo_text(head: bytes) -> bool:
    """Whether an `HloModule` line, or a computation that stands alone, is among the first bytes."""
    if head.lstrip()[:1] in (b"<", b"{"):
        return False
    if _HLO_HEADER.search(head):
        return True
    return b"\x00" not in head and _HLO_LINE.search(head) is not None


def looks_binary(head: bytes) -> bool:
    """Whether the bytes are no text in UTF-8."""
    if b"\x00" in head:
        return True
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start < len(head) - 4
    return False


def describe(head: bytes, name: str = "") -> Kind:
    """What a file that is not HLO is, from its first bytes and its name."""
    trace = _trace_kind(head, name)
    if not head:
        return Kind("an empty file (0 bytes)", trace.remedy if trace else "Write it again.")
    if head.startswith(_LFS):
        return Kind("a Git LFS pointer, not the file itself", "Fetch the file with: git lfs pull")
    if _HTML.match(head):
        return Kind("an HTML page", "Download the file itself, not the page around it.")
    if trace is not None:
        return trace
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return Kind(what, _DUMP)
    return _binary_kind(head) if looks_binary(head) else _text_kind(head, name)


def is_trace(head: bytes, name: str) -> bool:
    """Whether a file is a profiler trace, by its first bytes or, where these may be one's, its name."""
    if not head or head.startswith(_LFS) or _HTML.match(head) or name.endswith(".riegeli"):
        return False
    return _trace_kind(head, name) is not None


def is_chrome_trace(head: bytes, name: str) -> bool:
    """Whether the bytes, unpacked where they are compressed, begin a trace in Chrome's JSON."""
    if head[:2] == b"\x1f\x8b":
        head = zlib.decompressobj(31).decompress(head, HEAD_BYTES)
    return name.endswith((".trace.json.gz", ".trace.json")) or _CHROME.search(head) is not None


def looks_damaged_as_text(head: bytes) -> bool:
    """Whether a binary file was read and written as text: bytes replaced by U+FFFD, or line ends made two bytes."""
    return b"\xef\xbf\xbd" in head or head.startswith(b"\r\n")


def _trace_kind(head: bytes, name: str) -> Kind | None:
    if name.endswith(".xplane.riegeli"):
        return Kind("a profiler trace in Riegeli records", _RIEGELI)
    if name.endswith(".xplane.pb") or _XPLANE.search(head[:64]):
        return Kind("a profiler trace (XSpace)", _TRACE)
    if name.endswith((".trace.json.gz", ".trace.json")) or _CHROME.search(head):
        return Kind("a profiler trace in Chrome's JSON", _TRACE)
    return None


def _binary_kind(head: bytes) -> Kind:
    if b"\xef\xbf\xbd" in head:
        return Kind("a binary file damaged by a conversion to text", "Copy it again, as binary.")
    return Kind("a binary file, not HLO text and not an HLO proto", _DUMP, is_certain=False)


def _text_kind(head: bytes, name: str) -> Kind:
    if b"\xef\xbf\xbd" in head and name.endswith(".pb"):
        return Kind("a binary file damaged by a conversion to text", "Copy it again, as binary.")
    if _SIDE_FILE.search(name):
        return Kind("a file that XLA writes beside the HLO of a dump", "Open the directory it stands in.")
    if name.endswith(".py"):
        return Kind("a Python script", f"Capture it first: hlotrace capture {name}")
    if head.startswith(b"; ModuleID"):
        return Kind("LLVM IR, which XLA's backend writes beside the HLO", _DUMP)
    if _MLIR.search(head):
        return Kind("MLIR (StableHLO), which goes into XLA", _DUMP)
    if head.lstrip()[:1] in (b"{", b"["):
        return Kind("JSON", _DUMP)
    return Kind("text without an HloModule line", _DUMP)
