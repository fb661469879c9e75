"""The columns of a module out of a draft of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlotrace.hlo.module import Frames, HloModule
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_draft import C_LINE, LINE
from hlotrace.parsers._hlo_gather import gather, join_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.parsers._hlo_draft import Draft

Problem = tuple[str, str, str]


def build(
    draft: Draft,
    *,
    name: str | None,
    attributes: dict[str, str],
    frames: Frames | None,
    place: str,
    problems: list[Problem],
) -> HloModule:
    """The module in columns; a module without a name is named after its entry, as XLA does.

    Args:
        place: the file, for problems.
        problems: what was read leniently so far.
    """
    text = draft.whole_text()
    columns = np.ascontiguousarray(draft.rows.T, np.int32)
    count = columns.shape[1]
    computations = gather(text, draft.computations[:, [a.C_NAME, a.C_NAME_END]])
    computation_names = tuple(computations.to_pylist())
    names = gather(text, draft.rows[:, [a.NAME, a.NAME_END]])
    called_names = gather(text, draft.calls[:, [a.START, a.STOP]])
    called, called_start = _calls(draft, computations, called_names, names, place, problems)
    entry = _entry(draft)
    return HloModule(
        name=name or ("_" if draft.is_bare else f"module_{computation_names[entry]}"),
        attributes=attributes,
        computation_names=computation_names,
        computation_start=_starts(columns[a.COMPUTATION], len(computation_names)),
        computation_root=draft.computations[:, a.C_ROOT].astype(np.int32),
        computation_line=draft.computations[:, C_LINE].astype(np.int32),
        entry=entry,
        names=names,
        opcode=columns[a.OPCODE],
        opcodes=tuple(draft.opcodes),
        shape=columns[a.SHAPE],
        shapes=tuple(draft.shapes),
        parameter_number=columns[a.PARAMETER],
        line=columns[LINE],
        operand_start=_starts(draft.operands[:, a.OWNER], count),
        operand=np.maximum(draft.operands[:, a.TARGET], -1).astype(np.int32),
        operand_element=draft.operands[:, a.ELEMENT].astype(np.int32),
        called_start=called_start,
        called=called[:, a.STOP].astype(np.int32),
        called_role=called[:, a.ROLE].astype(np.int32),
        literal=gather(text, draft.rows[:, [a.LITERAL, a.LITERAL_END]]),
        raw_attributes=join_pieces(text, draft.pieces[:, [a.START, a.STOP]], draft.pieces[:, a.OWNER], count),
        backend_config=gather(text, draft.rows[:, [a.CONFIG, a.CONFIG_END]], unquote=True),
        op_name=gather(text, draft.rows[:, [a.OP_NAME, a.OP_NAME_END]], unquote=True),
        source_file=gather(text, draft.rows[:, [a.FILE, a.FILE_END]], unquote=True),
        source_line=columns[a.SOURCE_LINE],
        stack_frame=columns[a.FRAME],
        frames=frames,
        problems=tuple(problems),
    )


def _entry(draft: Draft) -> int:
    """The computation marked ENTRY; where none is, the last one, as XLA takes it."""
    marked = np.flatnonzero(draft.computations[:, a.C_ENTRY])
    return int(marked[0]) if len(marked) else len(draft.computations) - 1


def _starts(owners: NDArray[np.int64] | NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Where each owner's entries begin among entries that are sorted by owner; [count + 1]."""
    return np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=count))]).astype(np.int32)


def _calls(
    draft: Draft,
    computations: pa.StringArray,
    called: pa.StringArray,
    names: pa.StringArray,
    place: str,
    problems: list[Problem],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The calls with the computation's number in STOP, less those of what is no computation; where each row's begin.

    Args:
        called: the names of what is called, null where it is written in place.
    """
    calls = draft.calls
    found = pc.index_in(called, value_set=computations).fill_null(-1).to_numpy(zero_copy_only=False)
    targets = np.where(calls[:, a.START] >= 0, found, calls[:, a.STOP])
    for call in np.flatnonzero(targets < 0).tolist():
        owner = int(calls[call, a.OWNER])
        what = f"{names[owner]} calls {called[call]}, which is no computation here"
        problems.append((f"{place}:{draft.rows[owner, LINE]}", what, "the call is left out"))
    calls = np.column_stack([calls[:, : a.STOP], targets, calls[:, a.ROLE]])[targets >= 0]
    return calls, _starts(calls[:, a.OWNER], len(draft.rows))
