"""The `-buffer-assignment.txt` side file: which values share which allocation, where, and of what size.

XLA writes it after buffer assignment (BufferAssignment::ToString, xla/service/buffer_assignment.cc):

    allocation 2: size 8388608, parameter 9, shape |bf16[4,1024,1024]| at ShapeIndex {}:
     value: <224 x.1 @0> (size=8388608,offset=0): bf16[4,1024,1024]{2,1,0:T(8,128)(2,1)}

Instruction names are those of `after_optimizations`, which `after_codegen` keeps.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from hlotrace.hlo.assignment import BufferAssignment, categorize
from hlotrace.hlo.shape_text import strip_comments

_ALLOCATION = re.compile(r"^allocation (\d+): size (\d+)(?:, color (\d+))?(.*?):?(?=\n)", re.MULTILINE)
_PARAMETER = re.compile(r", parameter (\d+), shape \|.*?\| at ShapeIndex (\{[\d,]*\})")
_VALUE = re.compile(
    r"^ value: <(\d+) (\S+?)(\{[\d,]*\})?(?: \(phi\))? @(\d+)> \(size=(\d+),offset=(\d+)\): (.*)(?=\n)", re.MULTILINE
)
_LINE = re.compile(r"^(?! value: <|allocation \d|BufferAssignment:|\s*$).*$|^ value: <(?!.*: ).*$", re.MULTILINE)
_END = re.compile(r"^Total bytes used:|^\s*Used values:", re.MULTILINE)


def read_buffer_assignment(text: str) -> BufferAssignment:
    """The assignment that a text holds; what could not be read is in its `problems`.

    A file that was cut keeps all that stands before the cut.
    """
    end = _END.search(text)
    body = text[: end.start()] if end else text
    allocations = list(_ALLOCATION.finditer(body))
    values = list(_VALUE.finditer(body))
    starts = np.array([match.start() for match in values], np.int64)
    bounds = np.array([match.start() for match in allocations], np.int64)
    value_start = np.searchsorted(starts, np.append(bounds, len(body)))
    parameters = [_PARAMETER.search(match[4]) for match in allocations]
    return BufferAssignment(
        index=_integers([match[1] for match in allocations]),
        size=_integers([match[2] for match in allocations]),
        color=_integers([match[3] or "0" for match in allocations]),
        category=np.array([_category(match[4]) for match in allocations], np.int32),
        parameter_number=_integers([match[1] if match else "-1" for match in parameters]),
        parameter_index=tuple(match[2] if match else "" for match in parameters),
        value_start=value_start.astype(np.int64),
        value_id=_integers([match[1] for match in values]),
        instruction=pa.array([match[2] for match in values], pa.string()),
        shape_index=pa.array([match[3] or "{}" for match in values], pa.string()),
        offset=_integers([match[6] for match in values]),
        value_size=_integers([match[5] for match in values]),
        shape=pa.array([strip_comments(match[7]) for match in values], pa.string()),
        problems=(*_problems(body), *_cut(text)),
    )


def _integers(texts: list[str]) -> np.ndarray:
    return np.array([int(text) for text in texts], np.int64)


def _category(words: str) -> int:
    return categorize(
        parameter=", parameter " in words,
        output="maybe-live-out" in words,
        thread_local="thread-local" in words,
        constant=", constant" in words,
        preallocated="preallocated-temp" in words,
    )


def _cut(text: str) -> list[tuple[str, str, str]]:
    """A row where the text stops within a line."""
    if not text or text.endswith("\n"):
        return []
    last = text.rpartition("\n")[2]
    return [(f"line {text.count(chr(10)) + 1}", f"the file stops within {last[:80]!r}", "what followed is missing")]


def _problems(body: str) -> list[tuple[str, str, str]]:
    """A row for each line that is none we know."""
    found = []
    for match in _LINE.finditer(body):
        line = body.count("\n", 0, match.start()) + 1
        found.append(
            (f"line {line}", f"{match[0].strip()[:80]!r} is no allocation or value", "it is left out of the buffers")
        )
    if not body.lstrip().startswith("BufferAssignment:"):
        found.append(("line 1", "the file does not begin with 'BufferAssignment:'", "its buffers may be incomplete"))
    return found
