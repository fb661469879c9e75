"""The columns of a module out of a draft of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.hlo.module import Frames, HloModule
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_draft import C_LINE, LINE
from hlotrace.parsers._hlo_gather import gather, join_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.parsers._hlo_draft import Draft


def build(
    draft: Draft,
    *,
    name: str | None,
    attributes: dict[str, str],
    frames: Frames | None,
    problems: list[tuple[str, str, str]],
) -> HloModule:
    """The module in columns; a module without a name is named after its entry, as XLA does."""
    text = draft.whole_text()
    count = len(draft.rows)
    computation, opcode, shape, parameter, line, source_line, frame = (
        draft.rows[:, column].astype(np.int32)
        for column in (a.COMPUTATION, a.OPCODE, a.SHAPE, a.PARAMETER, LINE, a.SOURCE_LINE, a.FRAME)
    )
    computation_names = tuple(gather(text, draft.computations[:, [a.C_NAME, a.C_NAME_END]]).to_pylist())
    entry = _entry(draft)
    return HloModule(
        name=name or ("_" if draft.is_bare else f"module_{computation_names[entry]}"),
        attributes=attributes,
        computation_names=computation_names,
        computation_start=_starts(computation, len(computation_names)),
        computation_root=draft.computations[:, a.C_ROOT].astype(np.int32),
        computation_line=draft.computations[:, C_LINE].astype(np.int32),
        entry=entry,
        names=gather(text, draft.rows[:, [a.NAME, a.NAME_END]]),
        opcode=opcode,
        opcodes=tuple(draft.opcodes),
        shape=shape,
        shapes=tuple(draft.shapes),
        parameter_number=parameter,
        line=line,
        operand_start=_starts(draft.operands[:, a.OWNER], count),
        operand=np.maximum(draft.operands[:, a.TARGET], -1).astype(np.int32),
        operand_element=draft.operands[:, a.ELEMENT].astype(np.int32),
        called_start=_starts(draft.calls[:, a.OWNER], count),
        called=draft.calls[:, a.STOP].astype(np.int32),
        called_role=draft.calls[:, a.ROLE].astype(np.int32),
        literal=gather(text, draft.rows[:, [a.LITERAL, a.LITERAL_END]]),
        raw_attributes=join_pieces(text, draft.pieces[:, [a.START, a.STOP]], draft.pieces[:, a.OWNER], count),
        backend_config=gather(text, draft.rows[:, [a.CONFIG, a.CONFIG_END]], unquote=True),
        op_name=gather(text, draft.rows[:, [a.OP_NAME, a.OP_NAME_END]], unquote=True),
        source_file=gather(text, draft.rows[:, [a.FILE, a.FILE_END]], unquote=True),
        source_line=source_line,
        stack_frame=frame,
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
