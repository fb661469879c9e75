"""`steps`: as a line of the device marks them, as the program annotated them, or inferred from runs of a program.

An annotation stands on a thread of the host. For the CPU, whose ops run while the annotation lasts, it is the step of
the device too. Other devices run behind their host, so their steps are the runs of the program that takes the most
time, from the start of one to the start of the next; they bear the numbers of the annotations where there are as many.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hlotrace.trace.device_time import Annotation, DeviceTime, HostTime, Run

Span = tuple[int, int]
"""Begin and end in ps."""


def step_rows(host: HostTime) -> Iterator[dict[str, Any]]:
    """The steps of a host's annotations, and of each of its devices."""
    marks = main_annotations(host.annotations)
    for mark in marks:
        span = (mark.start_ps, mark.start_ps + mark.duration_ps)
        yield _row(host.host, None, mark.number, span, basis=f"annotation {mark.name}")
    for device in host.devices:
        yield from _device_rows(host, device, marks)


def main_annotations(annotations: list[Annotation]) -> list[Annotation]:
    """The annotations of one name, that of the longest time, where a program marks more than steps."""
    time: Counter[str] = Counter()
    for mark in annotations:
        time[mark.name] += mark.duration_ps
    main = max(time, key=lambda name: time[name], default=None)
    return [mark for mark in annotations if mark.name == main]


def _device_rows(host: HostTime, device: DeviceTime, marks: list[Annotation]) -> Iterator[dict[str, Any]]:
    if device.steps:
        for place, run in enumerate(device.steps):
            number = int(run.name) if run.name.isdigit() else place
            span = (run.start_ps, run.start_ps + run.duration_ps)
            yield _row(host.host, device, number, span, basis="Steps line")
    elif marks and host.platform == "cpu":
        for mark in marks:
            span = (mark.start_ps, mark.start_ps + mark.duration_ps)
            yield _row(host.host, device, mark.number, span, basis=f"annotation {mark.name}")
    else:
        module, spans = inferred(device)
        numbers = [mark.number for mark in marks] if len(marks) == len(spans) else list(range(len(spans)))
        for number, span in zip(numbers, spans, strict=True):
            yield _row(host.host, device, number, span, basis=f"runs of {module}", is_inferred=True)


def _row(
    host: str, device: DeviceTime | None, number: int, span: Span, *, basis: str, is_inferred: bool = False
) -> dict[str, Any]:
    begin, length = np.array([span[0]]), np.array([span[1] - span[0]])
    return {
        "host": host,
        "device": device.device if device else None,
        "step": number,
        "start_ps": span[0],
        "duration_ps": span[1] - span[0],
        "busy_ps": int(device.busy.within(begin, length)[0]) if device else None,
        "inferred": is_inferred,
        "basis": basis,
    }


def inferred(device: DeviceTime) -> tuple[str | None, list[Span]]:
    """The program that took the most time, and its runs, each up to the start of the next; none where it ran once."""
    by_module = _runs_of_line(device.runs) if device.runs else _runs_of_ops(device)
    module = max(by_module, key=lambda name: sum(end - begin for begin, end in by_module[name]), default=None)
    runs = sorted(by_module[module]) if module is not None else []
    if len(runs) < 2:
        return module, []
    return module, [*((begin, after) for (begin, _), (after, _) in pairwise(runs)), runs[-1]]


def _runs_of_line(runs: list[Run]) -> dict[str, list[Span]]:
    found = defaultdict(list)
    for run in runs:
        found[run.name].append((run.start_ps, run.start_ps + run.duration_ps))
    return found


def _runs_of_ops(device: DeviceTime) -> dict[str, list[Span]]:
    """Runs where no line shows them: each begins with the module's first op among those that run least often.

    An op outside of loops runs once a run, one inside of them more often.
    """
    events, found = device.events, {}
    modules = {op.module for op in device.ops if op.module is not None}
    for module in modules:
        members = np.array([op.module == module and op.instruction is not None for op in device.ops], bool)
        rows = np.flatnonzero(members[events.op])
        rows = rows[np.argsort(events.start_ps[rows], kind="stable")]
        if not len(rows):
            continue
        counts = np.bincount(events.op[rows], minlength=len(device.ops))
        rare = counts == counts[counts > 0].min()
        first = next(int(events.op[row]) for row in rows if rare[events.op[row]])
        heads = np.flatnonzero(events.op[rows] == first)
        ends = np.maximum.reduceat(events.start_ps[rows] + events.duration_ps[rows], heads)
        found[module] = list(zip(events.start_ps[rows[heads]].tolist(), ends.tolist(), strict=True))
    return found
