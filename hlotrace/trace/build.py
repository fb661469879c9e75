"""The tables of one or several hosts' traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hlotrace.tables import ALL_TABLES
from hlotrace.trace.collectives import collective_rows
from hlotrace.trace.device_time import HostTime, read_host
from hlotrace.trace.events import events_table
from hlotrace.trace.op_times import op_time_rows
from hlotrace.trace.programs import Programs
from hlotrace.trace.steps import step_rows

if TYPE_CHECKING:
    from hlotrace.trace.lanes import Trace

SUMMARIES = ("op_times", "steps", "collectives")


class Traced:
    """What was traced on all hosts, read once."""

    def __init__(self, traces: Sequence[Trace], modules: list[dict[str, Any]], instructions: pa.Table) -> None:
        self._traces = traces
        self._hosts: list[HostTime] = [read_host(trace) for trace in traces]
        platforms = {trace.platform for trace in traces}
        self._programs = {platform: Programs(modules, instructions, platform) for platform in platforms}
        self._steps = [row for host in self._hosts for row in step_rows(host)]

    def summaries(self) -> dict[str, pa.Table]:
        """`op_times`, `steps` and `collectives`."""
        op_times: list[dict[str, Any]] = []
        collectives: list[dict[str, Any]] = []
        for platform, programs in self._programs.items():
            devices = [device for host in self._hosts if host.platform == platform for device in host.devices]
            for device in devices:
                op_times += op_time_rows(device, programs)
            collectives += collective_rows(devices, programs)
        op_times.sort(key=lambda row: -row["self_ps"])
        rows = {"op_times": op_times, "steps": self._steps, "collectives": collectives}
        return {name: pa.Table.from_pylist(rows[name], ALL_TABLES[name].arrow_schema()) for name in SUMMARIES}

    def events(self) -> pa.Table:
        """`events`."""
        return events_table(zip(self._traces, self._hosts, strict=True), self._steps, self._programs)
