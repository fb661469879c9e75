"""A profiler trace in Chrome's JSON (`.trace.json`, `.trace.json.gz`), one event after another.

Read leniently, as it is found: control characters inside texts, an empty event at the end, a file that stops midway.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any

from hlotrace.errors import ParseError

MOST_EVENTS = 1_000_000
"""Where the profiler stops writing events into this format, without a word."""

_PIECE = 1 << 20
_LONGEST_EVENT = 1 << 24
_BEGIN = re.compile(r'"traceEvents"\s*:\s*\[|^\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_HEAD = 1 << 16
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class ChromeEvents:
    """The events of a trace, as JSON has them; `problems` is filled while they are read."""

    def __init__(self, raw: IO[bytes], place: str) -> None:
        head = raw.read(2)
        raw.seek(0)
        self.problems: list[tuple[str, str, str]] = []
        self.place = place
        self._stream: IO[bytes] = gzip.GzipFile(fileobj=raw) if head == b"\x1f\x8b" else raw  # type: ignore[assignment]
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text, self._at, self._read = "", 0, 0
        self._ended = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Every event.

        Raises:
            ParseError: there is no list of events in it.
        """
        self.begin()
        scan = json.JSONDecoder(strict=False).raw_decode
        complete = 0
        while True:
            if not self._next():
                return self._end(complete, whole=False)
            if self._text[self._at] == "]":
                return self._end(complete, whole=True)
            try:
                event, self._at = scan(self._text, self._at)
            except json.JSONDecodeError:
                if len(self._text) - self._at > _LONGEST_EVENT or not self._more():
                    return self._end(complete, whole=False)
                continue
            if isinstance(event, dict):
                complete += event.get("ph") == "X"
                yield event

    def begin(self) -> None:
        """Go to the first event.

        Raises:
            ParseError: there is no list of events.
        """
        while (found := _BEGIN.search(self._text)) is None:
            if len(self._text) > _HEAD * 16 or not self._more():
                raise ParseError(
                    "expected a profiler trace in Chrome's JSON, found no list of events",
                    place=self.place,
                    remedy="The file is cut, damaged, or something else.",
                )
        self._at = found.end()

    def _next(self) -> bool:
        """Go to what stands after commas and blanks; whether there is anything."""
        while True:
            found = _BETWEEN.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return True
            if not self._more():
                return False

    def _more(self) -> bool:
        """Read on; whether there was more."""
        if self._ended:
            return False
        try:
            piece = self._stream.read(_PIECE)
        except _DAMAGE as error:
            self.problems.append((f"byte {self._read:,} unpacked", f"damaged: {error}", "what follows is not read"))
            piece = b""
        self._read += len(piece)
        self._ended = not piece
        self._text = self._text[self._at :] + self._decoder.decode(piece, final=self._ended)
        self._at = 0
        return bool(piece)

    def _end(self, complete: int, *, whole: bool) -> None:
        if not whole and not self.problems:
            left = self._text[self._at : self._at + 40]
            what = f"no event: {left!r}" if left.strip() else "the end of the file within the list of events"
            self.problems.append(
                (f"byte {self._read - len(self._text) + self._at:,}", what, "what follows is not read")
            )
        if complete >= MOST_EVENTS:
            self.problems.append(
                (
                    "",
                    f"{complete:,} events: the profiler stops writing this format at {MOST_EVENTS:,}",
                    "later events are missing; the .xplane.pb of the same run has them all",
                )
            )
