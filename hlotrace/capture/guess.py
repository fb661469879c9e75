"""Shardings of a program that has no executable to tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def output_shardings(computation: Any) -> tuple[list[Any], list[Any]]:
    """Of a lowered program's inputs and outputs, where the compiler would have chosen them.

    An output takes the sharding of an input of the same shape and type that no other output took: a training step
    gives its state back. All else is replicated.
    """
    arguments = computation.compile_args
    devices = tuple(computation._device_list)
    everywhere = _replicated(devices)
    ins = [_known(sharding) or everywhere for sharding in arguments["in_shardings"]]
    free = list(zip(arguments["global_in_avals"], ins, strict=True))
    outs = []
    for aval, sharding in zip(arguments["global_out_avals"], arguments["out_shardings"], strict=True):
        outs.append(_known(sharding) or _taken_from(free, aval) or everywhere)
    return ins, outs


def _known(sharding: Any) -> Any:
    """The sharding, or None where the compiler was to choose any part of it."""
    if not hasattr(sharding, "memory_kind"):
        return None
    spec = getattr(sharding, "spec", ())
    return None if any(type(entry).__name__ == "UnconstrainedSingleton" for entry in spec) else sharding


def _taken_from(free: list[tuple[Any, Any]], aval: Any) -> Any:
    for index, (candidate, sharding) in enumerate(free):
        if getattr(candidate, "shape", None) == aval.shape and candidate.dtype == aval.dtype:
            del free[index]
            return sharding
    return None


def _replicated(devices: Sequence[Any]) -> Any:
    from jax._src import sharding_impls

    if len(devices) == 1:
        return sharding_impls.SingleDeviceSharding(devices[0])
    return sharding_impls.GSPMDSharding.get_replicated(tuple(devices))
