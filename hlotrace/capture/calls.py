"""Stands before the call of a captured program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.capture.listener import Call

if TYPE_CHECKING:
    from hlotrace.capture.session import Record, Session


class ProgramCall:
    """Counts the calls of an executable, and tells the listeners.

    JAX's fast path in C++ wants its own class here, so every call of the program passes through.
    """

    def __init__(self, session: Session, record: Record, executable: Any, real: Any) -> None:
        self._session = session
        self._record = record
        self._executable = executable
        self._real = real

    def __call__(self, *args: Any) -> Any:
        """Run the program."""
        self._record.calls += 1
        if not self._session.listeners:
            return self._real(*args)
        call = Call(self._record.module, self._executable, self._record.calls, args, self._real)
        for listener in self._session.listeners:
            listener.before_call(call)
        outputs = self._real(*args)
        for listener in self._session.listeners:
            listener.after_call(call, outputs)
        return outputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
