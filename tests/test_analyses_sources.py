"""Which instructions come from a source line, by any frame of their stacks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.analyses.row_index import RowIndex
from hlotrace.analyses.sources import by_any_frame, innermost_lines, rows_from, users_lines
from hlotrace.errors import HlotraceError
from hlotrace.tables import INSTRUCTIONS, to_frame

FRAMES = ("/a/train.py:39 step", "/a/model.py:7 call", "/a/b c/train.py:39 f", "/v/site-packages/x.py:4 <lambda>", "?")


def frame_of(stacks: list[list[str] | None], **columns):
    rows = [{"source_stack": stack} for stack in stacks]
    for name, values in columns.items():
        rows = [{**row, name: value} for row, value in zip(rows, values, strict=True)]
    return to_frame(pa.Table.from_pylist(rows, schema=INSTRUCTIONS.arrow_schema()))


@given(st.lists(st.none() | st.lists(st.sampled_from(FRAMES), max_size=4), min_size=1, max_size=8))
def test_a_row_is_found_by_each_line_of_its_stack(stacks: list[list[str] | None]) -> None:
    places = by_any_frame(frame_of(stacks, source_file=["/a/old.py"] * len(stacks), source_line=[3] * len(stacks)))
    for text in FRAMES[:4]:
        place = text.rpartition(" ")[0]
        assert places.rows(place).tolist() == [n for n, stack in enumerate(stacks) if text in (stack or ())]
    assert places.rows("/a/old.py:3").tolist() == [n for n, stack in enumerate(stacks) if stack is None]
    assert set(places.names) <= {*(text.rpartition(" ")[0] for text in FRAMES[:4]), "/a/old.py:3"}


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 9))))
def test_rows_by_name_are_each_once_and_in_order(pairs: list[tuple[int, int]]) -> None:
    codes, rows = np.array(pairs, np.int64).reshape(-1, 2).T
    index = RowIndex(list("abcde"), codes, rows)
    for code, name in enumerate("abcde"):
        expected = sorted({row for number, row in pairs if number == code})
        assert index.rows(name).tolist() == expected
        assert index.count(name) == len(expected)
    assert index.rows("absent").tolist() == []
    assert index.rows_of(["a", "c", "absent"]).tolist() == sorted({row for code, row in pairs if code in (0, 2)})


def test_a_path_may_be_given_by_its_end_and_several_files_may_have_it() -> None:
    places = by_any_frame(frame_of([[FRAMES[0]], [FRAMES[2], FRAMES[1]], [FRAMES[3]], None]))
    assert rows_from(places, "train.py:39").tolist() == [0, 1]
    assert rows_from(places, "a/train.py:39").tolist() == [0]
    assert rows_from(places, "/a/train.py:39").tolist() == [0]
    assert rows_from(places, "x.py:4").tolist() == [2]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("train.py:38", "no op comes from line 38 of train.py"),
        ("rain.py:39", "no source file is named 'rain.py'"),
        ("train.py", "expected FILE:LINE, found 'train.py'"),
        ("", "no source file is named ''"),
    ],
)
def test_what_is_not_found_is_one_line_with_what_there_is(wanted: str, message: str) -> None:
    places = by_any_frame(frame_of([["/a/train.py:39 f", f"/a/train.py:{line} g"] for line in range(40, 50)]))
    with pytest.raises(HlotraceError, match=message) as caught:
        rows_from(places, wanted)
    remedy = str(caught.value)
    if wanted == "train.py:38":
        assert "39 (10 ops), 40 (1 ops), 41 (1 ops), 42 (1 ops), 43 (1 ops)" in remedy
    assert "train.py" in remedy


def test_nothing_recorded_is_said() -> None:
    with pytest.raises(HlotraceError, match="There is no source file here"):
        rows_from(by_any_frame(frame_of([None])), "train.py:39")


def test_lines_of_a_frame_are_texts_or_unknown() -> None:
    known = {"user_file": ["/a/t.py", None, "/a/t.py"], "user_line": [3, 4, None]}
    frame = frame_of([None] * 3, **known, source_file=["/v/l.py", None, None], source_line=[9, None, None])
    assert users_lines(frame).fillna("").tolist() == ["/a/t.py:3", "", ""]
    assert innermost_lines(frame).fillna("").tolist() == ["/v/l.py:9", "", ""]
