"""`events`: every event of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hlotrace.tables import EVENTS
from hlotrace.trace.device_time import Run, enclosing
from hlotrace.trace.lanes import NONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.trace.device_time import HostTime
    from hlotrace.trace.lanes import Lane, Trace
    from hlotrace.trace.programs import Programs

_TEXTS = tuple(column.name for column in EVENTS.columns if column.dtype == "category")


class _Words:
    """Texts numbered as they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def codes(self, texts: Sequence[str | None]) -> NDArray[np.int32]:
        """The number of each text, -1 for None."""
        numbers = self._numbers
        return np.array([-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts], np.int32)

    def array(self, codes: NDArray[np.int32]) -> pa.DictionaryArray:
        """The texts of those numbers."""
        indices = pa.array(codes, pa.int32(), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, pa.array(list(self._numbers), pa.string()))


@dataclass
class _Columns:
    """The columns of the table so far, a piece a lane."""

    words: dict[str, _Words] = field(default_factory=lambda: {name: _Words() for name in _TEXTS})
    pieces: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in EVENTS.column_names})

    def add(self, lane: Lane, programs: Programs, runs: list[Run], steps: list[dict[str, Any]]) -> None:
        """Take in a lane."""
        count = len(lane)
        of_op = {name: np.append(codes, np.int32(-1)) for name, codes in self._op_codes(lane, programs).items()}
        inside = enclosing(runs, lane.start_ps) if lane.role in ("ops", "async") and runs else np.full(count, -1)
        program = np.array([*(NONE if op.program_id is None else op.program_id for op in lane.ops), NONE])[lane.op]
        module = of_op["module"][lane.op]
        run_id = lane.run_id
        if (inside >= 0).any():
            by_run = _of_runs(runs)
            program = np.where(program == NONE, by_run[0][inside], program)
            run_id = np.where(run_id == NONE, by_run[1][inside], run_id)
            names = {(run.name, run.program_id): run for run in runs}
            known = programs.modules_of_names(names)
            of_run = self.words["module"].codes([*(known[run.name, run.program_id] for run in runs), None])
            module = np.where((module < 0) & (lane.op >= 0), of_run[inside], module)
        constant = {"host": lane.host, "plane": lane.plane, "line": lane.line}
        for name, text in constant.items():
            self.pieces[name].append(np.full(count, self.words[name].codes([text])[0], np.int32))
        self.pieces["event"].append(self._names(lane))
        self.pieces["module"].append(module)
        for name in ("instruction", "hlo_category"):
            self.pieces[name].append(of_op[name][lane.op])
        integers = {
            "start_ps": lane.start_ps,
            "duration_ps": lane.duration_ps,
            "program_id": program,
            "run_id": run_id,
            "step": _step_of(steps, lane.start_ps),
        }
        for name, values in integers.items():
            self.pieces[name].append(pa.array(values, pa.int64(), mask=values == NONE))

    def _names(self, lane: Lane) -> NDArray[np.int32]:
        """The code of each event's name; only names that occur are numbered."""
        used = np.flatnonzero(np.bincount(lane.name, minlength=len(lane.names)))
        codes = np.zeros(len(lane.names), np.int32)
        codes[used] = self.words["event"].codes([lane.names[at] or None for at in used])
        return codes[lane.name]

    def _op_codes(self, lane: Lane, programs: Programs) -> dict[str, NDArray[np.int32]]:
        modules = programs.modules_of(lane.ops)
        return {
            "module": self.words["module"].codes([modules[op.module, op.program_id] for op in lane.ops]),
            "instruction": self.words["instruction"].codes([op.instruction for op in lane.ops]),
            "hlo_category": self.words["hlo_category"].codes([op.hlo_category for op in lane.ops]),
        }

    def table(self) -> pa.Table:
        """All that was taken in."""
        columns = {}
        for column in EVENTS.columns:
            pieces = self.pieces.pop(column.name)
            if column.name in self.words:
                pieces = [self.words[column.name].array(codes) for codes in pieces]
            columns[column.name] = pa.chunked_array(pieces, EVENTS.arrow_schema().field(column.name).type)
        return pa.table(columns, schema=EVENTS.arrow_schema())


def _of_runs(runs: list[Run]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Program ids and run ids of runs, NONE at the end for what is in none."""
    programs = [NONE if run.program_id is None else run.program_id for run in runs]
    ids = [NONE if run.run_id is None else run.run_id for run in runs]
    return np.array([*programs, NONE]), np.array([*ids, NONE])


def _step_of(steps: list[dict[str, Any]], at_ps: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the step that each time is in, NONE where it is in none."""
    spans = [Run("", step["step"], None, step["start_ps"], step["duration_ps"]) for step in steps]
    return _of_runs(spans)[0][enclosing(spans, at_ps)]


def events_table(
    traces: Iterable[tuple[Trace, HostTime]], steps: list[dict[str, Any]], programs: dict[str | None, Programs]
) -> pa.Table:
    """All events of the traces, lane after lane in the order of the files.

    Args:
        traces: each trace, and what its devices did.
        steps: the rows of `steps`.
        programs: by platform.
    """
    columns = _Columns()
    for trace, host in traces:
        runs = {device.device: device.runs for device in host.devices}
        for lane in trace.lanes(False):
            own = [step for step in steps if step["host"] == host.host and step["device"] == lane.device]
            columns.add(lane, programs[trace.platform], runs.get(lane.device or "", []), own)
    return columns.table()
