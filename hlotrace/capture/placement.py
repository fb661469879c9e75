"""Placing arrays on the fake devices without copying large ones: what is large becomes zeros over untouched pages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hlotrace.capture.zeros import LARGEST_REAL, bytes_of, host_zeros, zeros_like

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hlotrace.capture.seams import Seams


def install(seams: Seams) -> None:
    """Replace what copies an argument's, a `device_put`'s or a callback's data to devices."""
    pxla = "jax._src.interpreters.pxla"
    seams.replace(pxla, "shard_args", _shard_args, "shardings", "layouts", "copy_semantics", "args")
    seams.replace(pxla, "batched_device_put", _batched_device_put, "aval", "sharding", "xs", "devices")
    for module in ("jax._src.array", "jax"):
        seams.replace(module, "make_array_from_callback", _from_callback, "shape", "sharding", "data_callback")


def _is_large(aval: Any, sharding: Any) -> bool:
    """Whether all copies of an array together are; only plain arrays, since keys are small."""
    if not hasattr(aval, "shape") or not _is_plain(aval.dtype):
        return False
    total = bytes_of(aval)
    if total * sharding.num_devices <= LARGEST_REAL:
        return False
    shard = math.prod(sharding.shard_shape(aval.shape)) * aval.dtype.itemsize
    return bool(shard * sharding.num_devices > LARGEST_REAL)


def _is_plain(dtype: Any) -> bool:
    from jax._src import dtypes

    return not dtypes.issubdtype(dtype, dtypes.extended) and dtype != dtypes.float0


def _shard_args(original: Any) -> Any:
    def shard_args(
        shardings: Sequence[Any],
        layouts: Sequence[Any],
        copy_semantics: Sequence[Any],
        args: Sequence[Any],
        *rest: Any,
        **more: Any,
    ) -> Any:
        from jax._src import core
        from jax._src.array import ArrayImpl

        abstract: Any = core.shaped_abstractify
        placed: dict[int, Any] = {}
        for index, (arg, sharding) in enumerate(zip(args, shardings, strict=True)):
            if not isinstance(arg, ArrayImpl) and not hasattr(arg, "__array_interface__"):
                continue
            if getattr(arg, "sharding", None) == sharding:
                continue
            aval = abstract(arg)
            if _is_large(aval, sharding):
                placed[index] = zeros_like(aval, sharding, committed=True)
        if not placed:
            return original(shardings, layouts, copy_semantics, args, *rest, **more)
        others = [index for index in range(len(args)) if index not in placed]
        if others:
            picked = [[values[index] for index in others] for values in (shardings, layouts, copy_semantics, args)]
            placed |= dict(zip(others, original(*picked, *rest, **more), strict=True))
        return [placed[index] for index in range(len(args))]

    return shard_args


def _batched_device_put(original: Any) -> Any:
    def batched_device_put(
        aval: Any, sharding: Any, xs: Sequence[Any], devices: Sequence[Any], *rest: Any, **more: Any
    ) -> Any:
        if _is_large(aval, sharding) and not all(_is_there(x, device) for x, device in zip(xs, devices, strict=True)):
            zeros = host_zeros(sharding.shard_shape(aval.shape), aval.dtype)
            xs = [zeros] * len(xs)
        return original(aval, sharding, xs, devices, *rest, **more)

    return batched_device_put


def _is_there(x: Any, device: Any) -> bool:
    """Whether a shard is an array on its device already, so that nothing is copied."""
    from jax._src.array import ArrayImpl

    return isinstance(x, ArrayImpl) and x.sharding.num_devices == 1 and x.devices() == {device}


def _from_callback(original: Any) -> Any:
    def make_array_from_callback(shape: Any, sharding: Any, data_callback: Any, *args: Any, **kwargs: Any) -> Any:
        """One shard tells the type; a large array's other shards are not asked for."""
        first: dict[str, Any] = {}

        def once(index: Any) -> Any:
            if "shard" not in first:
                first["shard"] = data_callback(index)
            shard = first["shard"]
            return shard if stands_for_all(shard) else data_callback(index)

        def stands_for_all(shard: Any) -> bool:
            size = getattr(shard, "nbytes", 0) * getattr(sharding, "num_devices", 1)
            return hasattr(shard, "dtype") and size > LARGEST_REAL

        return original(shape, sharding, once, *args, **kwargs)

    return make_array_from_callback
