"""The profiler's trace of a native capture: N steps of the program that does most of the work, compilation left out.

A program's third call opens the trace, unless a larger program was traced before: the first call compiled, the second
warmed up. What the script calls less often is run again once the script has ended.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from typing import TYPE_CHECKING, Any

from hlotrace import bundle
from hlotrace.capture import trace_window
from hlotrace.capture.rerun import Rerun
from hlotrace.capture.signatures import cost_analysis
from hlotrace.capture.spec import Event
from hlotrace.capture.trace_window import TraceWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hlotrace.capture.listener import Call
    from hlotrace.capture.seams import Seams
    from hlotrace.capture.session import Session

_LOG = "profiler.log"
_WARM_CALLS = 2
_TRIES = 3
_LONGEST = 120.0
"""Seconds after which a trace ends even if not all its steps were called: it grows with all that runs meanwhile."""
_SLOW = 20.0
"""A program that takes longer than so many seconds is run again once, not N times."""


class _Seen:
    """A program that was called."""

    def __init__(self, call: Call) -> None:
        self.work = _work(call.executable)
        self.calls = 0
        self.tries = 0
        self.rerun: Rerun | None = None

    @property
    def total_work(self) -> float:
        return self.work * self.calls


class NativeProfile:
    """A listener that makes the trace; see `hlotrace.capture.listener`.

    Args:
        session: gets the number of traced steps, and notes.
        steps: how many to trace.
        seams: of the session's watch.
    """

    def __init__(self, session: Session, steps: int, seams: Seams) -> None:
        self._session = session
        self._steps = steps
        self._seen: dict[str, _Seen] = {}
        self._window: TraceWindow | None = None
        self._windows = 0
        self._opened_at = 0.0
        self._best: TraceWindow | None = None
        self._given_up = False
        trace_window.count_compiles()
        trace_window.give_way_to_the_script(seams, self._give_way)

    def before_call(self, call: Call) -> None:
        """Open the trace, or mark the next step in it."""
        if self._given_up:
            return
        with self._no_harm():
            seen = self._seen.get(call.module) or self._seen.setdefault(call.module, _Seen(call))
            seen.calls = call.count
            if self._window is not None and time.monotonic() - self._opened_at > _LONGEST:
                self._close()
            if self._window is None and self._wants(call, seen):
                seen.tries += 1
                wait_for(call.arguments)
                self._window = self._new_window(call.module)
            if self._window is not None and self._window.module == call.module and self._window.is_ours:
                self._window.begin_step()

    def after_call(self, call: Call, outputs: list[Any]) -> None:
        """Close the trace after its last step."""
        if self._given_up:
            return
        with self._no_harm():
            self._seen[call.module].rerun = Rerun(call)
            window = self._window
            if window is not None and window.module == call.module and window.steps == self._steps:
                wait_for(outputs)
                self._close()

    def finish(self) -> None:
        """Make up for what the script did not call often enough, and keep the best trace."""
        with self._no_harm():
            self._close()
            if self._seen and not self._given_up:
                self._complete(max(self._seen, key=lambda module: self._seen[module].total_work))
        log = self._session.staging / bundle.LOGS / _LOG
        if log.exists() and not log.stat().st_size:
            log.unlink()
        if self._best is not None:
            self._best.directory.rename(self._session.staging / bundle.PROFILE)
            self._session.profile_steps = self._best.steps
            self._session.note(f"the profile has {self._best.steps} steps of {self._best.module}")

    def _wants(self, call: Call, seen: _Seen) -> bool:
        if call.count <= _WARM_CALLS or seen.tries >= _TRIES:
            return False
        return self._best is None or seen.work > self._seen[self._best.module].work

    def _new_window(self, module: str) -> TraceWindow:
        self._windows += 1
        self._opened_at = time.monotonic()
        staging = self._session.staging
        return TraceWindow(module, staging / f"{bundle.PROFILE}.{self._windows}", staging / bundle.LOGS / _LOG)

    def _close(self) -> None:
        """End the open trace; it is kept in the place of the one before if nothing was compiled in it."""
        window, self._window = self._window, None
        if window is None:
            return
        window.close()
        worse = window
        if window.is_clean and window.steps:
            self._best, worse = window, self._best
        if worse is not None:
            shutil.rmtree(worse.directory, ignore_errors=True)

    def _complete(self, main: str) -> None:
        """Run the main program again if its trace lacks steps."""
        seen, best = self._seen[main], self._best
        if best is not None and best.module == main and best.steps == self._steps:
            return
        if self._session.script_error or not self._session.finished or seen.rerun is None:
            return
        reason = seen.rerun.forbidden()
        if reason:
            self._session.note(f"{main} was called {_times(seen.calls)} and not run again for the profile: {reason}")
            return
        start = time.monotonic()
        target = main.partition("@")[2]
        self._session.say(Event("profile", main, target))
        wait_for(seen.rerun())
        steps = self._steps if time.monotonic() - start < _SLOW else 1
        window = self._window = self._new_window(main)
        for _ in range(steps):
            seen.rerun.prepare()
            window.begin_step()
            wait_for(seen.rerun())
            window.end_step()
        self._close()
        self._session.say(Event("profile", main, target, seconds=time.monotonic() - start))
        self._session.note(
            f"{main} was called {_times(seen.calls)} by the script; for the profile it was run {_times(steps)} more, "
            f"after the script's end, with {seen.rerun.arguments_in_words}"
        )

    def _give_way(self) -> None:
        if not self._given_up:
            self._session.note("the script profiles itself; hlotrace's own profile ends there")
            with self._no_harm():
                self._close()
            self._given_up = True

    @contextlib.contextmanager
    def _no_harm(self) -> Iterator[None]:
        """What goes wrong with the profiler must not reach the script."""
        try:
            yield
        except Exception as error:
            self._given_up = True
            self._session.note(f"no complete profile: {type(error).__name__}: {error}".partition("\n")[0])


def wait_for(arrays: Any) -> None:
    """Until the computations behind the arrays have ended; deleted ones are passed over."""
    import jax

    for leaf in jax.tree.leaves(arrays):
        if isinstance(leaf, jax.Array) and not leaf.is_deleted():
            leaf.block_until_ready()


def _work(executable: Any) -> float:
    """What one call costs, to rank programs: floating-point operations, and bytes where there are none to speak of."""
    costs = cost_analysis(executable) or {}
    return max(costs.get("flops", 0.0), costs.get("bytes accessed", 0.0))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
