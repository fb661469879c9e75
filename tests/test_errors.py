"""Errors name what there is, the nearest first, and no more than can be read."""

from __future__ import annotations

from hlotrace.errors import MOST_NAMED, unknown_name


def test_few_names_are_all_given_nearest_first():
    assert str(unknown_name("view", "memroy", ("ops", "memory"))) == "no view is named 'memroy'. Known: memory, ops."


def test_of_many_names_the_nearest_are_given_and_how_many_there_are():
    names = [f"fusion.{number}" for number in range(73)]
    error = unknown_name("fusion", "fusion.99999", names, place="--fusion")
    assert error.remedy is not None
    assert error.remedy.startswith("Known: fusion.")
    assert error.remedy.endswith(", the nearest of 73.")
    assert error.remedy.count("fusion.") == 3


def test_of_many_names_none_of_which_is_near_some_are_given():
    names = [f"fusion.{number}" for number in range(MOST_NAMED + 1)]
    remedy = unknown_name("fusion", "zzz", names).remedy
    assert remedy == f"Known: fusion.0, fusion.1, fusion.2 and {MOST_NAMED - 2} more."


def test_where_there_is_nothing_that_is_said():
    assert unknown_name("fusion", "a", ()).remedy == "There is no fusion here."
