"""The groups of devices that a collective works in, by its `replica_groups` in any of XLA's notations."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

_LISTS = re.compile(r"replica_groups=\{(\{[\d,{}\s]*\})\}")
_EMPTY = re.compile(r"replica_groups=\{\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=")
_MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}")
_AXIS = re.compile(r"'([^']*)'=(\d+)")
_NAME = re.compile(r"'([^']*)'(?::\(\d+\)(\d+))?")


@lru_cache(1 << 12)
def groups_of(attributes: str) -> tuple[int | None, int | None]:
    """Devices in a group and number of groups; None where the text does not say, as for the empty list of all.

    Args:
        attributes: the instruction's, as text.
    """
    if match := _LISTS.search(attributes):
        groups = match[1][1:-1].split("},{")
        return len([part for part in groups[0].split(",") if part.strip()]) or None, len(groups)
    if match := _IOTA.search(attributes):
        *counts, size = map(int, match[1].split(","))
        return size, prod(counts)
    if match := _MESH.search(attributes):
        return _of_mesh(match[1], match[2])
    return None, None


def _of_mesh(mesh: str, used: str) -> tuple[int | None, int | None]:
    """Of axes such as `'x'=4,'y'=2` those that a group spans, whole or, as `'x':(2)2`, in part."""
    sizes = {name: int(size) for name, size in _AXIS.findall(mesh)}
    named = _NAME.findall(used)
    if not all(part or name in sizes for name, part in named):
        return None, None
    size = prod(int(part) if part else sizes[name] for name, part in named)
    return size, prod(sizes.values()) // size


def group_size(attributes: str, devices: int) -> int | None:
    """Devices of one group; None when not told.

    Args:
        attributes: the instruction's, as text.
        devices: partitions times replicas, which an empty list of groups means.
    """
    return devices if _EMPTY.search(attributes) else groups_of(attributes)[0]
