"""The compiler's estimates of an instruction's cycles, from the text of its backend_config."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_KEY = np.frombuffer(b'"estimated_cycles":', np.uint8)
_BUNDLES = np.frombuffer(b'"bundle_analysis_data":', np.uint8)
_SKIP = np.full(256, len(_KEY), np.int64)
_SKIP[_KEY[:-1]] = len(_KEY) - 1 - np.arange(len(_KEY) - 1)
"""How far the search for the key may go on when a byte stands where the key would end."""
_NO_ESTIMATE = (1 << 63) - 1
"""The largest int64 stands for an estimate that the compiler could not make."""


def estimated_cycles(backend_config: pa.StringArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each instruction the cost model's cycles, and those of its scheduled bundles; -1 where there are none."""
    _, offsets, data = backend_config.buffers()
    count = len(backend_config)
    if not count or data is None:
        none = np.full(count, -1, np.int64)
        return none, none.copy()
    bounds = np.frombuffer(offsets, np.int32)[backend_config.offset : backend_config.offset + count + 1]
    model, bundles = _scan(np.frombuffer(data, np.uint8), bounds, _KEY, _BUNDLES, _SKIP)
    model[model == _NO_ESTIMATE] = -1
    bundles[bundles == _NO_ESTIMATE] = -1
    return model, bundles


@njit(cache=True)
def _scan(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int32],
    key: NDArray[np.uint8],
    bundles_key: NDArray[np.uint8],
    skip: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first estimate of each row, and the first that stands in the object of `bundles_key`."""
    count = len(bounds) - 1
    model = np.full(count, -1, np.int64)
    bundles = np.full(count, -1, np.int64)
    length = len(key)
    for row in range(count):
        last, end = bounds[row] + length - 1, bounds[row + 1]
        while last < end:
            at = last - length + 1
            last += skip[data[last]]
            if not _stands(data, at, bounds[row], end, key):
                continue
            brace = _opening_brace(data, at, bounds[row])
            found = bundles if _stands(data, brace - len(bundles_key), bounds[row], end, bundles_key) else model
            if found[row] < 0:
                found[row] = _integer(data, at + length, end)
    return model, bundles


@njit(cache=True)
def _stands(data: NDArray[np.uint8], at: int, start: int, end: int, key: NDArray[np.uint8]) -> bool:
    """Whether `key` stands at `at`, within the text from `start` to `end`."""
    if at < start or at + len(key) > end:
        return False
    step = 0
    while step < len(key) and data[at + step] == key[step]:
        step += 1
    return step == len(key)


@njit(cache=True)
def _opening_brace(data: NDArray[np.uint8], at: int, start: int) -> int:
    """Where the object that surrounds `at` opens; `start` where it does not."""
    depth = 1
    while at > start and depth > 0:
        at -= 1
        if data[at] == 123:
            depth -= 1
        elif data[at] == 125:
            depth += 1
    return at


@njit(cache=True)
def _integer(data: NDArray[np.uint8], at: int, end: int) -> int:
    """The digits at `at`, in quotation marks or not; -1 where there are none."""
    while at < end and (data[at] == 34 or data[at] == 32):
        at += 1
    value = np.int64(-1)
    while at < end and 48 <= data[at] <= 57:
        value = max(value, np.int64(0)) * 10 + (data[at] - 48)
        at += 1
    return value
