"""The trace reader: every event and stat as they were written, and an error or less of it when a file is damaged."""

from __future__ import annotations

import mmap
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlotrace.errors import ParseError
from hlotrace.parsers.xplane import XSpace, read_space

INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)
NAMES = st.text(min_size=1, max_size=9)


def everything(space: XSpace) -> list[Any]:
    """All of a trace as plain values."""
    out: list[Any] = []
    for plane in space.planes:
        metadata = plane.event_metadata
        for line in plane.lines:
            events = plane.read(line, all_stats=True)
            stats: list[list[Any]] = [[] for _ in range(len(events))]
            for owner, name, value in events.stats:
                stats[owner].append((name, value))
            rows = zip(events.metadata_ids, events.offset_ps, events.duration_ps, stats, strict=True)
            names = metadata.rows(events.metadata_ids)
            shown = [metadata.names[row] if row >= 0 else None for row in names]
            out.append((plane.name, line.name, [(n, *r[1:]) for n, r in zip(shown, rows, strict=True)]))
    return out


@st.composite
def written_planes(draw: Any) -> list[tuple[str, int, list[tuple[str, list[tuple[str, int, int, dict[str, Any]]]]]]]:
    values = st.one_of(INTEGERS, st.floats(allow_nan=False), st.text(max_size=200), st.binary(max_size=5))
    event = st.tuples(NAMES, INTEGERS, INTEGERS, st.dictionaries(NAMES, values, max_size=3))
    line = st.tuples(NAMES, st.lists(event, max_size=4))
    first = st.sampled_from([1, 100, 4090, 1 << 40, -(1 << 62)])
    return draw(st.lists(st.tuples(NAMES, first, st.lists(line, max_size=3)), min_size=1, max_size=3))


@given(written_planes())
def test_what_was_written_is_read(xspaces_module: ModuleType, planes: list[Any]) -> None:
    x = xspaces_module
    made = [
        x.Plane(name, [x.Line(text, [x.Event(*event) for event in events]) for text, events in lines], first_id=first)
        for name, first, lines in planes
    ]
    space = read_space(x.space(made), place="x")
    expected = [
        (name, text, [(event[0], event[1], event[2], list(event[3].items())) for event in events])
        for name, _, lines in planes
        for text, events in lines
    ]
    assert everything(space) == expected
    assert space.problems == []


@pytest.fixture(scope="session", name="xspaces_module")
def _xspaces_module(xspaces: ModuleType) -> ModuleType:
    return xspaces


def tolerated(data: bytes) -> XSpace | str:
    """A trace all of which could be asked for, or what the error says."""
    try:
        space = read_space(data, place="cut.xplane.pb")
        everything(space)
    except ParseError as error:
        return str(error)
    return space


def small(x: ModuleType) -> bytes:
    ops = [x.Event(f"op.{i % 3}", 1000 * i, 400, {"hlo_op": x.Ref(f"op.{i % 3}"), "run_id": i}) for i in range(20)]
    planes = [
        x.Plane("/device:TPU:0", [x.Line("XLA Ops", ops), x.Line("Steps", [x.Event("0", 0, 5000)])], {"peak": 918.0}),
        x.Plane("/host:CPU", [x.Line("main", [x.Event("call", 5, 7, {"text": "long " * 60})], timestamp_ns=3)]),
    ]
    return x.space(planes, "vm")


def test_stats_that_are_asked_for_come_in_columns(xspaces: ModuleType) -> None:
    space = read_space(small(xspaces), place="x")
    plane = space.planes[0]
    events = plane.read(plane.lines[0], stats=("run_id", "hlo_op", "absent"))
    kinds, values = events.held("run_id")
    assert values.tolist() == list(range(20))
    assert set(kinds.tolist()) == {4}
    assert [plane.stat_names[ref] for ref in events.held("hlo_op")[1][:4]] == ["op.0", "op.1", "op.2", "op.0"]
    assert not events.held("absent")[0].any()
    assert plane.stats == {"peak": 918.0}
    assert space.hostnames == ["vm"]
    assert space.planes[1].lines[0].timestamp_ns == 3


def test_metadata_holds_names_stats_and_payloads(xspaces: ModuleType) -> None:
    held = xspaces.Metadata(
        "fusion.1", {"hlo_category": "loop fusion", "flops": xspaces.Unsigned(1 << 63)}, b"\x01\x02"
    )
    plane = xspaces.Plane(
        "/device:TPU:0",
        [xspaces.Line("XLA Ops", [xspaces.Event("%fusion.1 = ...")])],
        metadata={"%fusion.1 = ...": held},
    )
    metadata = read_space(xspaces.space([plane]), place="x").planes[0].event_metadata
    assert metadata.display_names == ["fusion.1"]
    assert metadata.payloads == [b"\x01\x02"]
    assert list(metadata.stats) == [(0, "hlo_category", "loop fusion"), (0, "flops", 1 << 63)]
    assert metadata.stats.named("hlo_category") == {0: "loop fusion"}


def test_unknown_fields_are_stepped_over(xspaces: ModuleType) -> None:
    x = xspaces
    event = x.block(
        4, x.integer(99, 1 << 50) + x.integer(1, 7) + x.block(77, b"new") + x.integer(3, 5) + x.double(55, 1.5)
    )
    line = x.block(3, x.block(2, "line") + x.double(40, 1.0) + event + x.integer(41, 3) + event)
    data = x.integer(50, 3) + x.block(1, x.block(2, "plane") + line + x.block(90, "later"))
    plane = read_space(data, place="x").planes[0]
    events = plane.read(plane.lines[0], all_stats=True)
    assert events.metadata_ids.tolist() == [7, 7]
    assert events.duration_ps.tolist() == [5, 5]


def test_a_line_of_sums_gives_occurrences(xspaces: ModuleType) -> None:
    plane = xspaces.Plane(
        "p", [xspaces.Line("l", [xspaces.Event("e", 0, 9, occurrences=12), xspaces.Event("e", 4, 1)])]
    )
    read = read_space(xspaces.space([plane]), place="x").planes[0]
    events = read.read(read.lines[0])
    assert events.occurrences.tolist() == [12, 0]
    assert events.offset_ps.tolist() == [0, 4]


def test_a_cut_file_gives_what_is_there_or_an_error_with_its_byte(xspaces: ModuleType) -> None:
    whole = small(xspaces)
    full = everything(read_space(whole, place="x"))
    most = 0
    for size in range(len(whole)):
        space = tolerated(whole[:size])
        if isinstance(space, str):
            assert "byte" in space
            continue
        events = sum(len(line[2]) for line in everything(space))
        assert events <= sum(len(line[2]) for line in full)
        most = max(most, events)
        # A cut between two planes, or before the host's name, leaves a whole trace.
        assert space.problems or events in (21, 22)
    assert most == 22


def test_flipped_bytes_never_do_worse_than_an_error(xspaces: ModuleType) -> None:
    whole, dice = small(xspaces), random.Random(7)
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(dice.choice([1, 1, 2, 8])):
            data[dice.randrange(len(data))] = dice.randrange(256)
        found = tolerated(bytes(data))
        assert isinstance(found, XSpace) or "byte" in found


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_give_an_error_or_a_trace(data: bytes) -> None:
    assert tolerated(data)


@pytest.mark.parametrize("piece", [b"\x22\x00", b"\x22\x02\x08\x01", b"\x0a\x00", b"\x08\x01"])
def test_many_fields_in_few_bytes_cost_no_memory(xspaces: ModuleType, piece: bytes) -> None:
    data = xspaces.block(1, xspaces.block(2, "p") + xspaces.block(3, piece * 2_000_000))
    with pytest.raises(ParseError, match=r"in [48],0\d\d"):
        everything(read_space(data, place="x"))


SHARED = ["xprof/tpu_inference_2.xplane.pb", "reactant/*.xplane.pb", "tracelens/*.xplane.pb"]


@pytest.mark.parametrize("pattern", SHARED)
def test_real_files_hold_what_jax_reads_in_them(shared_data: Path, pattern: str) -> None:
    profiler = pytest.importorskip("jax.profiler", reason="jax is not installed")
    for path in sorted(shared_data.glob(pattern)):
        ours = read_space(path.read_bytes(), place=path.name)
        theirs = list(profiler.ProfileData.from_file(str(path)).planes)
        assert [plane.name for plane in ours.planes] == [plane.name for plane in theirs]
        for plane, other in zip(ours.planes, theirs, strict=True):
            lines = list(other.lines)
            assert [line.name or line.display_name for line in plane.lines] == [line.name for line in lines]
            for line, other_line in zip(plane.lines, lines, strict=True):
                same_events(plane, line, list(other_line.events))
        assert ours.problems == []


def same_events(plane: Any, line: Any, theirs: list[Any]) -> None:
    events = plane.read(line, all_stats=True)
    names = [plane.event_metadata.names[row] for row in plane.event_metadata.rows(events.metadata_ids)]
    assert names == [event.name for event in theirs]
    start = line.timestamp_ns + events.offset_ps / 1000
    assert np.allclose(start, [event.start_ns for event in theirs], rtol=0, atol=1)
    assert np.allclose(events.duration_ps / 1000, [event.duration_ns for event in theirs], rtol=0, atol=1)
    stats: list[list[Any]] = [[] for _ in names]
    for owner, name, value in events.stats:
        stats[owner].append((name, value))
    for ours, event in zip(stats, theirs, strict=True):
        other = list(event.stats)
        assert [name for name, _ in ours] == [name for name, _ in other]
        for (_, value), (_, known) in zip(ours, other, strict=True):
            assert value == known or isinstance(value, bytes) or value % (1 << 64) == known % (1 << 64)


def test_places_beyond_two_gigabytes_are_read(xspaces: ModuleType, tmp_path: Path) -> None:
    """A file that is mostly a hole: an unknown field of 5 GB before the plane that matters."""
    hole, plane = 5 << 30, small(xspaces)
    path = tmp_path / "large.xplane.pb"
    with path.open("wb") as file:
        file.write(xspaces.varint(100 << 3 | 2) + xspaces.varint(hole))
        file.seek(hole, 1)
        file.write(plane)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        assert everything(read_space(data, place="large")) == everything(read_space(plane, place="small"))


def test_a_plane_is_read_without_the_others(xspaces: ModuleType) -> None:
    whole = small(xspaces)
    first = xspaces.block(1, b"\x12\x06broken\x1a\xff\xff\xff\x07" + b"\xff" * 40)
    planes = read_space(first + whole, place="x").planes
    assert [plane.name for plane in planes] == ["broken", "/device:TPU:0", "/host:CPU"]
    assert len(planes[1].read(planes[1].lines[0])) == 20
    assert planes[0].problems == []
    assert planes[0].lines
    assert planes[0].problems


def test_a_large_line_costs_less_than_three_times_its_bytes(xspaces: ModuleType) -> None:
    x = xspaces
    event = x.Event("op", 123_456_789_012, 45_678, {"hlo_op": x.Ref("op"), "run_id": 1 << 30, "program_id": 12})
    plane = x.Plane("p", [])
    events = x.block(4, plane.event(event)) * 100_000
    data = x.block(1, plane.encode() + x.block(3, events))
    read = read_space(data, place="x").planes[0]
    events = read.read(read.lines[0], all_stats=True)
    columns = [*events.columns[:3], events.stats.owner, events.stats.ids, events.stats.kinds, events.stats.values]
    assert sum(column.nbytes for column in columns) < 3 * len(data)
