"""The grammar of HLO text, compiled by numba: one pass over the bytes, spans into integer arrays, no object made.

A module is read by a small machine: `scan_module` takes the step of the present mode until the module ends or an
error stands in the state. Computations written in place and instructions written as operands are kept on a stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import inner, kernel
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_lex import (
    BRACE_STOP,
    CLASSES,
    DIGIT,
    skip_braces,
    skip_group,
    skip_space,
    skip_string,
    skip_value,
)
from hlotrace.parsers._hlo_scan_attributes import close_computation, read_attributes
from hlotrace.parsers._hlo_scan_base import (
    add_row,
    computation_at,
    entry_for,
    fail,
    open_computation,
    row_at,
    slot_of_token,
)
from hlotrace.parsers._hlo_scan_row import read_operands, read_right_side
from hlotrace.parsers._hlo_tokens import advance, finish_shape, hash_of_token, is_token

if TYPE_CHECKING:
    from hlotrace.native import BytesAt, IntsAt


@inner
def _read_instruction(text: BytesAt, memory: IntsAt) -> None:
    """`[ROOT] [%]name =` and what follows it, or the end of the computation."""
    advance(text, memory)
    computation = computation_at(memory, memory[a.IN])
    if memory[a.TOKEN] == 125 and memory[computation + a.C_LAST] >= 0:
        close_computation(text, memory)
        return
    if memory[a.TOKEN] == a.END_OF_TEXT:
        if memory[a.BARE] and memory[a.DEPTH] == 0:
            close_computation(text, memory)
        else:
            fail(memory, a.NOT_CLOSED, memory[computation + a.C_PLACE])
        return
    is_root = is_token(text, memory, a.ROOT) and text[memory[a.POSITION]] != 61
    if is_root:
        advance(text, memory)
    if is_root and memory[computation + a.C_ROOT] >= 0:
        fail(memory, a.SECOND_ROOT, memory[a.TOKEN_START])
        return
    if memory[a.BARE] and finish_shape(text, memory):
        add_row(text, memory, a.NO)
    elif memory[a.TOKEN] != a.WORD or text[memory[a.POSITION]] != 61:
        is_word = memory[a.TOKEN] == a.WORD
        fail(memory, a.NO_EQUALS if is_word else a.NO_INSTRUCTION, memory[a.TOKEN_START])
    else:
        add_row(text, memory, a.YES)
        advance(text, memory)
        advance(text, memory)
    if memory[a.ERROR] == a.OK:
        if is_root:
            memory[computation + a.C_ROOT] = memory[a.ROW]
        read_right_side(text, memory)


@inner
def _read_top(text: BytesAt, memory: IntsAt) -> None:
    """What stands outside of computations: header, frames, the next computation, or what is no HLO."""
    begin = memory[a.POSITION]
    advance(text, memory)
    if memory[a.TOKEN] == a.END_OF_TEXT:
        memory[a.MODE] = a.FINISHED
    elif is_token(text, memory, a.HLO_MODULE):
        if memory[a.MODULE_NAME] >= 0 or memory[a.COMPUTATIONS]:
            memory[a.POSITION] = begin
            memory[a.MODE] = a.FINISHED
        else:
            memory[a.JUNK] = -1
            memory[a.UNCLOSED] = 0
            _read_header(text, memory)
    elif is_token(text, memory, a.FILE_NAMES) and CLASSES[text[memory[a.POSITION]]] & DIGIT:
        memory[a.FRAMES] = begin
        _skip_frames(text, memory)
        memory[a.FRAMES_END] = memory[a.POSITION]
    elif memory[a.TOKEN] == 44 and memory[a.COMPUTATIONS] and memory[a.JUNK] < 0:
        _read_pair(text, memory)  # `, execution_thread="…"` behind a computation
    else:
        _read_computation(text, memory, begin)


@inner
def _read_pair(text: BytesAt, memory: IntsAt) -> int:
    """`name=value` after a comma; the place of the value, -1 after an error."""
    advance(text, memory)
    value = skip_space(text, memory[a.TOKEN_END] + 1)
    end = skip_value(text, value)
    if memory[a.TOKEN] != a.WORD or text[memory[a.TOKEN_END]] != 61 or end <= value:
        fail(memory, a.BAD_ATTRIBUTE, memory[a.TOKEN_START])
        return -1
    memory[a.PIECE_END] = end
    memory[a.POSITION] = skip_space(text, end)
    return value


@inner
def _read_header(text: BytesAt, memory: IntsAt) -> None:
    """`name, attribute=value, …` after `HloModule`."""
    advance(text, memory)
    memory[a.MODULE_NAME] = memory[a.TOKEN_START]
    memory[a.MODULE_NAME_END] = memory[a.TOKEN_END]
    if text[memory[a.POSITION]] == 58:
        advance(text, memory)
    while text[memory[a.POSITION]] == 44 and memory[a.ERROR] == a.OK:
        advance(text, memory)
        value = _read_pair(text, memory)
        entry = entry_for(memory, a.ATTRIBUTES)
        if entry:
            memory[entry] = memory[a.TOKEN_START]
            memory[entry + 1] = memory[a.TOKEN_END]
            memory[entry + 2] = value
            memory[entry + 3] = memory[a.PIECE_END]


@inner
def _skip_frames(text: BytesAt, memory: IntsAt) -> None:
    """Pass over the tables of file names, functions, locations and frames, up to what is in none of them."""
    while True:
        at = memory[a.POSITION]
        if text[at] == 34:
            end = skip_string(text, at)
        elif text[at] == 123:
            end = skip_braces(text, at, BRACE_STOP)
        else:
            advance(text, memory)
            if (
                CLASSES[text[at]] & DIGIT
                or is_token(text, memory, a.FUNCTION_NAMES)
                or is_token(text, memory, a.FILE_LOCATIONS)
                or is_token(text, memory, a.STACK_FRAMES)
            ):
                continue
            end = -1
        if end < 0:
            memory[a.POSITION] = at
            return
        memory[a.POSITION] = skip_space(text, end)


@inner
def _read_computation(text: BytesAt, memory: IntsAt, begin: int) -> None:
    """`[ENTRY] name [(parameters) -> result] {`; instructions without a computation; or a line that is no HLO."""
    is_entry = is_token(text, memory, a.ENTRY)
    if is_entry:
        advance(text, memory)
    start, end = memory[a.TOKEN_START], memory[a.TOKEN_END]
    is_looked_at = is_entry or text[begin] == 37 or memory[a.UNCLOSED] < a.MOST_UNCLOSED
    is_computation = memory[a.TOKEN] == a.WORD and is_looked_at and _read_signature(text, memory)
    after = memory[a.POSITION]
    memory[a.TOKEN_START] = begin
    is_first = memory[a.MODULE_NAME] < 0 and memory[a.COMPUTATIONS] == 0
    is_bare = is_first and is_looked_at and not is_entry and not is_computation
    if is_bare:
        memory[a.POSITION] = begin
        is_bare = _starts_instruction(text, memory)
        memory[a.POSITION] = begin
    if not is_computation and not is_bare:
        if is_entry or text[begin] == 37:
            fail(memory, a.NO_COMPUTATION, begin)
        else:
            _skip_line(text, memory, begin)
    elif memory[a.JUNK] >= 0:
        fail(memory, a.JUNK_INSIDE, memory[a.JUNK])
    elif is_entry and memory[a.HAS_ENTRY]:
        fail(memory, a.SECOND_ENTRY, begin)
    elif is_bare:
        memory[a.BARE] = 1
        open_computation(memory, a.NONE, a.NONE, a.NO)
    else:
        memory[a.HAS_ENTRY] += is_entry
        memory[a.POSITION] = after
        open_computation(memory, start, end, is_entry)


@inner
def _read_signature(text: BytesAt, memory: IntsAt) -> bool:
    """Whether `[(parameters) -> result] {` comes next, which then is read."""
    at = memory[a.POSITION]
    if text[at] == 40:
        at = skip_group(text, at)
        if at < 0:
            memory[a.UNCLOSED] += 1
            return False
        memory[a.POSITION] = skip_space(text, at)
        advance(text, memory)
        if memory[a.TOKEN] != a.ARROW:
            return False
        advance(text, memory)
        if finish_shape(text, memory) <= 0:
            return False
    advance(text, memory)
    return bool(memory[a.TOKEN] == 123)


@inner
def _starts_instruction(text: BytesAt, memory: IntsAt) -> bool:
    """Whether `[[ROOT] name =] [shape] opcode (` begins here."""
    advance(text, memory)
    has_shape = finish_shape(text, memory)
    memory[a.UNCLOSED] += has_shape < 0
    if has_shape == 0:
        if is_token(text, memory, a.ROOT) and text[memory[a.POSITION]] != 61:
            advance(text, memory)
        if memory[a.TOKEN] != a.WORD or text[memory[a.POSITION]] != 61:
            return False
        advance(text, memory)
        advance(text, memory)
    if finish_shape(text, memory) > 0:
        advance(text, memory)
    return bool(memory[a.TOKEN] == a.WORD and text[memory[a.POSITION]] == 40)


@inner
def _skip_line(text: BytesAt, memory: IntsAt, at: int) -> None:
    """Pass over a line that is no HLO, and remember it unless `#` or `;` makes it a comment."""
    if text[at] != 35 and text[at] != 59:
        if memory[a.JUNK] < 0:
            memory[a.JUNK] = at
        memory[a.JUNK_LINES] += 1
    while text[at] != 10 and text[at] != 0:
        at += 1
    memory[a.POSITION] = skip_space(text, at)


@inner
def _find_zeros(text: BytesAt, memory: IntsAt) -> None:
    """Count as duplicates the names whose number begins with a zero and that are not the same to XLA.

    `add.01` is `add.1` to it, and `add.0` is `add` where that is a name, too.
    """
    for number in range(memory[a.ROWS]):
        row = row_at(memory, number)
        at = memory[row + a.NAME_END] - 1
        while CLASSES[text[at]] & DIGIT:
            at -= 1
        if text[at] != 46 or text[at + 1] != 48 or at <= memory[row + a.NAME]:
            continue
        memory[a.TOKEN_START], memory[a.TOKEN_END] = memory[row + a.NAME], at
        is_other = at + 2 < memory[row + a.NAME_END]
        if is_other or memory[slot_of_token(text, memory, hash_of_token(text, memory))]:
            memory[a.DUPLICATES] += 1


@kernel
def scan_module(text: BytesAt, memory: IntsAt) -> int:
    """Read one module from `POSITION` on; it ends at the next `HloModule` or the end of the text."""
    memory[a.POSITION] = skip_space(text, memory[a.POSITION])
    while memory[a.ERROR] == a.OK and memory[a.MODE] != a.FINISHED:
        if memory[a.MODE] == a.BODY:
            _read_instruction(text, memory)
        elif memory[a.MODE] == a.IN_OPERANDS:
            read_operands(text, memory)
        elif memory[a.MODE] == a.IN_ATTRIBUTES:
            read_attributes(text, memory)
        else:
            _read_top(text, memory)
    _find_zeros(text, memory)
    return 0
