"""What stands around an HloModuleProto's computations: the header's attributes, and the stack frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo.module import Frames
from hlotrace.parsers._proto_attributes import frontend_attributes_text
from hlotrace.parsers._proto_shape import shape_text
from hlotrace.parsers._proto_text import ints, numbered

if TYPE_CHECKING:
    from hlotrace.parsers._wire import Message

_ALIAS_KINDS = ("", "may-alias", "must-alias")


def header_attributes(module: Message) -> dict[str, str]:
    """The header's attributes as HLO text writes them, of those that the proto knows."""
    found: dict[str, str] = {}
    if 7 in module:
        found["is_scheduled"] = "true"
    if aliases := [_alias(entry) for entry in module.message(8).messages(1)]:
        found["input_output_alias"] = f"{{ {', '.join(aliases)} }}"
    if donors := [_donor(entry) for entry in module.message(18).messages(1)]:
        found["buffer_donor"] = f"{{ {', '.join(donors)} }}"
    if 4 in module:
        found["entry_computation_layout"] = _program_shape(module.message(4))
    if 15 in module:
        devices = module.message(15)
        for number, key in ((1, "replica_count"), (2, "num_partitions")):
            if (count := devices.integer(number)) > 1:
                found[key] = str(count)
    if attributes := frontend_attributes_text(module.message(19)):
        found["frontend_attributes"] = attributes
    return found


def _program_shape(program: Message) -> str:
    result = program.message(2)
    elements = list(result.messages(4))
    result_text = f"({numbered(map(shape_text, elements))})" if elements else shape_text(result)
    return f"{{({numbered(map(shape_text, program.messages(1)))})->{result_text}}}"


def _alias(entry: Message) -> str:
    kind = entry.integer(4)
    kind_text = f", {_ALIAS_KINDS[kind]}" if 0 < kind < len(_ALIAS_KINDS) else ""
    return f"{ints(entry.integers(1))}: ({entry.integer(2)}, {ints(entry.integers(3))}{kind_text})"


def _donor(entry: Message) -> str:
    return f"({entry.integer(1)}, {ints(entry.integers(2))})"


def read_frames(frames: Message) -> Frames:
    """A StackFrameIndexProto; older ones have no end lines and columns, which then are those of the beginning."""
    locations = [
        [place.integer(1), place.integer(2), line := place.integer(3), place.integer(5, line), column, end]
        for place in frames.messages(3)
        for column in [place.integer(4)]
        for end in [place.integer(6, column)]
    ]
    stack = [[frame.integer(1), frame.integer(2)] for frame in frames.messages(4)]
    return Frames(
        tuple(frames.texts(1)),
        tuple(frames.texts(2)),
        np.array(locations, np.int64).reshape(-1, 6),
        np.array(stack, np.int64).reshape(-1, 2),
    )
