"""What the views of a trace share: the headline of what was measured, and what to say where there is no trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.analyses.traced import device_steps
from hlotrace.views.blocks import Block, Figure, Figures, Heading, Note

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.views.view import Tables


def opening(tables: Tables, title: str, question: str) -> list[Block]:
    """The heading, and where there is no trace how to get one."""
    heading = Heading(title, question)
    if tables.traces:
        return [heading]
    if tables.manifest is not None and any(target.platform != "cpu" for target in tables.manifest.targets):
        text = "There is no trace: a program that was compiled for a device that is not here did not run."
        return [heading, Note(text, "missing", "hlotrace capture MODEL.py --target TARGET --run")]
    return [heading, Note("There is no trace in it.", "missing", "hlotrace capture MODEL.py")]


def headline(tables: Tables, op_times: pd.DataFrame) -> Figures:
    """The time of a step, how much of it devices were busy, and the time of all ops."""
    figures = step_figures(device_steps(tables["steps"]))
    devices = op_times[["host", "device"]].drop_duplicates()
    if len(devices):
        where = str(devices["device"].iloc[0]) if len(devices) == 1 else f"{len(devices)} devices"
        figures.append(Figure("time in ops", int(op_times["self_ps"].sum()), "ps", "measured", f"on {where}"))
    return Figures(tuple(figures))


def step_figures(steps: pd.DataFrame) -> list[Figure]:
    """The median step and how busy the devices were; nothing without steps."""
    if steps.empty:
        return []
    count = len(steps)
    detail = f"{'median of ' if count > 1 else ''}{count:,} step{'s' if count > 1 else ''}, by {steps['basis'].iloc[0]}"
    figures = [Figure("time of a step", int(steps["duration_ps"].median()), "ps", "measured", detail)]
    if steps["busy"].notna().any():
        weight = steps["duration_ps"].astype("float64")
        busy = float((steps["busy"] * weight).sum() / weight.sum()) if weight.sum() else 0.0
        figures.append(Figure("devices busy", busy, "share", "measured", "of the steps' time, any op running"))
    return figures


def inferred_note(steps: pd.DataFrame) -> list[Block]:
    """That steps are inferred, where they are."""
    if steps.empty or not steps["inferred"].fillna(False).any():
        return []
    text = f"No step was marked: {steps['basis'].iloc[0]} stand for steps. jax.profiler.StepTraceAnnotation marks them."
    return [Note(text)]
