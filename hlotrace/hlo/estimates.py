"""The compiler's estimates of an instruction's cycles, from the text of its backend_config."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo import _value_kernels

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
    model, bundles = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    _value_kernels.estimates(np.frombuffer(data, np.uint8), bounds, _KEY, _BUNDLES, _SKIP, model, bundles)
    model[model == _NO_ESTIMATE] = -1
    bundles[bundles == _NO_ESTIMATE] = -1
    return model, bundles
