"""Whether a script ended because its target has too few devices, and how many it wanted."""

from __future__ import annotations

import math
import re
import traceback

from hlotrace.capture.provenance import is_library

_SHAPE = r"\(?\[?(\d+(?:, *\d+)*),?\]?\)?"
_TOLD = (
    re.compile(rf"Number of devices (\d+) must (?:be >=|equal) the product of mesh_shape {_SHAPE}"),
    re.compile(rf"cannot reshape array of size (\d+) into shape {_SHAPE}"),
    re.compile(r"requires (?P<wanted>\d+) logical devices, but only (?P<there>\d+) XLA devices are available"),
)
_CHECKS = (AssertionError, ValueError, RuntimeError)
_OF_DEVICES = re.compile(r"device_?count|devices\b", re.IGNORECASE)


def devices_asserted(error: BaseException, count: int) -> int | None:
    """How many devices a script's own check may want: of what it raises, or of the line that does; 0 is some number."""
    frames = traceback.extract_tb(error.__traceback__)
    if not isinstance(error, _CHECKS) or not frames or is_library(frames[-1].filename):
        return None
    said = f"{frames[-1].line} {error}"
    if not _OF_DEVICES.search(said):
        return None
    return next((number for number in map(int, re.findall(r"\b\d{1,4}\b", said)) if number > count), 0)


def devices_wanted(error: BaseException, count: int) -> int | None:
    """How many devices an exception asks for; None when it is not about the `count` that there are."""
    for pattern in _TOLD:
        match = pattern.search(str(error))
        if match is None:
            continue
        if "wanted" in match.groupdict():
            there, wanted = int(match["there"]), int(match["wanted"])
        else:
            there, wanted = int(match[1]), math.prod(int(size) for size in match[2].split(","))
        if there == count and wanted > count:
            return wanted
    return None
