"""What kind of work a traced op is where its HLO is not there: by the trace's own category, opcode or kernel name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hlotrace.hlo.category import COLLECTIVES, category_of_opcode

if TYPE_CHECKING:
    from hlotrace.trace.lanes import Op

_BY_TRACE = {
    "convolution fusion": "convolution",
    "custom fusion": "custom call",
    "data formatting": "data movement",
    "input fusion": "reduction",
    "loop fusion": "loop fusion",
    "non-fusion elementwise": "elementwise",
}
"""The profiler's categories that are no opcode, and what they are here."""

_NUMBER = re.compile(r"(\.\d+)+$")
_COPIES = ("memcpy", "memset", "copybuffer", "fillbuffer")
_COMMUNICATION = ("nccl", "rccl", "nvshmem")
_KERNEL_KINDS = (
    ("allreduce", "all-reduce"),
    ("allgather", "all-gather"),
    ("reducescatter", "reduce-scatter"),
    ("alltoall", "all-to-all"),
    ("sendrecv", "collective-permute"),
    ("broadcast", "collective-broadcast"),
)


def opcode_of(instruction: str) -> str:
    """The opcode in an instruction's name: `all-reduce.3` gives `all-reduce`."""
    return _NUMBER.sub("", instruction)


def category_of(op: Op) -> str:
    """The category of an op by what the trace says of it."""
    if is_communication(op.name):
        return "collective"
    if any(word in op.name.lower() for word in _COPIES):
        return "data movement"
    said = _BY_TRACE.get(op.hlo_category or "") or category_of_opcode(op.hlo_category or "")
    return said or (op.instruction and category_of_opcode(opcode_of(op.instruction))) or "other"


def is_communication(kernel: str) -> bool:
    """Whether a kernel is of a communication library."""
    return any(word in kernel.lower() for word in _COMMUNICATION)


def collective_kind(op: Op, opcode: str | None) -> str | None:
    """Which collective an op is, as `all-reduce`; None where it does not say."""
    for text in filter(None, (opcode, op.hlo_category, op.instruction)):
        plain = opcode_of(text)
        for half in ("-start", "-done"):
            plain = plain.removesuffix(half)
        found = next((name for name in COLLECTIVES if plain == name), None)
        if found is not None:
            return found
    flat = f"{op.name} {op.instruction or ''}".lower().replace("_", "").replace("-", "")
    return next((kind for word, kind in _KERNEL_KINDS if word in flat), None)
