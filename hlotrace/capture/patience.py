"""Notices a script that calls a program over and over for a value that no compile-only capture will give it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hlotrace.capture.spec import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from hlotrace.capture.session import Record, Session

_CALLS = 1000
_SECONDS = 20.0


class Patience:
    """The call of a program that gives zeros; says once that there is nothing more to wait for.

    A loop such as `while state.step < 100` never ends on zeros, and a long training loop has no more to show.
    """

    def __init__(self, session: Session, record: Record, call: Callable[..., Any]) -> None:
        self._session = session
        self._record = record
        self._call = call
        self._started = time.monotonic()
        self._said = False

    def __call__(self, *args: Any) -> Any:
        """The zeros."""
        if not self._said and self._record.calls >= _CALLS and self._nothing_new():
            self._said = True
            detail = (
                f"called {self._record.calls} times, and nothing new was compiled for {_SECONDS:.0f} s: its results "
                "are zeros here; Ctrl-C keeps what is captured, --run computes"
            )
            self._session.say(Event("note", self._record.module, self._session.target_name, detail=detail))
        return self._call(*args)

    def _nothing_new(self) -> bool:
        return time.monotonic() - max(self._started, self._session.compiled_at) > _SECONDS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)
