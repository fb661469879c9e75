"""Numbers that stand alone say all of their unit; a scale says it once for many."""

from __future__ import annotations

import pytest

from hlotrace.units import NOTHING, column_scale, format_amount


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (60_405, "cycles", "60,405 cycles"),
        (1_090_000, "cycles", "1.09 M cycles"),
        (3.2e9, "flop", "3.20 GFLOP"),
        (12, "flop", "12 FLOP"),
        (1536, "bytes", "1.50 KiB"),
        (12, "count", "12"),
        (None, "cycles", NOTHING),
    ],
)
def test_an_amount_says_its_unit(value, unit, text):
    assert format_amount(value, unit) == text


@pytest.mark.parametrize(
    ("values", "unit", "words"),
    [
        ([1.09e6, 60_405], "cycles", "M cycles"),
        ([12], "cycles", "cycles"),
        ([4e12], "flop", "TFLOP"),
        ([2**20], "bytes", "MiB"),
        ([7], "count", ""),
    ],
)
def test_a_scale_says_the_unit_of_its_numbers(values, unit, words):
    assert column_scale(values, unit).words(unit) == words
