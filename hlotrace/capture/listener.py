"""What wants to know of the calls of captured programs, such as the profiler of native captures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Call:
    """One call of a captured program on the backend that really runs.

    Attributes:
        module: the program's `bundle.Program.module`.
        executable: what JAX runs, a `MeshExecutable`.
        count: calls of this program so far, this one included; 1 is the call that compiled.
        run_again: starts the program once more with arguments like those of this call (zeros: the
            program may have consumed its own) and gives its outputs.
    """

    module: str
    executable: Any
    count: int
    run_again: Callable[[], Any]


class Listener(Protocol):
    """Told of every call, in order, on the thread that calls."""

    def before_call(self, call: Call) -> None:
        """The program is compiled and about to start."""

    def after_call(self, call: Call, outputs: list[Any]) -> None:
        """The program was started; its outputs may not be ready yet."""

    def finish(self) -> None:
        """The script has ended; its arrays are still alive, `atexit` functions have not run."""
