"""What XLA's parser adds to a text or changes while it reads it: parameters, names, shapes, async computations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_async import wrap_async
from hlotrace.parsers._hlo_draft import LINE
from hlotrace.parsers._hlo_gather import gather
from hlotrace.parsers._hlo_implied import complete_shapes

if TYPE_CHECKING:
    from hlotrace.parsers._hlo_draft import Draft

Problem = tuple[str, str, str]

_NUMBERED = re.compile(r"(.+)\.(-?\d{1,18})")


class NameUniquer:
    """Gives names that are not taken, by XLA's rule: `add` taken gives the next free of `add.1`, and so on."""

    def __init__(self) -> None:
        self._used: dict[str, set[int]] = {}
        self._next: dict[str, int] = {}

    def __call__(self, name: str) -> str:
        """The name itself, or one with another number."""
        match = _NUMBERED.fullmatch(name)
        root, number = (match[1], int(match[2])) if match else (name, 0)
        used = self._used.setdefault(root, set())
        if number in used:
            number = self._next.get(root, 0)
            while number in used:
                number += 1
            self._next[root] = number + 1
        used.add(number)
        return f"{root}.{number}" if number or match else root


def complete(draft: Draft, problems: list[Problem]) -> None:
    """Give the draft all that its text leaves out, and what XLA names differently than the text.

    Args:
        problems: gets what was read leniently.

    Raises:
        ParseError: an instruction has no shape, and it does not follow from its operands.
    """
    _resolve_calls(draft, problems)
    if draft.is_bare:
        _add_parameters(draft)
    if draft.state[a.UNRESOLVED]:
        _resolve_later(draft, problems)
    if draft.state[a.REORDERED] or draft.is_bare:
        _name_nameless(draft)
    complete_shapes(draft, problems)
    wrapped = wrap_async(draft)
    if draft.state[a.REORDERED] or draft.is_bare or wrapped:
        draft.put_in_order()
    if draft.state[a.REORDERED] or draft.is_bare or wrapped or draft.state[a.DUPLICATES] or _names_differ(draft):
        _rename(draft)


def _resolve_calls(draft: Draft, problems: list[Problem]) -> None:
    """Turn the names of what is called into numbers of computations; what is no computation becomes a problem."""
    calls = draft.calls
    names = gather(draft.text, calls[:, [a.START, a.STOP]])
    known = gather(draft.text, draft.computations[:, [a.C_NAME, a.C_NAME_END]])
    found = pc.index_in(names, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False)
    targets = np.where(calls[:, a.START] >= 0, found, calls[:, a.STOP])
    for call in np.flatnonzero(targets < 0).tolist():
        what = f"what is called, {names[call]}, is no computation of the module"
        problems.append((draft.where(int(calls[call, a.OWNER])), what, "the call is left out"))
    calls[:, a.STOP] = targets
    draft.calls = calls[targets >= 0]


def _add_parameters(draft: Draft) -> None:
    """Make a parameter of every operand that names nothing but has a shape, as XLA does for a single instruction."""
    missing = np.flatnonzero((draft.operands[:, a.TARGET] < 0) & (draft.operands[:, a.OPERAND_SHAPE] >= 0))
    rows: dict[str, int] = {}
    added: list[np.ndarray] = []
    for number in missing.tolist():
        operand = draft.operands[number]
        is_named = operand[a.START] >= 0
        name = draft.string(operand[a.START], operand[a.STOP]) if is_named else f"_{len(rows)}"
        if name not in rows:
            rows[name] = len(draft.rows) + len(added)
            row = np.full(a.ROW_WIDTH, -1, np.int64)
            row[a.NAME], row[a.NAME_END] = draft.add(name)
            row[[a.SHAPE, a.OPCODE]] = operand[a.OPERAND_SHAPE], draft.opcode_number("parameter")
            row[[a.PARAMETER, a.COMPUTATION]] = len(added), draft.rows[operand[a.OWNER], a.COMPUTATION]
            row[[LINE, a.DONE, a.FRAME]] = draft.rows[operand[a.OWNER], LINE], len(added) - len(missing), 0
            added.append(row)
        draft.operands[number, a.TARGET] = rows[name]
    if added:
        draft.append("rows", np.array(added))


def _resolve_later(draft: Draft, problems: list[Problem]) -> None:
    """Find the operands that are defined behind their use; the others become problems."""
    missing = np.flatnonzero(draft.operands[:, a.TARGET] < 0)
    owners = draft.operands[missing, a.OWNER]
    computations = draft.rows[owners, a.COMPUTATION]
    known: dict[tuple[int, str], int] = {}
    for row in np.flatnonzero(np.isin(draft.rows[:, a.COMPUTATION], computations)).tolist():
        if draft.rows[row, a.NAME] >= 0:
            name = draft.string(*draft.rows[row, [a.NAME, a.NAME_END]])
            known[int(draft.rows[row, a.COMPUTATION]), name] = row
    for number, owner, computation in zip(missing.tolist(), owners.tolist(), computations.tolist(), strict=True):
        start, end = draft.operands[number, [a.START, a.STOP]].tolist()
        name = draft.string(start, end) if start >= 0 else ""
        draft.operands[number, a.TARGET] = known.get((computation, name), -1)
        if draft.operands[number, a.TARGET] < 0:
            what = f"the operand {name or 'without a name'} is no instruction of its computation"
            problems.append((draft.where(owner), what, "it is shown as unknown"))


def _name_nameless(draft: Draft) -> None:
    """Name the instructions that stand as operands (`add.anon`), and what else has no name (`_`)."""
    uniquer = NameUniquer()
    nested = set(draft.operands[draft.operands[:, a.START] < 0, a.TARGET].tolist())
    for row in np.argsort(draft.rows[:, a.DONE], kind="stable").tolist():
        if draft.rows[row, a.NAME] >= 0:
            uniquer(draft.string(*draft.rows[row, [a.NAME, a.NAME_END]]))
            continue
        name = uniquer(f"{draft.opcodes[draft.rows[row, a.OPCODE]]}.anon") if row in nested else "_"
        draft.rows[row, [a.NAME, a.NAME_END]] = draft.add(name)
    for number in np.flatnonzero(draft.computations[:, a.C_NAME] < 0).tolist():
        draft.computations[number, [a.C_NAME, a.C_NAME_END]] = draft.add("_")


def _names_differ(draft: Draft) -> bool:
    """Whether a computation has a name that is not the same to XLA: `f.01` is `f.1` to it, and `f.0` may be `f`."""
    names = gather(draft.text, draft.computations[:, [a.C_NAME, a.C_NAME_END]])
    odd = names.filter(pc.match_substring_regex(names, r"\.0\d*$")).to_pylist()
    return any(not name.endswith(".0") or pc.index(names, name[:-2]).as_py() >= 0 for name in odd)


def _rename(draft: Draft) -> None:
    """Make names unique in the module, as XLA does when it puts computations into one."""
    for table, start, end in (draft.rows, a.NAME, a.NAME_END), (draft.computations, a.C_NAME, a.C_NAME_END):
        uniquer = NameUniquer()
        for number in _naming_order(draft, table):
            name = draft.string(*table[number, [start, end]])
            unique = uniquer(name)
            if unique != name:
                table[number, [start, end]] = draft.add(unique)


def _naming_order(draft: Draft, table: np.ndarray) -> list[int]:
    """The order in which XLA names: that of computations; around a single instruction the entry comes first."""
    if not draft.is_bare:
        return list(range(len(table)))
    last = len(draft.computations) - 1
    is_entry = table[:, a.COMPUTATION] == last if table is draft.rows else np.arange(len(table)) == last
    order: list[int] = np.argsort(~is_entry, kind="stable").tolist()
    return order
