"""What a capture says on stderr while it works: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from hlotrace.capture.spec import Event

_PREFIX = "hlotrace: "
_BEFORE_LIVE = 0.4
"""Seconds a stage must last before a live line is drawn, so that short ones do not flicker between a script's lines."""
_PLAIN_REMINDER = 30.0
_DOING = {
    "topology": "asking for the topology",
    "trace": "tracing",
    "lower": "lowering",
    "compile": "compiling",
    "run": "running",
    "profile": "profiling",
}
_DONE = {"compile": "compiled", "profile": "profiled"}


class Progress:
    """The progress of one capture.

    Args:
        stream: where it is written; None says nothing.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._live = stream is not None and stream.isatty()
        self._event: Event | None = None
        self._started = 0.0
        self._reminded = 0.0
        self._drawn = False

    @property
    def current(self) -> str:
        """What is being done, such as `compiling jit_step for v5e:2x2`; empty between stages."""
        if self._event is None:
            return ""
        doing = _DOING.get(self._event.stage, self._event.stage)
        return f"{doing} {_subject(self._event)}".rstrip()

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._stream is not None:
            self._clear()
            self._stream.write(f"{_PREFIX}{text}\n")
            self._stream.flush()

    def event(self, event: Event) -> None:
        """A stage starts, or ends when it has seconds."""
        if event.stage in ("failed", "note"):
            self._event = None
            subject = f"{_subject(event)}: " if event.function else ""
            self.say(f"{subject}{event.detail.splitlines()[0] if event.detail else 'failed'}")
        elif event.seconds is not None:
            self._event = None
            self._clear()
            if event.stage in _DONE:
                self.say(f"{_DONE[event.stage]} {_subject(event)} in {event.seconds:.1f} s")
        elif event.stage in _DOING:
            self._event = event
            self._started = self._reminded = time.monotonic()

    def tick(self) -> None:
        """Redraw; call it a few times a second."""
        if self._event is None or self._stream is None:
            return
        now = time.monotonic()
        if self._live and now - self._started > _BEFORE_LIVE:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{_PREFIX}{self.current}  {now - self._started:.1f} s"[: width + 4])
            self._stream.flush()
            self._drawn = True
        elif not self._live and now - self._reminded > _PLAIN_REMINDER:
            self._reminded = now
            self.say(f"still {self.current}, {now - self._started:.0f} s")

    def _clear(self) -> None:
        if self._drawn and self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False


def _subject(event: Event) -> str:
    """Which program, for which target; a module's name ends in the target already."""
    function, _, _ = event.function.partition("@")
    return " for ".join(word for word in (function, event.target) if word)
