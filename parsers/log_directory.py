"""A profiler's log directory: which traces of which run and host are in it.

`LOGDIR/plugins/profile/<run>/<host>.xplane.pb`, and beside each `<host>.trace.json.gz` with the same events, at most a
million of them. Each host writes into a run of its own start, so that one capture can leave runs some seconds apart.
What else is there belongs to XProf: caches, and the programs' HLO as `<module>(<program id>).hlo_proto.pb`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

XPLANE = ".xplane.pb"
CHROME = (".trace.json.gz", ".trace.json")
APART_SECONDS = 10
"""How far apart the hosts of one capture may start."""

_SIDE = re.compile(r"(.*)\((-?\d+)\)\.hlo_proto\.pb$")
_NOT_OURS = ("perfetto_trace.json.gz",)


@dataclass(frozen=True)
class TraceFile:
    """One file of a trace.

    Attributes:
        path: relative to what was opened.
        run: the directory it stands in.
    """

    path: str
    run: str
    host: str
    kind: Literal["xplane", "chrome"]
    size: int


@dataclass(frozen=True)
class TraceFiles:
    """The traces to read: for each host its files, the best first.

    Attributes:
        other_runs: runs that are there as well.
    """

    hosts: tuple[tuple[TraceFile, ...], ...]
    other_runs: tuple[str, ...]
    sides: tuple[SideFile, ...] = ()


@dataclass(frozen=True)
class SideFile:
    """The HLO of a program, which XProf writes beside a trace."""

    path: str
    module: str
    program_id: int


def program_id_of_name(path: str) -> int | None:
    """The program id in the name of a program's HLO as XProf writes it, as a signed 64-bit integer."""
    found = _SIDE.match(path.rpartition("/")[2])
    return _signed(int(found[2])) if found else None


def _signed(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def trace_file(path: str, size: int) -> TraceFile | None:
    """What a file's name says of it as a trace; None for any other file."""
    run, _, name = path.rpartition("/")
    if name in _NOT_OURS:
        return None
    if name.endswith(XPLANE):
        return TraceFile(path, run, name.removesuffix(XPLANE), "xplane", size)
    ending = next((ending for ending in CHROME if name.endswith(ending)), None)
    return TraceFile(path, run, name.removesuffix(ending), "chrome", size) if ending else None


def find_traces(files: Mapping[str, int]) -> TraceFiles:
    """The traces of the latest capture among files, given by path and size in bytes."""
    found = [trace for path, size in sorted(files.items()) if (trace := trace_file(path, size)) is not None]
    runs: dict[str, list[TraceFile]] = {}
    for trace in found:
        runs.setdefault(trace.run, []).append(trace)
    chosen = _latest(runs)
    hosts: dict[str, list[TraceFile]] = {}
    for run in chosen:
        for trace in runs[run]:
            hosts.setdefault(trace.host, []).append(trace)
    best = (
        tuple(sorted(traces, key=lambda trace: (trace.size == 0, trace.kind == "chrome"))) for traces in hosts.values()
    )
    return TraceFiles(tuple(best), tuple(run for run in runs if run not in chosen), _sides(files, chosen))


def _latest(runs: Mapping[str, list[TraceFile]]) -> list[str]:
    """The run that began last, and those of other hosts that began just before it."""
    ordered = sorted(runs, key=lambda run: run.rpartition("/")[2])
    if not ordered:
        return []
    chosen = [ordered.pop()]
    hosts = {trace.host for trace in runs[chosen[0]]}
    while ordered:
        run = ordered.pop()
        other = {trace.host for trace in runs[run]}
        apart = _begun(chosen[0]), _begun(run)
        if hosts & other or None in apart or abs((apart[0] - apart[1]).total_seconds()) > APART_SECONDS:  # type: ignore[operator]
            break
        chosen.append(run)
        hosts |= other
    return chosen


def _begun(run: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(run.rpartition("/")[2], "%Y_%m_%d_%H_%M_%S")
    except ValueError:
        return None


def _sides(files: Mapping[str, int], runs: list[str]) -> tuple[SideFile, ...]:
    found = []
    for path, size in sorted(files.items()):
        run, _, name = path.rpartition("/")
        matched = _SIDE.match(name)
        if matched and size and run in runs:
            found.append(SideFile(path, matched[1], _signed(int(matched[2]))))
    return tuple(found)
