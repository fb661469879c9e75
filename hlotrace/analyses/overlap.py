"""How long a program takes when its asynchronous operations run beside the others: all hidden, as scheduled, or none.

The schedule is walked as it stands. A launch takes its predicted time; an asynchronous one goes on in the background,
one of a class after the other (copies, collectives), and its second half waits until it is over. A loop takes its
body's time as often as it trips; of a conditional the costliest branch is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from hlotrace.units import is_missing

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("stage", "computation", "instruction", "opcode", "operands", "called", "is_launch")
"""The columns of `instructions` that this reads; rows stand in the order of the file, which is the schedule's."""

_SECOND_HALVES = ("-done", "-update")
_ENTERS = ("while", "conditional", "call")
_IN_THE_BACKGROUND = ("async copy", "collective", "host transfer")
_NOT_RUN = ("fusion", "reducer", "async", "unused")
_MOST_STEPS = 400
"""Values that are looked at on the way from an operation's second half back to its first."""


@dataclass
class Span:
    """Nanoseconds of one run.

    Attributes:
        synchronous: what is not in the background.
        background: what is, by class.
        scheduled: from start to end, waits included.
    """

    synchronous: float = 0.0
    background: dict[str, float] = field(default_factory=dict)
    scheduled: float = 0.0

    @property
    def all_hidden(self) -> float:
        """Everything in the background beside the rest: the longest of the parts, and no more than as scheduled."""
        return min(max(self.synchronous, *self.background.values(), 0.0), self.scheduled)

    @property
    def none_hidden(self) -> float:
        """One after the other."""
        return self.synchronous + sum(self.background.values())

    def add(self, other: Span, times: float) -> None:
        """Run `other` so many times, nothing of it beside what comes after."""
        self.synchronous += other.synchronous * times
        self.scheduled += other.scheduled * times
        for kind, duration in other.background.items():
            self.background[kind] = self.background.get(kind, 0.0) + duration * times


class _Row(NamedTuple):
    instruction: str
    opcode: str
    operands: list[str]
    called: list[str]
    is_launch: bool

    @property
    def is_second_half(self) -> bool:
        """Also of a collective that a fusion starts and another ends, which is no launch."""
        return self.opcode.endswith(_SECOND_HALVES) or (self.opcode == "fusion" and not self.is_launch)


class Schedule:
    """The scheduled computations of a module's final stage.

    Args:
        instructions: COLUMNS of its instructions. computations: its computations.
    """

    def __init__(self, instructions: pd.DataFrame, computations: pd.DataFrame) -> None:
        names = computations["computation"].tolist()
        roles = computations["role"].tolist()
        self._trips = dict(zip(names, computations["trip_count"].tolist(), strict=True))
        self._entry = next((name for name, role in zip(names, roles, strict=True) if role == "entry"), None)
        running = [name for name, role in zip(names, roles, strict=True) if role not in _NOT_RUN]
        kept = instructions[instructions["computation"].isin(running)]
        self._rows: dict[str, list[_Row]] = {}
        columns = (_listed(kept[name]) for name in ("computation", *_Row._fields))
        for name, instruction, opcode, operands, called, is_launch in zip(*columns, strict=True):
            row = _Row(instruction, opcode, operands, called, bool(is_launch))
            self._rows.setdefault(name, []).append(row)

    def span(self, predictions: pd.DataFrame, column: str = "predicted_ns") -> Span | None:
        """One run of the entry, by a column of `predictions`; a launch without a time takes none.

        None where a loop's trips are not known, or where there is no entry.
        """
        if self._entry is None:
            return None
        computations, instructions, classes = (
            _listed(predictions[name]) for name in ("computation", "instruction", "class")
        )
        durations = predictions[column].fillna(0).astype("float64").tolist()
        places = zip(computations, instructions, strict=True)
        figures = zip(classes, durations, strict=True)
        return self._walk(self._entry, dict(zip(places, figures, strict=True)), {})

    def _walk(
        self, computation: str, figures: dict[tuple[str, str], tuple[str, float]], done: dict[str, Span | None]
    ) -> Span | None:
        if computation in done:
            return done[computation]
        rows = self._rows.get(computation, [])
        starts = _starts(
            rows, {row.instruction: figures.get((computation, row.instruction), ("", 0.0))[0] for row in rows}
        )
        in_background = set(starts.values())
        span = Span()
        free_at: dict[str, float] = {}
        ends_at: dict[str, float] = {}
        for row in rows:
            kind, duration = figures.get((computation, row.instruction), ("", 0.0))
            if row.opcode in _ENTERS:
                entered = self._entered(row, figures, done)
                if entered is None:
                    done[computation] = None
                    return None
                for inner, trips in entered:
                    span.add(inner, trips)
            elif row.instruction in starts:
                span.scheduled = max(span.scheduled, ends_at.get(starts[row.instruction], 0.0))
            elif row.instruction in in_background:
                span.background[kind] = span.background.get(kind, 0.0) + duration
                ends_at[row.instruction] = free_at[kind] = max(span.scheduled, free_at.get(kind, 0.0)) + duration
            else:
                span.synchronous += duration
                span.scheduled += duration
        span.scheduled = max(span.scheduled, *free_at.values(), 0.0)
        done[computation] = span
        return span

    def _entered(
        self, row: _Row, figures: dict[tuple[str, str], tuple[str, float]], done: dict[str, Span | None]
    ) -> list[tuple[Span, float]] | None:
        """What one execution of a loop, call or conditional runs, and how often; None where that is not known."""
        found = []
        for called in row.called:
            inner, trips = self._walk(called, figures, done), self._times(row, called)
            if inner is None or trips is None:
                return None
            found.append((inner, trips))
        if row.opcode == "conditional":
            return [max(found, key=lambda entered: entered[0].scheduled)] if found else []
        return found

    def _times(self, row: _Row, called: str) -> float | None:
        """How often one execution of `row` runs a computation; a loop's condition takes no launch."""
        if row.opcode != "while" or not self._rows.get(called):
            return 1.0
        trips = self._trips.get(called)
        if trips is not None and not is_missing(trips):
            return float(trips)
        has_work = any(item.is_launch or item.opcode in _ENTERS for item in self._rows[called])
        return None if has_work else 1.0


def _listed(column: pd.Series) -> list[Any]:
    """The values through pyarrow: pandas hands out what Arrow holds one by one, slower than all the rest."""
    values: list[Any] = pa.array(column).to_pylist()
    return values


def _starts(rows: list[_Row], kinds: dict[str, str]) -> dict[str, str]:
    """For each second half the launch that it ends, where one is found."""
    by_name = {row.instruction: row for row in rows}
    found = {}
    for row in rows:
        if not row.is_second_half:
            continue
        todo, seen = [*row.operands], set[str]()
        while todo and len(seen) < _MOST_STEPS:
            name = todo.pop(0).partition("#")[0]
            before = by_name.get(name)
            if before is None or name in seen:
                continue
            seen.add(name)
            if before.is_launch and kinds[name] in _IN_THE_BACKGROUND:
                found[row.instruction] = name
                break
            todo += before.operands
    return found
