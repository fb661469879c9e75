"""`collectives`: each collective of a module once, how long it took and how much of that other ops hid.

An asynchronous one lasts from the begin of its start to the end of its done. Hidden is the time in which the same
device ran other ops, innermost ones that are no collective themselves; exposed is the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotrace.hlo.replica_groups import groups_of
from hlotrace.tables import LINES
from hlotrace.trace.categories import collective_kind, is_communication, opcode_of
from hlotrace.trace.op_times import known_of
from hlotrace.trace.spans import Cover

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.trace.device_time import DeviceTime, OpEvents
    from hlotrace.trace.lanes import Op
    from hlotrace.trace.programs import Fact, Programs

MOST_OVERLAPPED = 3


@dataclass
class _Found:
    """What was measured of one collective so far."""

    op: Op
    fact: Fact | None
    form: str
    kind: str
    durations: list[NDArray[np.int64]] = field(default_factory=list)
    hidden_ps: int = 0
    meanwhile: Counter[str] = field(default_factory=Counter)


def collective_rows(devices: Iterable[DeviceTime], programs: Programs) -> Iterator[dict[str, Any]]:
    """A row for each collective that any of the devices ran, those with the most exposed time first."""
    found: dict[tuple[str | None, str], _Found] = {}
    for device in devices:
        _add_device(found, device, programs)
    rows = [_row(module, name, one) for (module, name), one in found.items()]
    yield from sorted(rows, key=lambda row: -row["exposed_ps"])


def _row(module: str | None, name: str, found: _Found) -> dict[str, Any]:
    durations = np.concatenate(found.durations)
    known = known_of(found.op, found.fact)
    size, count = groups_of((found.fact or {}).get("attributes") or "")
    total = int(durations.sum())
    return {
        "module": module,
        "instruction": name,
        "kind": found.kind,
        "form": found.form,
        "group_size": size,
        "group_count": count,
        "bytes": found.fact["bytes"] if found.fact else None,
        "execution_count": len(durations),
        "duration_ps": total,
        "median_ps": int(np.median(durations)),
        "hidden_ps": found.hidden_ps,
        "exposed_ps": total - found.hidden_ps,
        "overlapped_with": [text for text, _ in found.meanwhile.most_common(MOST_OVERLAPPED)],
        **{column: known[column] for column in ("op_name", *LINES)},
    }


def _add_device(found: dict[tuple[str | None, str], _Found], device: DeviceTime, programs: Programs) -> None:
    ops, events, spans = device.ops, device.events, device.spans
    modules = programs.modules_of(ops)
    keys = [(modules[op.module, op.program_id], op.instruction) for op in ops]
    facts = programs.facts(dict.fromkeys(keys))
    is_collective = np.array(
        [known_of(op, facts.get(key))["category"] == "collective" for op, key in zip(ops, keys, strict=True)], bool
    )
    if not is_collective.any():
        return
    others = events.is_leaf & ~is_collective[events.op]
    cover = Cover.of(events.own_start_ps[others], events.own_duration_ps[others])
    dones = _dones(keys, facts)
    for number in np.flatnonzero(is_collective).tolist():
        if number in dones.values():
            continue
        begin, length = _executions(number, dones.get(number), events, spans)
        if not len(begin):
            continue
        op, (module, instruction) = ops[number], keys[number]
        fact = facts.get(keys[number])
        opcode = fact["opcode"] if fact else None
        one = found.setdefault(
            (module, instruction or op.name),
            _Found(op, fact, _form(device, op, opcode, number in dones), collective_kind(op, opcode) or "collective"),
        )
        one.durations.append(length)
        hidden = cover.within(begin, length)
        one.hidden_ps += int(hidden.sum())
        if hidden.any():
            meanwhile = Cover.of(begin, length).within(events.own_start_ps[others], events.own_duration_ps[others])
            time = np.zeros(len(ops), np.int64)
            np.add.at(time, events.op[others], meanwhile)
            for other in np.flatnonzero(time).tolist():
                one.meanwhile[ops[other].instruction or ops[other].name] += int(time[other])


def _form(device: DeviceTime, op: Op, opcode: str | None, is_pair: bool) -> str:
    if "SparseCore" in device.device:
        return "sparsecore"
    if is_communication(op.name):
        return "kernel"
    if is_pair or opcode_of(op.instruction or "").endswith("-start"):
        return "start/done"
    return "fused" if opcode == "fusion" else "sync"


def _dones(
    keys: list[tuple[str | None, str | None]], facts: dict[tuple[str | None, str | None], Fact]
) -> dict[int, int]:
    """Start → done, among ops: by the done's operand where the HLO is there, else by the names."""
    places = {key: number for number, key in enumerate(keys)}
    found = {}
    for number, (module, instruction) in enumerate(keys):
        if instruction is None:
            continue
        fact = facts.get((module, instruction))
        opcode = fact["opcode"] if fact else opcode_of(instruction)
        if not opcode.endswith("-done"):
            continue
        operands = (fact["operands"] if fact else None) or [instruction.replace("-done", "-start")]
        start = places.get((module, operands[0].partition("#")[0]))
        if start is not None and start != number:
            found[start] = number
    return found


def _executions(
    op: int, done: int | None, events: OpEvents, spans: OpEvents
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin and length of each execution of a collective."""
    rows = events.op == op
    begin, length = events.own_start_ps[rows], events.own_duration_ps[rows]
    if done is None:
        if (spans.op == op).any():
            rows = spans.op == op
            return spans.start_ps[rows], spans.duration_ps[rows]
        return begin, length
    after = events.op == done
    done_begin, done_end = events.own_start_ps[after], events.own_start_ps[after] + events.own_duration_ps[after]
    order = np.argsort(done_begin)
    done_begin, done_end = done_begin[order], done_end[order]
    place = np.searchsorted(done_begin, begin)
    paired = place < len(done_begin)
    return begin[paired], done_end[place[paired]] - begin[paired]
