"""Damaged messages of a trace: what stands before the damage is read, and the place is written down."""

from __future__ import annotations

import numpy as np

from hlotrace.parsers._wire_columns import CUT_FAULTS, Fields, scan

Problem = tuple[str, str, str]
"""Place, what is there, consequence."""


def fields_up_to_damage(data: bytes, place: str, start: int, end: int, problems: list[Problem], where: str) -> Fields:
    """The fields of one message up to its first fault, and of a field that the fault cuts what is there of it.

    Args:
        problems: the fault is added to it.
        where: what the message is, for the consequence; empty for the whole file.
    """
    faults: list[tuple[int, str]] = []
    starts, ends = np.array([start]), np.array([end])
    fields = scan(data, place, starts, ends, faults=faults)
    if not faults:
        return fields
    at, what = faults[0]
    if end == len(data) and what in CUT_FAULTS:
        what = f"the end of the file at byte {end:,}, within what begins here"
    note(problems, [(at, what)], f"what follows {where}is not read")
    rest = _cut_field(data, at, end)
    if rest is None:
        return fields
    number, content = rest
    columns = (fields.owner, fields.number, fields.value, fields.stop)
    added = [np.append(column, value) for column, value in zip(columns, (0, number, content, end), strict=True)]
    return Fields(data, place, starts, ends, *added)


def _cut_field(data: bytes, at: int, end: int) -> tuple[int, int] | None:
    """Number and first byte of a field with a length, whose content is cut; None for any other."""
    tag, at = _small_varint(data, at, end)
    if tag & 7 != 2 or tag < 8:
        return None
    _, at = _small_varint(data, at, end)
    return (tag >> 3, at) if at <= end else None


def _small_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The varint at `at` and the byte after it, which is beyond `end` where it does not end."""
    value = shift = 0
    while at < end and shift < 70:
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
        shift += 7
    return 0, end + 1


def note(problems: list[Problem], faults: list[tuple[int, str]], consequence: str) -> None:
    """Write faults down as problems."""
    problems.extend((f"byte {at}", what, consequence) for at, what in faults)
