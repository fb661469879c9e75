"""The lanes of a trace in Chrome's JSON, in which every argument is a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hlotrace.trace.lanes import NONE, Lane, Op, Trace, device_of, instruction_of, role_of, run_of, signed

_NUMBER = re.compile(r"-?\d+$")
_LONGEST_US = 1e12
_UNPLACED = ""
"""The device of an op before the name of its process is known."""


@dataclass
class _Thread:
    """The events of a thread as they come, in lists of numbers; NONE is what an event does not say."""

    start_ps: list[int] = field(default_factory=list)
    duration_ps: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    op: list[int] = field(default_factory=list)
    run_id: list[int] = field(default_factory=list)
    step_number: list[int] = field(default_factory=list)
    own_start_ps: list[int] = field(default_factory=list)
    own_duration_ps: list[int] = field(default_factory=list)


class _Reader:
    def __init__(self, host: str) -> None:
        self.host = host
        self.processes: dict[str, str] = {}
        self.threads: dict[tuple[str, str], str] = {}
        self.events: dict[tuple[str, str], _Thread] = {}
        self.names: dict[str, int] = {}
        self.ops: dict[Op, int] = {}

    def take(self, event: dict[str, Any]) -> None:
        """One event: the name of a process or a thread, or one with a duration; others say nothing of time."""
        arguments = event.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        key = (str(event.get("pid")), str(event.get("tid")))
        if event.get("ph") == "M":
            name = str(arguments.get("name", ""))
            if event.get("name") == "process_name":
                self.processes[key[0]] = name
            elif event.get("name") == "thread_name":
                self.threads[key] = name
        elif event.get("ph") == "X":
            self._add(self.events.setdefault(key, _Thread()), event, arguments)

    def _add(self, thread: _Thread, event: dict[str, Any], arguments: dict[str, Any]) -> None:
        start, duration = _picoseconds(event.get("ts")), _picoseconds(event.get("dur", 0))
        if start is None or duration is None:
            return
        name = str(event.get("name", ""))
        thread.start_ps.append(start)
        thread.duration_ps.append(duration)
        thread.name.append(self.names.setdefault(name, len(self.names)))
        thread.op.append(self._op(name, arguments))
        thread.run_id.append(_number(arguments, "run_id"))
        thread.step_number.append(_number(arguments, "step_num"))
        thread.own_start_ps.append(_number(arguments, "device_offset_ps"))
        thread.own_duration_ps.append(_number(arguments, "device_duration_ps"))

    def _op(self, name: str, arguments: dict[str, Any]) -> int:
        instruction = instruction_of(str(arguments.get("long_name", ""))) or _text(arguments, "hlo_op")
        if instruction is None and "hlo_category" in arguments:
            instruction = name
        module, number = run_of(_text(arguments, "hlo_module") or "")
        program = _number(arguments, "program_id")
        op = Op(
            device=_UNPLACED,
            module=module or None,
            program_id=number if program == NONE else program,
            instruction=instruction,
            name=name,
            hlo_category=_text(arguments, "hlo_category"),
            op_name=_op_name(arguments),
            source=_text(arguments, "source"),
            flops=_known(_number(arguments, "flops")) or _known(_number(arguments, "model_flops")),
            hbm_bytes=_known(_number(arguments, "bytes_accessed")),
        )
        return self.ops.setdefault(op, len(self.ops))

    def lanes(self, only_telling: bool, platform: str | None) -> Iterator[Lane]:
        """The lanes of all threads."""
        names, ops = list(self.names), list(self.ops)
        for (process, thread), events in self.events.items():
            plane = self.processes.get(process, process)
            line = self.threads.get((process, thread), thread)
            device = device_of(plane)
            role = role_of(device, line)
            steps = np.array(events.step_number, np.int64)
            takes_ops = role in ("ops", "async") or (role == "host" and platform == "cpu")
            op = np.array(events.op, np.int32)
            own, op = _placed(ops, op, device) if takes_ops else ([], np.full(len(op), -1, np.int32))
            tells = bool(own) or role in ("modules", "steps") or bool((steps != NONE).any())
            if len(op) and (tells or not only_telling):
                yield Lane(
                    host=self.host,
                    plane=plane,
                    line=line,
                    role=role,
                    device=device,
                    names=names,
                    name=np.array(events.name, np.int32),
                    start_ps=np.array(events.start_ps, np.int64),
                    duration_ps=np.array(events.duration_ps, np.int64),
                    ops=own,
                    op=op,
                    run_id=np.array(events.run_id, np.int64),
                    step_number=steps,
                    own_start_ps=np.array(events.own_start_ps, np.int64),
                    own_duration_ps=np.array(events.own_duration_ps, np.int64),
                )

    def platform(self) -> str | None:
        """What ran the ops: a device, or the CPU where no device ran any."""
        for process, thread in self.events:
            device = device_of(self.processes.get(process, ""))
            if device is not None and role_of(device, self.threads.get((process, thread), "")) == "ops":
                return device[:3].lower()
        return "cpu" if any(op.instruction is not None for op in self.ops) else None


def trace_of(events: Iterable[dict[str, Any]], host: str, problems: list[tuple[str, str, str]]) -> Trace:
    """The lanes of the events; `problems` is what their reader fills."""
    reader = _Reader(host)
    for event in events:
        reader.take(event)
    platform = reader.platform()
    return Trace(host, platform, lambda only_telling: reader.lanes(only_telling, platform), problems)


def _placed(ops: list[Op], op: np.ndarray[Any, Any], device: str | None) -> tuple[list[Op], np.ndarray[Any, Any]]:
    """The ops of a thread with their device, and the places of its events among them; a host's calls are no ops."""
    used = np.unique(op)
    kept = [number for number in used.tolist() if device is not None or ops[number].instruction is not None]
    places = np.full(len(ops), -1, np.int32)
    places[kept] = np.arange(len(kept), dtype=np.int32)
    return [replace(ops[number], device=device or "CPU:0") for number in kept], places[op]


def _text(arguments: dict[str, Any], name: str) -> str | None:
    value = arguments.get(name)
    return str(value) if value not in (None, "") else None


def _number(arguments: dict[str, Any], name: str) -> int:
    value = arguments.get(name)
    return signed(int(value)) if value is not None and _NUMBER.match(str(value)) else NONE


def _picoseconds(microseconds: object) -> int | None:
    """A time of the format; None for what is none, or is far beyond any trace."""
    if not isinstance(microseconds, int | float) or not abs(microseconds) < _LONGEST_US:
        return None
    return round(microseconds * 1e6)


def _known(value: int) -> int | None:
    return None if value == NONE else value


def _op_name(arguments: dict[str, Any]) -> str | None:
    for name in ("name", "tf_op"):
        text = _text(arguments, name)
        if text is not None and not text.startswith("XlaModule"):
            return text.rstrip(":") or None
    return None
