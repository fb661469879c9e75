"""Arithmetic on spans against the plainest way to do the same."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.hlo.replica_groups import groups_of
from hlotrace.trace.spans import Cover, added_up, groups, in_order, medians, nested

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=12)


def columns(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([start for start, _ in spans], np.int64), np.array([length for _, length in spans], np.int64)


@given(SPANS, st.tuples(st.integers(0, 40), st.integers(0, 20)))
def test_a_cover_holds_what_any_span_covers(spans: list[tuple[int, int]], window: tuple[int, int]) -> None:
    cover = Cover.of(*columns(spans))
    covered = {at for start, length in spans for at in range(start, start + length)}
    assert cover.total == len(covered)
    begin, length = window
    assert cover.within(np.array([begin]), np.array([length]))[0] == len(covered & set(range(begin, begin + length)))


def tree(depth: int, start: int, length: int) -> list[tuple[int, int]]:
    """A span and, inside it, two halves, and so on."""
    inside = [tree(depth - 1, start + 1 + part * (length // 2), length // 2 - 1) for part in range(2)] if depth else []
    return [(start, length), *(span for half in inside for span in half)]


def test_self_times_of_nested_spans_add_up_to_the_outermost() -> None:
    start, length = columns(tree(4, 0, 1024))
    order = in_order(start, length)
    assert order is None
    self_time, is_leaf = nested(start, length)
    assert self_time.sum() == 1024
    assert is_leaf.sum() == 16
    assert (self_time[is_leaf] == length[is_leaf]).all()


def test_equal_starts_nest_the_shorter_in_the_longer_and_touching_spans_do_not_nest() -> None:
    start, length = columns([(10, 5), (0, 4), (0, 10), (4, 0)])
    order = in_order(start, length)
    assert order is not None
    self_time, is_leaf = nested(start[order], length[order])
    assert self_time.tolist() == [6, 4, 0, 5]
    assert is_leaf.tolist() == [False, True, True, True]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1 << 57)), max_size=30))
def test_sums_and_medians_of_groups_are_exact(rows: list[tuple[int, int]]) -> None:
    group, values = np.array([g for g, _ in rows], np.int32), np.array([v for _, v in rows], np.int64)
    counts, totals = added_up(group, values, 6)
    found = medians(group, values, counts)
    for number in range(6):
        own = [value for of, value in rows if of == number]
        assert counts[number] == len(own)
        assert totals[number] == sum(own)
        low, high = (statistics.median_low(own), statistics.median_high(own)) if own else (0, 0)
        assert found[number] == (low + high) // 2


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 2), st.integers(0, 1)), max_size=40))
def test_events_are_grouped_by_all_that_makes_them_different(rows: list[tuple[int, int, int]]) -> None:
    name = np.array([row[0] for row in rows], np.int32)
    values = np.array([[row[1] for row in rows]], np.int64).reshape(1, -1)
    kinds = np.array([[row[2] for row in rows]], np.uint8).reshape(1, -1)
    first, group = groups(name, kinds, values)
    assert [rows[at] for at in first] == list(dict.fromkeys(rows))
    assert [rows[first[number]] for number in group] == rows


def test_more_groups_than_the_first_room_holds() -> None:
    name = np.arange(50_000, dtype=np.int32)
    first, group = groups(name, np.zeros((0, 50_000), np.uint8), np.zeros((0, 50_000), np.int64))
    assert (first == name).all()
    assert (group == name).all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("channel_id=1, replica_groups={{0,1},{2,3},{4,5}}, to_apply=%add", (2, 3)),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", (2, 4)),
        ("replica_groups=mesh['x'=4,'y'=2], device_ids=([4,2]T(1,0)) {'x'}, dimensions={0}", (4, 2)),
        ("replica_groups=mesh['x'=4,'y'=2] {'x':(1)2,'y'}", (4, 2)),
        ("replica_groups={}", (None, None)),
        ("source_target_pairs={{0,1}}", (None, None)),
    ],
)
def test_groups_of_a_collective(text: str, expected: tuple[int | None, int | None]) -> None:
    assert groups_of(text) == expected
