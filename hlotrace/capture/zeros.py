"""Arrays of zeros that cost no memory: each shows a part of one mapping of untouched pages.

The mapping is private and anonymous, so the kernel gives its pages only when they are written, and nothing writes them:
XLA takes the buffers as immutable, and a program that would consume one copies it first.
"""

from __future__ import annotations

import math
import mmap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_SMALLEST = 1 << 30

LARGEST_REAL = 1 << 20
"""Bytes up to which data is placed, and eager work is done, for real."""


class _Pages:
    """The mapping that all zeros share; a larger request makes a new one, kept alive by what shows it."""

    def __init__(self) -> None:
        self._bytes: np.ndarray[Any, np.dtype[np.uint8]] | None = None

    def first(self, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The first `count` bytes."""
        import numpy as np

        if self._bytes is None or self._bytes.size < count:
            size = max(_SMALLEST, 1 << (count - 1).bit_length()) if count else _SMALLEST
            pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
            self._bytes = np.frombuffer(pages, dtype=np.uint8)
        return self._bytes[:count]


_PAGES = _Pages()


def host_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """A read-only numpy array of zeros over untouched pages."""
    import numpy as np

    dtype = np.dtype(dtype)
    zeros: np.ndarray[Any, Any] = _PAGES.first(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)
    zeros.flags.writeable = False
    return zeros


def zeros_like(aval: Any, sharding: Any, *, committed: bool) -> Any:
    """A `jax.Array` of zeros (a key array for key types) of the abstract value `aval`, placed by `sharding`."""
    import numpy as np
    from jax._src import core, dtypes
    from jax._src.interpreters import pxla
    from jax._src.sharding_impls import physical_sharding

    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    if not dtypes.issubdtype(aval.dtype, dtypes.extended):
        return _plain_zeros(aval, sharding, committed=committed)
    physical = _plain_zeros(core.physical_aval(aval), physical_sharding(aval, sharding), committed=committed)
    shards = [shard.data for shard in physical.addressable_shards]
    return pxla.global_aval_to_result_handler(aval, sharding, committed)(shards)


def _plain_zeros(aval: Any, sharding: Any, *, committed: bool) -> Any:
    from jax._src.interpreters import pxla

    devices = list(sharding._addressable_device_assignment)
    shard = host_zeros(sharding.shard_shape(aval.shape), aval.dtype)
    return pxla.batched_device_put(aval, sharding, [shard] * len(devices), devices, committed)


def bytes_of(aval: Any) -> int:
    """Bytes of an array of the abstract value, without a layout's padding."""
    from jax._src import core, dtypes

    if not hasattr(aval, "shape"):
        return 0
    if dtypes.issubdtype(aval.dtype, dtypes.extended):
        aval = core.physical_aval(aval)
    return math.prod(size for size in aval.shape if isinstance(size, int)) * int(aval.dtype.itemsize)


class ZeroCall:
    """In the place of an executable's call: gives zeros of its outputs, the same arrays again and again.

    Args:
        avals, shardings: of all outputs.
        mutated: for every output the argument that it replaces, or None; null when the program mutates nothing.
    """

    def __init__(self, avals: list[Any], shardings: list[Any], *, committed: bool, mutated: list[int | None] | None):
        kept = mutated or [None] * len(avals)
        outputs = zip(avals, shardings, kept, strict=True)
        self._outputs = [(aval, sharding) for aval, sharding, replaces in outputs if replaces is None]
        self._committed = committed
        self._arrays: list[Any] = []

    def __call__(self, *_args: Any) -> list[Any]:
        """The outputs; an array that was deleted meanwhile is made anew."""
        if not self._arrays:
            self._arrays = [self._make(index) for index in range(len(self._outputs))]
        for index, array in enumerate(self._arrays):
            if hasattr(array, "is_deleted") and array.is_deleted():
                self._arrays[index] = self._make(index)
        return list(self._arrays)

    def _make(self, index: int) -> Any:
        aval, sharding = self._outputs[index]
        return zeros_like(aval, sharding, committed=self._committed)
