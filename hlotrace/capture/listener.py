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
        arguments: what it is called with, dropped ones included; do not keep them alive.
        run: starts the program with such arguments, uncounted and unheard.
    """

    module: str
    executable: Any
    count: int
    arguments: tuple[Any, ...]
    run: Callable[..., Any]


class Listener(Protocol):
    """Told of every call, in order, on the thread that calls."""

    def before_call(self, call: Call) -> None:
        """The program is compiled and about to start."""

    def after_call(self, call: Call, outputs: list[Any]) -> None:
        """The program was started; its outputs may not be ready yet."""

    def finish(self) -> None:
        """The script has ended; its arrays are still alive, `atexit` functions have not run."""
