"""Flags of the compiler, as its three kinds of file have them; and the totals of the memory usage report."""

from __future__ import annotations

from hlotrace.parsers.flags import read_flags
from hlotrace.parsers.memory_usage_report import read_totals


def test_a_flagfile_has_a_flag_a_line() -> None:
    flags, problems = read_flags("--xla_a=true\n--xla_b=-1\n--xla_c\n--xla_d=x=y z\n--xla_e=\n")
    assert flags == [("xla_a", "true"), ("xla_b", "-1"), ("xla_c", "true"), ("xla_d", "x=y z"), ("xla_e", "")]
    assert problems == []


def test_a_text_proto_has_fields_and_messages() -> None:
    text = """xla_a: AUTO
xla_p: "a \\"b\\""
xla_e: ""
lsra {
  spec: "true"
}
outer {
  inner {
    n: 3
  }
}
l: 1
l: 2
"""
    flags, problems = read_flags(text)
    assert flags == [
        ("xla_a", "AUTO"),
        ("xla_p", 'a "b"'),
        ("xla_e", ""),
        ("lsra", "true"),
        ("outer.inner.n", "3"),
        ("l", "1"),
        ("l", "2"),
    ]
    assert problems == []


def test_what_is_no_flag_is_a_problem_with_its_line() -> None:
    flags, problems = read_flags("xla_a: 1\n<<<<<<< HEAD\n\n# a comment\n--b=2\n")
    assert flags == [("xla_a", "1"), ("b", "2")]
    assert [place for place, _, _ in problems] == ["line 2"]


def test_a_message_that_is_cut_is_a_problem() -> None:
    flags, problems = read_flags('a: 1\nlsra {\n  spec: "true"\n')
    assert flags == [("a", "1"), ("lsra", "true")]
    assert len(problems) == 1


def test_totals_of_the_memory_usage_report_are_read_by_space() -> None:
    text = (
        "Memory Space: default (color=0)\nTotal bytes: 490232320 (467.52MiB)\n  cumulative_size; size\n\n"
        "Memory Space: color_6 (color=6)\nTotal bytes: 1024 (1.0KiB)\n"
    )
    assert read_totals(text) == {0: 490232320, 6: 1024}
    assert read_totals("") == {}
