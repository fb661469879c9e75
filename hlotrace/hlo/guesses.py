"""What a module alone gives away of its stage and its platform, where no file name or manifest says it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hlotrace.hlo.schedule import is_scheduled

if TYPE_CHECKING:
    from hlotrace.hlo.module import HloModule

_GPU_CALL = re.compile(r'custom_call_target="(__cu|__triton|__hip|cu|hip|xla\.gpu)')
_CPU_CALL = re.compile(r'custom_call_target="(__onednn|__cpu|__eigen|lapack_)')


def guessed_stage(hlo: HloModule) -> str:
    """The stage of a module whose file name does not say it: scheduled or fused means optimised."""
    return "after_optimizations" if is_scheduled(hlo) or "fusion" in hlo.opcodes else "before_optimizations"


def platform_of(hlo: HloModule) -> str | None:
    """The platform as far as the program gives it away: tiled layouts are TPU's, library calls are each their own."""
    if any(shape.layout and shape.layout.tiles for shape in hlo.shapes):
        return "tpu"
    if "custom-call" not in hlo.opcodes:
        return None
    calls = hlo.raw_attributes.filter(pa.array(hlo.has_opcode("custom-call")))
    targets = " ".join(pc.unique(calls).drop_null().to_pylist())
    if _GPU_CALL.search(targets):
        return "gpu"
    return "cpu" if _CPU_CALL.search(targets) else None
