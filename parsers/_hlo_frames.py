"""The tables of file names, functions, locations and stack frames that newer HLO texts carry."""

from __future__ import annotations

import re

import numpy as np

from hlotrace.hlo.module import Frames

_SECTION = re.compile(r"\b(FileNames|FunctionNames|FileLocations|StackFrames)\s+(?=\d)")
_NAME = re.compile(r'(\d+)\s+"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ENTRY = re.compile(r"(\d+)\s+\{([^{}]*)\}")
_FIELD = re.compile(r"(\w+)=(-?\d+)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LARGEST = 2**31 - 1
_LOCATION = ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")


def read_frames(text: str) -> Frames:
    """The tables that stand in `text`; entries count from 1 in the order they stand in, as XLA reads them."""
    parts = _SECTION.split(text)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    stack = _entries(sections.get("StackFrames", ""), ("file_location_id", "parent_frame_id"))
    if not (stack[:, 1] == 0).any():
        stack[:, 1] -= 1  # XLA prints a parent's id plus one, so that none is 1
    return Frames(
        file_names=_names(sections.get("FileNames", "")),
        function_names=_names(sections.get("FunctionNames", "")),
        locations=_entries(sections.get("FileLocations", ""), _LOCATION),
        stack=stack,
    )


def _names(section: str) -> tuple[str, ...]:
    return tuple(_ESCAPE.sub(r"\1", name) for _, name in _NAME.findall(section))


def _entries(section: str, fields: tuple[str, ...]) -> np.ndarray:
    found = [dict(_FIELD.findall(body)) for _, body in _ENTRY.findall(section)]
    values = [[min(int(entry.get(field, 0)), _LARGEST) for field in fields] for entry in found]
    return np.array(values, np.int64).reshape(-1, len(fields))
