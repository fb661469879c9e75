"""The targets of custom calls, and what is known of the operations behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule

_NO_ARITHMETIC = (
    *("AllocateBuffer", "AssumeGatherIndicesInBound", "AsyncCollective", "ConcatBitcast", "CreateBuffer"),
    *("LayoutConstraint", "MoveTo", "Noop", "PadToStatic", "Pin", "PrepareAsyncCall", "SPMD", "SetBound", "Sharding"),
    *("SliceToDynamic", "Unpin", "X64Combine", "X64Split", "ZeroCrop", "annotate_device_placement", "xla.sdy."),
)
"""How targets begin that mark or move values and compute none."""
_ESTIMATE = r'"cost_estimate":\s*\{[^{}]*"flops":\s*"?(?P<flops>\d{1,18})'
UNKNOWN = -1


@dataclass(frozen=True)
class Targets:
    """The distinct targets, and which of them each instruction calls (-1: it is no custom call)."""

    names: Sequence[str]
    code: NDArray[np.int32]

    def calls(self, *starts: str) -> NDArray[np.bool_]:
        """Which instructions call a target whose name begins in one of these ways."""
        wanted = np.array([name.startswith(starts) for name in self.names] + [False], bool)
        found: NDArray[np.bool_] = wanted[self.code]
        return found


def targets_of(column: pa.StringArray) -> Targets:
    """The targets of a column that has them, null where there is none."""
    if column.null_count == len(column):
        return Targets((), np.full(len(column), -1, np.int32))
    encoded = column.dictionary_encode()
    return Targets(encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False))


def stated_flops(hlo: HloModule, targets: Targets, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of these custom calls the operations in its cost estimate, 0 for what computes nothing; else -1."""
    found = pc.struct_field(pc.extract_regex(hlo.backend_config.take(rows), _ESTIMATE), "flops")
    stated: NDArray[np.int64] = found.cast("int64").fill_null(UNKNOWN).to_numpy(zero_copy_only=False).copy()
    stated[(stated == UNKNOWN) & targets.calls(*_NO_ARITHMETIC)[rows]] = 0
    return stated
