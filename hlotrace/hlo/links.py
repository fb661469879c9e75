"""Our model of a collective's time on the links between chips: a ring over its group, each chip on two of its links.

What a device sends, of n in a group: all-gather (n - 1) times its operand, reduce-scatter and all-to-all (n - 1) / n of
it, all-reduce twice that, collective-permute and broadcast all of it once. Two links are one dimension of the torus,
both ways. Hops through other chips, the start of a transfer, and traffic between slices are not in the model.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo.category import COLLECTIVES
from hlotrace.hlo.replica_groups import group_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from hlotrace.devices import Chip
    from hlotrace.hlo.facts import Facts

LINKS_OF_A_RING = 2


def sent_bytes(kind: str, operand_bytes: int, group: int) -> float:
    """Bytes that each device of a ring sends in a collective of `kind`, an opcode without `-start`."""
    share = (group - 1) / group
    if kind == "all-gather":
        return operand_bytes * (group - 1)
    if kind == "all-reduce":
        return 2 * operand_bytes * share
    if kind in ("reduce-scatter", "all-to-all", "ragged-all-to-all"):
        return operand_bytes * share
    return float(operand_bytes)


def link_ns(facts: Facts, rows: NDArray[np.int64], chip: Chip) -> NDArray[np.float64]:
    """Nanoseconds on the links for each of `rows`; NaN for what is no collective, or where the model cannot tell."""
    found = np.full(len(rows), np.nan)
    bandwidth, links = chip.ici_link_bandwidth, chip.ici_links
    if bandwidth is None or links is None or bandwidth.value <= 0:
        return found
    rate = bandwidth.value * min(LINKS_OF_A_RING, links.value) / chip.devices
    devices = _devices(facts)
    is_collective = facts.hlo.by_opcode(lambda opcode: _kind(opcode) in COLLECTIVES, np.bool_)
    for at, row in enumerate(rows.tolist()):
        inner = _collective_of(facts, row, is_collective)
        if inner is None:
            continue
        sent = _sent(facts, inner, devices)
        if sent is not None:
            found[at] = sent / rate * 1e9
    return found


def _kind(opcode: str) -> str:
    return opcode.removesuffix("-start")


def _devices(facts: Facts) -> int:
    counts = (facts.hlo.attributes.get(name, "1") for name in ("num_partitions", "replica_count"))
    return prod(int(count) if count.isdigit() else 1 for count in counts)


def _collective_of(facts: Facts, row: int, is_collective: NDArray[np.bool_]) -> int | None:
    """The row itself, or the one collective that it applies; None where there is none, or more than one."""
    found = list(_collectives_in(facts, row, is_collective))
    return found[0] if len(found) == 1 else None


def _collectives_in(facts: Facts, row: int, is_collective: NDArray[np.bool_]) -> Iterator[int]:
    """Also those that what it applies calls, as an async start on a SparseCore does."""
    applied = int(facts.graph.applied[row])
    if is_collective[row]:
        yield row
    elif applied >= 0:
        start, end = facts.hlo.computation_start[applied : applied + 2].tolist()
        for inside in range(start, end):
            yield from _collectives_in(facts, inside, is_collective)


def _sent(facts: Facts, row: int, devices: int) -> float | None:
    hlo = facts.hlo
    kind = _kind(hlo.opcodes[hlo.opcode[row]])
    shapes = facts.operand_shape[hlo.operand_start[row] : hlo.operand_start[row + 1]]
    if kind in ("send", "recv") or not len(shapes) or (shapes < 0).any():
        return None
    sizes = facts.shapes.logical[shapes]
    if (sizes < 0).any():
        return None
    if kind == "collective-permute":
        return sent_bytes(kind, int(sizes[0]), 1)
    group = group_size(hlo.raw_attributes[row].as_py() or "", devices)
    return sent_bytes(kind, int(sizes.sum()), group) if group else None
