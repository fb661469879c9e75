"""What the views of a trace share: the headline of what was measured, and what to say where there is no trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.analyses.traced import device_steps, time_by
from hlotrace.errors import unknown_name
from hlotrace.views.blocks import Block, Figure, Figures, Heading, Note
from hlotrace.views.common import command

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


def of_module(frame: pd.DataFrame, tables: Tables, module: str | None) -> pd.DataFrame:
    """The rows of one program, whether or not its HLO is there; all of them for None.

    Raises:
        HlotraceError: no program has that name.
    """
    if module is None:
        return frame
    known = {*tables["modules"]["module"], *tables["op_times"]["module"].dropna()}
    if module not in known:
        raise unknown_name("module", module, sorted(known), place="--module")
    return frame[(frame["module"] == module).fillna(False).astype(bool)]


def of_trace(tables: Tables) -> list[Block]:
    """A summary of what was traced, where there is no program to summarise."""
    name = tables.path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return [Heading(name, "What was traced, and how long did it take?"), *in_summary(tables)]


def in_summary(tables: Tables) -> list[Block]:
    """What a summary says of the trace: of a capture only that there is one, since that needs no reading."""
    if not tables.traces:
        return []
    more = command(tables, "profile")
    if tables.manifest is not None:
        steps = tables.manifest.profile_steps
        what = f"A trace of {steps} step{'s' if steps != 1 else ''}" if steps else "A trace"
        return [Note(f"{what} is in it: where the measured time went.", command=more)]
    op_times = tables["op_times"]
    figures = headline(tables, op_times)
    if not figures.items:
        return [Note("The trace has no op times: no device and no op of the CPU is in it.", "missing")]
    kinds = ", ".join(f"{row.category} {row.share:.0%}" for row in time_by(op_times, "category").head(3).itertuples())
    return [figures, Note(f"Measured: {kinds} of the time in ops.", command=more)]


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
