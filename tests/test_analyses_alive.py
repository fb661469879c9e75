from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hlotrace.analyses.alive import _cover, alive, position


def test_the_peak_is_the_first_position_with_most_alive(synthetic):
    timeline = synthetic.SyntheticTables(synthetic.layer_rows())["memory_timeline"]
    peak = position(timeline, 0)
    assert peak is not None
    assert (peak.index, peak.instruction, peak.live_bytes) == (2, "multiply.1", 64 * synthetic.MIB)
    assert peak.by_category == {"argument": 24 * synthetic.MIB, "temp": 40 * synthetic.MIB}
    assert position(timeline, 7) is None
    assert position(timeline, 0, at=77) is None


def test_what_is_alive_adds_up_to_the_timeline_at_every_position(synthetic):
    tables = synthetic.SyntheticTables(synthetic.layer_rows())
    buffers, timeline = tables["buffers"], tables["memory_timeline"]
    for space, index, live in timeline[["memory_space", "schedule_index", "live_bytes"]].itertuples(index=False):
        assert alive(buffers, space, index)["counted_bytes"].sum() == live


def test_a_value_inside_another_adds_nothing(synthetic):
    rows = alive(synthetic.SyntheticTables(synthetic.layer_rows())["buffers"], 0, 2).set_index("instruction")
    assert rows.loc["bitcast.9", "counted_bytes"] == 0
    assert rows.loc["bitcast.9", "bytes"] == 16 * synthetic.MIB


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12))
def test_covered_bytes_are_those_of_the_union(values):
    intervals: list[tuple[int, int]] = []
    added = sum(_cover(intervals, start, size) for start, size in values)
    assert added == len({byte for start, size in values for byte in range(start, start + size)})
    assert all(first <= last for first, last in intervals)
