"""AG Grid's filters and sort orders, applied to a frame: for grids whose rows the server hands out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_TEXT: dict[str, Callable[[pd.Series, str], pd.Series]] = {
    "contains": lambda column, words: column.str.contains(words, regex=False),
    "notContains": lambda column, words: ~column.str.contains(words, regex=False),
    "equals": lambda column, words: column == words,
    "notEqual": lambda column, words: column != words,
    "startsWith": lambda column, words: column.str.startswith(words),
    "endsWith": lambda column, words: column.str.endswith(words),
}
_NUMBER: dict[str, Callable[[pd.Series, float], pd.Series]] = {
    "equals": lambda column, number: column == number,
    "notEqual": lambda column, number: column != number,
    "greaterThan": lambda column, number: column > number,
    "greaterThanOrEqual": lambda column, number: column >= number,
    "lessThan": lambda column, number: column < number,
    "lessThanOrEqual": lambda column, number: column <= number,
}


def filtered(frame: pd.DataFrame, model: dict[str, Any]) -> pd.DataFrame:
    """The rows that a grid's filter model lets through; a column it names that is not there is passed over."""
    for name, condition in model.items():
        if name in frame.columns:
            frame = frame[_holds(frame[name], condition).fillna(False).astype(bool)]
    return frame


def _holds(column: pd.Series, condition: dict[str, Any]) -> pd.Series:
    parts = condition.get("conditions")
    if parts:
        found = [_holds(column, part).fillna(False).astype(bool) for part in parts]
        joined = found[0]
        for other in found[1:]:
            joined = joined | other if condition.get("operator") == "OR" else joined & other
        return joined
    kind, wanted = condition.get("type"), condition.get("filter")
    if kind == "blank":
        return column.isna()
    if kind == "notBlank":
        return column.notna()
    if condition.get("filterType") == "number":
        if kind == "inRange":
            return (column >= wanted) & (column <= condition.get("filterTo"))
        return _NUMBER[str(kind)](column, float(wanted or 0))
    return _TEXT[str(kind)](column.astype("string").str.lower(), str(wanted or "").lower())


def ordered(frame: pd.DataFrame, model: Sequence[dict[str, str]]) -> pd.DataFrame:
    """The rows by a grid's sort model, what is not known always last."""
    known = [item for item in model if item["colId"] in frame.columns]
    if not known:
        return frame
    names = [item["colId"] for item in known]
    ascending = [item["sort"] == "asc" for item in known]
    return frame.sort_values(names, ascending=ascending, kind="stable", na_position="last")
