"""One profiler trace around a few steps of one program, with step markers, and whether anything compiled in it."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from hlotrace.capture.topology import stderr_to

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hlotrace.capture.seams import Seams

_STEP_NAME = "step"
_COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"


class TraceWindow:
    """A trace that runs from the first `begin_step` to `close`.

    Args:
        module: the program whose calls are the steps.
        directory: the profiler's log directory; it gets `plugins/profile/<run>/`.
        log: what the profiler's plugins write to stderr as it starts and stops goes there.
    """

    def __init__(self, module: str, directory: Path, log: Path) -> None:
        self.module = module
        self.directory = directory
        self._log = log
        self.steps = 0
        self._thread = threading.get_ident()
        self._compiles = _compiles[0]
        self._marker: Any = None
        self._open = False

    @property
    def is_clean(self) -> bool:
        """Whether nothing was compiled since the window was made."""
        return _compiles[0] == self._compiles

    @property
    def is_ours(self) -> bool:
        """Whether this thread made it; step markers belong to a thread."""
        return self._thread == threading.get_ident()

    def begin_step(self) -> None:
        """End the step before, if there is one, and mark the start of the next; the first starts the trace."""
        import jax

        if not self._open:
            with stderr_to(self._log):
                _start_trace(self.directory)
            self._open = True
        self.end_step()
        self._marker = jax.profiler.StepTraceAnnotation(_STEP_NAME, step_num=self.steps)
        self._marker.__enter__()
        self.steps += 1

    def end_step(self) -> None:
        """Mark the end of the current step."""
        if self._marker is not None:
            self._marker.__exit__(None, None, None)
            self._marker = None

    def close(self) -> None:
        """End the trace and write it."""
        jax: Any = sys.modules["jax"]
        self.end_step()
        if self._open:
            self._open = False
            with stderr_to(self._log):
                jax.profiler.stop_trace()


_compiles = [0]
_counting: list[bool] = []
_own_start = threading.local()


def count_compiles() -> None:
    """Count every compile from now on, eager primitives too."""
    import jax

    def heard(event: str, *_: Any, **__: Any) -> None:
        if event == _COMPILE_EVENT:
            _compiles[0] += 1

    if not _counting:
        _counting.append(True)
        jax.monitoring.register_event_duration_secs_listener(heard)


def give_way_to_the_script(seams: Seams, close: Callable[[], None]) -> None:
    """Before the script starts a profile of its own, `close` ends ours: only one may run."""
    from jax._src import profiler

    if hasattr(profiler, "ProfileSession"):
        places = [("jax._src.profiler", "ProfileSession.start")]
    else:
        places = [("jax._src.profiler", "start_trace"), ("jax.profiler", "start_trace")]
    for module, name in places:
        seams.replace(module, name, lambda original: _closing_first(original, close))


def _closing_first(original: Any, close: Callable[[], None]) -> Any:
    def start(*args: Any, **kwargs: Any) -> Any:
        if not getattr(_own_start, "now", False):
            close()
        return original(*args, **kwargs)

    return start


def _start_trace(directory: Path) -> None:
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    _own_start.now = True
    try:
        jax.profiler.start_trace(str(directory), profiler_options=options)
    finally:
        _own_start.now = False
