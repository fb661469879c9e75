"""Damaged messages of a trace: what stands before the damage is read, and the place is written down."""

from __future__ import annotations

import numpy as np

from hlotrace.parsers._wire_columns import Fields, scan


def fields_up_to_damage(
    data: bytes, place: str, start: int, end: int, problems: list[tuple[str, str, str]], where: str
) -> Fields:
    """The fields of one message up to its first fault, and of a field that the file's end cuts, what is there of it."""
    faults: list[tuple[int, str]] = []
    starts, ends = np.array([start]), np.array([end])
    fields = scan(data, place, starts, ends, faults=faults)
    if not faults:
        return fields
    rest = _cut_field(data, faults[0][0], end)
    if rest is not None and rest[1] <= end:
        what = f"the file ends at byte {len(data):,}, within what begins here" if end == len(data) else faults[0][1]
        faults = [(faults[0][0], what)]
        number, content = rest
        extended = [
            np.append(column, value)
            for column, value in zip(
                (fields.owner, fields.number, fields.value, fields.stop), (0, number, content, end), strict=True
            )
        ]
        fields = Fields(data, place, starts, ends, *extended)
    note(problems, faults, f"what follows {where} is not read".replace("  ", " "))
    return fields


def _cut_field(data: bytes, at: int, end: int) -> tuple[int, int] | None:
    """Number and first byte of a field with a length, whose content is cut; None for any other."""
    tag, at = _small_varint(data, at, end)
    if tag & 7 != 2 or tag < 8:
        return None
    _, at = _small_varint(data, at, end)
    return (tag >> 3, at) if at <= end else None


def _small_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
        shift += 7
    return 0, end + 1


def note(problems: list[tuple[str, str, str]], faults: list[tuple[int, str]], consequence: str) -> None:
    problems.extend((f"byte {at}", what, consequence) for at, what in faults)
