"""How long did each step take, and how much of it were the devices busy?

Steps
time of a step 2.39 s   devices busy 98.9 %
Steps
step  start (s)  time (s)  busy (s)  busy share
   0       0.00      3.43      3.23       94.2%
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.analyses.traced import device_steps
from hlotrace.views.blocks import Block, Figure, Figures, Grid, Note, ShownColumn
from hlotrace.views.common import command, cut, problems_tail, telling
from hlotrace.views.traced import inferred_note, opening, step_figures
from hlotrace.views.view import TOP, Tables, View

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "How long did each step take, and how much of it were the devices busy?"


def build(tables: Tables, *, top: int) -> list[Block]:
    """The median, the slowest, and every step."""
    blocks = opening(tables, "Steps", QUESTION)
    if not tables.traces:
        return [*blocks, *problems_tail(tables)]
    steps = device_steps(tables["steps"])
    if steps.empty:
        text = "No steps: none was marked, and no program ran more than once."
        return [*blocks, Note(text, "missing", command(tables, "profile")), *problems_tail(tables)]
    blocks += [Figures((*step_figures(steps), *_slowest(steps))), *inferred_note(steps), grid(steps, top)]
    return [*blocks, *problems_tail(tables)]


def _slowest(steps: pd.DataFrame) -> list[Figure]:
    if len(steps) < 2:
        return []
    row = steps.sort_values("duration_ps").iloc[-1]
    return [Figure("slowest step", int(row["duration_ps"]), "ps", "measured", f"step {row['step']}")]


def grid(steps: pd.DataFrame, top: int) -> Grid:
    """The steps in the order of time."""
    figures = (
        ShownColumn("busy_ps", "busy", "ps", "measured"),
        ShownColumn("busy", "busy share", "share", "measured", "bar"),
        ShownColumn("slowest", "slowest device"),
    )
    columns = (
        ShownColumn("step", "step", "count", "measured"),
        ShownColumn("start_ps", "start", "ps", "measured"),
        ShownColumn("duration_ps", "time", "ps", "measured"),
        *telling(steps, figures),
    )
    several = int(steps["devices"].max() or 0) > 1
    note = "Time is that of the slowest device; busy is the mean of the devices." if several else ""
    return Grid("Steps", cut(steps, top), columns, len(steps), note)


VIEW = View("steps", "Steps", QUESTION, (TOP,), build)
