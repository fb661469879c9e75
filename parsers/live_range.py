"""The `-live-range.txt` side file: the flattened schedule, and from where to where in it each value lives.

XLA writes it after scheduling (HloLiveRange::ToString, xla/hlo/utils/hlo_live_range.cc):

    HloLiveRange (max 127):
      InstructionSequence:
        0:p__wg__.1
      BufferLiveRange:
        slice-start.6{0}:110-121
"""

from __future__ import annotations

import re

import numpy as np

from hlotrace.hlo.live_ranges import LiveRanges

_SECTION = re.compile(
    r"^  (InstructionSequence|BufferLiveRange|Live ranges at (\d+) \(peak\)|Stack trace.*):", re.MULTILINE
)
_POSITION = re.compile(r"^    (\d+):(\S+)(?=\n)", re.MULTILINE)
_RANGE = re.compile(r"^    (\S+?)(\{[\d,]*\})?:(\d+)-(\d+)(?=\n)", re.MULTILINE)


def read_live_ranges(text: str) -> LiveRanges:
    """The live ranges that a text holds; a file that was cut keeps what stands before the cut."""
    sections = {match[1].split(" at ")[0]: match for match in _SECTION.finditer(text)}
    order = sorted(match.start() for match in sections.values())
    positions = _POSITION.findall(_body(text, sections.get("InstructionSequence"), order))
    ranges = _RANGE.findall(_body(text, sections.get("BufferLiveRange"), order))
    peak = sections.get("Live ranges")
    return LiveRanges(
        schedule=tuple(name for _, name in positions),
        instruction=tuple(name for name, _, _, _ in ranges),
        shape_index=tuple(index or "{}" for _, index, _, _ in ranges),
        start=np.array([int(start) for _, _, start, _ in ranges], np.int64),
        end=np.array([int(end) for _, _, _, end in ranges], np.int64),
        peak=int(peak[2]) if peak else None,
        problems=tuple(_problems(text, set(sections), [int(number) for number, _ in positions])),
    )


def _body(text: str, header: re.Match[str] | None, starts: list[int]) -> str:
    """What stands between a section's header and the next section."""
    if header is None:
        return ""
    following = [start for start in starts if start > header.start()]
    return text[header.end() : following[0] if following else len(text)]


def _problems(text: str, sections: set[str], numbers: list[int]) -> list[tuple[str, str, str]]:
    found = [
        (f"byte {len(text)}", f"there is no section {section!r}", "live ranges are missing or incomplete")
        for section in ("InstructionSequence", "BufferLiveRange")
        if section not in sections
    ]
    if numbers != list(range(len(numbers))):
        found.append(("InstructionSequence", "the positions do not count up from 0", "live ranges may be misplaced"))
    return found
