"""The compiler's estimates of an instruction's cycles, from the text of its backend_config."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_CYCLES = np.frombuffer(b'"estimated_cycles":', np.uint8)
_BUNDLES = np.frombuffer(b'"bundle_analysis_data":', np.uint8)
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
    model, bundles = _scan(np.frombuffer(data, np.uint8), bounds, _CYCLES, _BUNDLES)
    model[model == _NO_ESTIMATE] = -1
    bundles[bundles == _NO_ESTIMATE] = -1
    return model, bundles


@njit(cache=True)
def _scan(
    data: NDArray[np.uint8], bounds: NDArray[np.int32], cycles_key: NDArray[np.uint8], bundles_key: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the first estimate of each row, and the first inside the object of `bundles_key`.

    Rows follow each other in `data`, so one search for a key serves them all.
    """
    count = len(bounds) - 1
    model = np.full(count, -1, np.int64)
    bundles = np.full(count, -1, np.int64)
    for row in range(count):
        at, end = bounds[row], bounds[row + 1]
        bundles_end = -1
        while at < end:
            if data[at] != 34:  # a quotation mark
                at += 1
                continue
            if _begins(data, at, end, bundles_key):
                bundles_end = at + len(bundles_key)
                while bundles_end < end and data[bundles_end] != 125:  # the closing brace
                    bundles_end += 1
            elif _begins(data, at, end, cycles_key):
                value = _integer(data, at + len(cycles_key), end)
                if at < bundles_end:
                    if bundles[row] < 0:
                        bundles[row] = value
                elif model[row] < 0:
                    model[row] = value
            at += 1
    return model, bundles


@njit(cache=True)
def _begins(data: NDArray[np.uint8], at: int, end: int, key: NDArray[np.uint8]) -> bool:
    if at + len(key) > end:
        return False
    step = 1
    while step < len(key) and data[at + step] == key[step]:
        step += 1
    return step == len(key)


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
