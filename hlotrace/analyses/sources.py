"""Source lines: the user's own line of a row, and which instructions come from a line, by any frame of their stacks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlotrace.analyses.row_index import RowIndex
from hlotrace.errors import HlotraceError, unknown_name
from hlotrace.hlo.sources import is_library
from hlotrace.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

STACKS = ("source_file", "source_line", "source_stack")
"""The columns of `instructions` that `by_any_frame` reads."""
NEAREST = 5
"""How many lines are named beside one that was not found."""

_PLACE = re.compile(r"(?P<place>.+?:\d+)(?: |$)", re.DOTALL)


def users_lines(frame: pd.DataFrame) -> pd.Series:
    """The user's own line of each row as `file:line`; null where none is known."""
    return frame["user_file"] + ":" + frame["user_line"].astype("string")


def innermost_lines(frame: pd.DataFrame) -> pd.Series:
    """The line of the innermost frame of each row as `file:line`; null where none is known."""
    return frame["source_file"] + ":" + frame["source_line"].astype("string")


def by_any_frame(instructions: pd.DataFrame) -> RowIndex:
    """Instructions, by their number in the frame, by each `file:line` of their stacks, or the one line they have."""
    stacks = pa.array(instructions["source_stack"], pa.list_(pa.string()))
    stacks = stacks.combine_chunks() if isinstance(stacks, pa.ChunkedArray) else stacks
    frames = pc.list_flatten(stacks).dictionary_encode()
    alone = innermost_lines(instructions)[pc.is_null(stacks).to_numpy(zero_copy_only=False)]
    codes, lines = alone.factorize()
    found = (_PLACE.match(text) for text in frames.dictionary.to_pylist())
    places = [match["place"] if match else "" for match in found] + [str(line) for line in lines]
    number = {place: at for at, place in enumerate(filter(None, dict.fromkeys(places)))}
    number_of = np.array([*(number.get(place, -1) for place in places), -1], np.int64)
    of_lines = np.where(codes >= 0, codes + len(frames.dictionary), len(places))
    of_frames = frames.indices.to_numpy(zero_copy_only=False)
    rows = [pc.list_parent_indices(stacks).to_numpy(), np.flatnonzero(instructions["source_stack"].isna())]
    return RowIndex(list(number), number_of[np.concatenate([of_frames, of_lines])], np.concatenate(rows))


def rows_from(places: RowIndex, wanted: str) -> NDArray[np.int64]:
    """The rows that come from `FILE:LINE`, where FILE may be the end of a path.

    Raises:
        HlotraceError: nothing comes from there; the nearest lines of that file are in the remedy.
    """
    names = [name for name in places.names if _ends_with(name, wanted)]
    if not names:
        raise _not_found(places, wanted)
    return places.rows_of(names)


def _ends_with(path: str, wanted: str) -> bool:
    """Whether a path is `wanted`, or ends with it after a separator."""
    return path.endswith(wanted) and path.removesuffix(wanted)[-1:] in ("", "/", "\\")


def _not_found(places: RowIndex, wanted: str) -> HlotraceError:
    file, _, line = wanted.rpartition(":")
    if not file or not line.isdigit():
        file, line = wanted, ""
    here = [name for name in places.names if _ends_with(name.rpartition(":")[0], file)]
    if not here:
        files = list(dict.fromkeys(name.rpartition(":")[0] for name in places.names))
        own = [name for name in files if not is_library(name)]
        return unknown_name("source file", file, own or files, place="--source")
    what = f"no op comes from line {line} of {file}" if line else f"expected FILE:LINE, found {wanted!r}"
    remedy = f"Lines of it that ops come from: {_nearest(places, here, line)}."
    return HlotraceError(what, place="--source", remedy=remedy)


def _nearest(places: RowIndex, here: Sequence[str], line: str) -> str:
    """The lines closest to one, those with the most ops where none is given, in the order of the file."""

    def distance(name: str) -> tuple[int, int]:
        return (abs(_line_of(name) - int(line)) if line else -places.count(name)), _line_of(name)

    nearest = sorted(sorted(here, key=distance)[:NEAREST], key=_line_of)
    return ", ".join(f"{_line_of(name)} ({format_count(places.count(name))} ops)" for name in nearest)


def _line_of(place: str) -> int:
    return int(place.rpartition(":")[2])
