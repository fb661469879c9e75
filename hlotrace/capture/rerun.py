"""Runs a program once more after the script: on the script's own arguments where they live, else on made-up ones."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from hlotrace.capture.listener import Call

_FILL = 0.01
"""What made-up floating-point arguments hold: real pages of memory, no zeros or infinities that would be cheaper."""


class Rerun:
    """A call that can be repeated. It does not keep the script's arrays alive.

    Args:
        call: the call; its program has been started.
    """

    def __init__(self, call: Call) -> None:
        self._executable = call.executable
        self._run = call.run
        self._references = [_reference(argument) for argument in call.arguments]
        self._arguments: list[Any] | None = None
        self._made_up: set[int] = set()

    @property
    def arguments_in_words(self) -> str:
        """Which arguments it runs with, once it ran."""
        if not self._made_up:
            return "the same arguments"
        if len(self._made_up) == len(self._executable._kept_var_idx):
            return f"arguments of the same shapes, filled with {_FILL} or 0"
        return f"the same arguments, and {_FILL} or 0 in those that the script no longer held"

    def forbidden(self) -> str | None:
        """Why the program must not be run again; None when it may."""
        import jax

        program = self._executable.unsafe_call
        if program.has_host_callbacks or program.has_unordered_effects or program.ordered_effects:
            return "it calls back into Python"
        if jax.process_count() > 1:
            return "other processes would have to run it too"
        return None

    def prepare(self) -> None:
        """Have all arguments at hand: what the last run consumed is made anew."""
        kept = sorted(self._executable._kept_var_idx)
        if self._arguments is None:
            self._arguments = [reference() for reference in self._references]
        arguments = zip(kept, self._executable.in_avals, self._executable._in_shardings, strict=False)
        for index, aval, sharding in arguments:
            value = self._arguments[index]
            if value is None or (hasattr(value, "is_deleted") and value.is_deleted()):
                self._arguments[index] = _filled(aval, sharding)
                self._made_up.add(index)

    def __call__(self) -> Any:
        """Start the program once; its outputs may not be ready yet."""
        if self._arguments is None:
            self.prepare()
        assert self._arguments is not None
        return self._run(*self._arguments)


def _reference(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:  # a Python or numpy scalar
        return lambda: value


def _filled(aval: Any, sharding: Any) -> Any:
    """An array of the abstract value `aval`, each shard in memory of its own."""
    import jax
    import numpy as np
    from jax._src import dtypes

    from hlotrace.capture.zeros import zeros_like

    if dtypes.issubdtype(aval.dtype, dtypes.extended) or aval.dtype == dtypes.float0:
        return zeros_like(aval, sharding, committed=True)
    value = _FILL if dtypes.issubdtype(aval.dtype, np.inexact) else 0
    shape = sharding.shard_shape(aval.shape)
    return jax.make_array_from_callback(aval.shape, sharding, lambda _: np.full(shape, value, aval.dtype))
