"""Loops over a module's computations: their order, their schedule, how often they run, what they add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import kernel

if TYPE_CHECKING:
    from hlotrace.native import Bytes, Ints, Ints32

UNKNOWN = -1
_MOST = 1 << 62


@kernel
def callees_first(
    computation_start: Ints32,
    called_start: Ints32,
    called: Ints32,
    seen: Bytes,
    stack: Ints32,
    edge_of: Ints32,
    order: Ints32,
) -> int:
    """Fill `order` with the computations, each after those it calls; `seen`, `stack`, `edge_of` are room to work in."""
    length = 0
    for root in range(len(computation_start) - 1):
        if seen[root]:
            continue
        seen[root] = 1
        depth = 0
        stack[0] = root
        edge_of[0] = called_start[computation_start[root]]
        while depth >= 0:
            computation = stack[depth]
            if edge_of[depth] == called_start[computation_start[computation + 1]]:
                order[length] = computation
                length += 1
                depth -= 1
                continue
            target = called[edge_of[depth]]
            edge_of[depth] += 1
            if target >= 0 and not seen[target]:
                seen[target] = 1
                depth += 1
                stack[depth] = target
                edge_of[depth] = called_start[computation_start[target]]
    return length


@kernel
def flatten(
    entry: int,
    computation_start: Ints32,
    called_start: Ints32,
    called: Ints32,
    turn: Ints32,
    entered: Bytes,
    row_of: Ints32,
    end_of: Ints32,
    waits: Bytes,
    order: Ints32,
) -> int:
    """Fill `order` with the rows of the flattened schedule; gives how many.

    `turn` is for each call 0 where nothing is entered, 1 where it is entered in its order, 2 where before those.
    `entered`, `row_of`, `end_of` (one a computation) and `waits` (one a row) are room to work in.
    """
    length = 0
    depth = 0
    entered[entry] = 1
    row_of[0] = computation_start[entry]
    end_of[0] = computation_start[entry + 1]
    while depth >= 0:
        row = row_of[depth]
        if row == end_of[depth]:
            depth -= 1
            continue
        pushed = depth
        if not waits[row]:
            waits[row] = 1
            for now in range(1, 3):  # what is pushed last runs first
                for edge in range(called_start[row + 1] - 1, called_start[row] - 1, -1):
                    target = called[edge]
                    if target < 0 or entered[target] or turn[edge] != now:
                        continue
                    entered[target] = 1
                    pushed += 1
                    row_of[pushed] = computation_start[target]
                    end_of[pushed] = computation_start[target + 1]
        if pushed > depth:
            depth = pushed
            continue
        order[length] = row
        length += 1
        row_of[depth] = row + 1
    return length


@kernel
def executions(
    order: Ints32, computation_start: Ints32, called_start: Ints32, called: Ints32, times: Ints, runs: Ints
) -> int:
    """Add to `runs`, which says how often the entry runs, how often the others do; -1 where that is not known.

    `times` is for each call how often one run of the caller makes it, -1 where not known.
    """
    for at in range(len(order) - 1, -1, -1):
        computation = order[at]
        own = runs[computation]
        if own == 0:
            continue
        first = called_start[computation_start[computation]]
        for edge in range(first, called_start[computation_start[computation + 1]]):
            target = called[edge]
            if target < 0 or runs[target] == UNKNOWN:
                continue
            if own == UNKNOWN or times[edge] == UNKNOWN or (times[edge] > 0 and own > _MOST // times[edge]):
                runs[target] = UNKNOWN
            else:
                runs[target] = min(runs[target] + own * times[edge], _MOST)
    return 0


@kernel
def sum_up(
    order: Ints32,
    computation_start: Ints32,
    called_start: Ints32,
    called: Ints32,
    applications: Ints,
    entered: Bytes,
    own: Ints,
    totals: Ints,
) -> int:
    """Add to `own`, one a row, what applied computations take; -1 anywhere makes the sum -1.

    Args:
        applications: for each call how often one execution of the caller applies what it calls.
        entered: whether a call is control flow, which adds to the caller's computation and not to the caller.
        totals: what each computation takes, filled in.
    """
    for computation in order:
        total = 0
        for row in range(computation_start[computation], computation_start[computation + 1]):
            extra = 0
            for edge in range(called_start[row], called_start[row + 1]):
                if called[edge] < 0:
                    continue
                inside = totals[called[edge]]
                if entered[edge]:
                    extra = -1 if inside < 0 or extra < 0 else extra + inside
                elif applications[edge]:
                    unknown = own[row] < 0 or inside < 0 or applications[edge] < 0
                    own[row] = -1 if unknown else own[row] + applications[edge] * inside
            total = -1 if total < 0 or own[row] < 0 or extra < 0 else total + own[row] + extra
        totals[computation] = total
    return 0


@kernel
def contents(
    order: Ints32,
    computation_start: Ints32,
    called_start: Ints32,
    called: Ints32,
    bits: Ints,
    content: Ints,
    inside: Ints,
) -> int:
    """Gather the bits of rows: in `content` of each computation, in `inside` of what each row calls."""
    for computation in order:
        for row in range(computation_start[computation], computation_start[computation + 1]):
            for edge in range(called_start[row], called_start[row + 1]):
                if called[edge] >= 0:
                    inside[row] |= content[called[edge]]
            content[computation] |= bits[row] | inside[row]
    return 0
