"""`op_times`: how long each op took on each device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotrace.tables import LINES
from hlotrace.trace.categories import category_of
from hlotrace.trace.spans import added_up, medians

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.trace.device_time import DeviceTime
    from hlotrace.trace.lanes import Op
    from hlotrace.trace.programs import Fact, Programs


def op_time_rows(device: DeviceTime, programs: Programs) -> Iterator[dict[str, Any]]:
    """A row for each instruction of each module, and for each kernel that is no instruction, that the device ran."""
    events, ops = device.events, device.ops
    modules = programs.modules_of(ops)
    keys = [(modules[op.module, op.program_id], op.instruction, op.name if not op.instruction else None) for op in ops]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    facts = programs.facts([key[:2] for key in numbers])
    of_op = np.array([numbers[key] for key in keys], np.int32)
    row = of_op[events.op]
    counts, totals = added_up(row, events.own_duration_ps, len(numbers))
    selves = added_up(row, events.self_ps, len(numbers))[1]
    median = medians(row, events.own_duration_ps, counts)
    heaviest = _heaviest(of_op, added_up(events.op, events.own_duration_ps, len(ops))[1])
    for (module, instruction, _), number in numbers.items():
        if counts[number]:
            op = ops[heaviest[number]]
            yield {
                "host": device.host,
                "device": device.device,
                "module": module,
                "program_id": op.program_id,
                "instruction": instruction,
                "name": op.name,
                "hlo_category": op.hlo_category,
                "occurrences": int(counts[number]),
                "total_ps": int(totals[number]),
                "self_ps": int(selves[number]),
                "median_ps": int(median[number]),
                **known_of(op, facts.get((module, instruction))),
            }


def _heaviest(row_of_op: NDArray[np.int32], total: NDArray[np.int64]) -> dict[int, int]:
    """Of each row the op with the most time: it gives the row its name."""
    order = np.argsort(total, kind="stable")
    return {int(row_of_op[op]): int(op) for op in order}


def known_of(op: Op, fact: Fact | None) -> dict[str, Any]:
    """What is known of an op beyond its times: from its instruction, else from the trace."""
    file, _, line = (op.source or "").rpartition(":")
    number = int(line) if line.isdigit() else None
    said = {
        "category": category_of(op),
        "flops": op.flops,
        "hbm_bytes": op.hbm_bytes,
        "op_name": op.op_name,
        **dict.fromkeys(("source_file", "user_file"), file or None),
        **dict.fromkeys(("source_line", "user_line"), number),
    }
    if fact is None:
        return said
    read, written = fact["hbm_read_bytes"], fact["hbm_write_bytes"]
    known = {
        "category": fact["category"],
        "flops": fact["flops"],
        "hbm_bytes": None if read is None or written is None else read + written,
        "op_name": fact["op_name"],
    }
    if fact["source_file"] is not None:
        said |= {name: fact[name] for name in LINES}
    return said | {name: value for name, value in known.items() if value is not None}
