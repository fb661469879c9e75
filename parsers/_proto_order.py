"""In which order HLO text has the computations and instructions of an HloModuleProto, and what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.parsers._wire import Message
    from hlotrace.parsers._wire_columns import Fields


def callees_first(identities: list[int], calls: list[list[list[int]]]) -> list[int]:
    """The order of the computations in the text: what an instruction calls stands before it.

    The proto itself lists them by id once a module is scheduled.

    Args:
        identities: of each computation.
        calls: of each computation what each of its instructions calls, instructions in the order of their ids.

    Returns:
        Places in `identities`.
    """
    place = {identity: at for at, identity in enumerate(identities)}
    called = {identity for groups in calls for group in groups for identity in group}
    roots = [at for at, identity in enumerate(identities) if identity not in called]
    order: list[int] = []
    seen: set[int] = set()
    for root in [*roots, *range(len(identities))]:
        if root in seen:
            continue
        seen.add(root)
        waiting = [(root, iter(calls[root]))]
        while waiting:
            at, rest = waiting[-1]
            group = next(rest, None)
            if group is None:
                order.append(at)
                waiting.pop()
                continue
            known = [place[one] for one in dict.fromkeys(group) if one in place]
            fresh = [one for one in known if one not in seen]
            seen.update(fresh)
            waiting += [(one, iter(calls[one])) for one in reversed(fresh)]
    return order


def calls_of(
    count: int, owner: NDArray[np.int64], identity: NDArray[np.int64], start: NDArray[np.int64], called: list[int]
) -> list[list[list[int]]]:
    """For each of `count` computations what its instructions call, instructions in the order of their ids.

    Args:
        owner: of each instruction its computation. identity: of each instruction its id.
        start: [instructions + 1] where in `called` what each calls begins.
    """
    found: list[list[list[int]]] = [[] for _ in range(count)]
    calling = np.flatnonzero(np.diff(start))
    for at in calling[np.lexsort((identity[calling], owner[calling]))].tolist():
        found[owner[at]].append(called[start[at] : start[at + 1]])
    return found


def rank_in_schedule(module: Message, identity: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each instruction its place in its computation: by the module's schedule, else as the proto has it."""
    rank = np.arange(len(identity)) + len(identity)
    sorter = np.argsort(identity, kind="stable")
    ordered = identity[sorter]
    for entry in module.message(7).messages(1):
        sequence = np.array(entry.message(2).integers(1), np.int64)
        at = np.minimum(np.searchsorted(ordered, sequence), max(len(ordered) - 1, 0))
        if len(ordered):
            there = ordered[at] == sequence
            rank[sorter[at[there]]] = np.flatnonzero(there)
    return rank


def is_newer(fields: Fields, opcodes: list[bytes]) -> bool:
    """Whether the XLA that wrote the proto dumps its text in the newer form.

    The newer form (libtpu 0.0.50, jaxlib 0.12; not libtpu 0.0.42 and jaxlib 0.10.2) writes `%tuple#1` where a
    get-tuple-element stands, and configurations with their keys sorted. The proto carries no version; but the older
    XLA gives every comparison a `comparison_type`, the newer gives it none.
    """
    compares = np.array([opcode == b"compare" for opcode in opcodes], bool)
    return bool(compares.any()) and not bool((fields.last(72)[compares] >= 0).any())
