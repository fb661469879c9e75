"""An instruction's attributes: calls, metadata, backend_config, and the others as text; compiled by numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.native import inner
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_lex import JSON_STOP, skip_braces, skip_json_line, skip_space, skip_string, skip_value
from hlotrace.parsers._hlo_scan_base import (
    add_call,
    add_piece,
    computation_at,
    end_row,
    fail,
    open_computation,
    pop,
    push,
    row_at,
)
from hlotrace.parsers._hlo_tokens import advance, is_token, read_number

if TYPE_CHECKING:
    from hlotrace.native import BytesAt, IntsAt


def _attribute_slots() -> tuple[int, np.ndarray]:
    """A multiplier and a table in which every known attribute's length and first letter have a slot of their own."""
    for multiplier in range(1, 64):
        slots = np.full(64, -1, np.int64)
        places = [(len(name) * multiplier + ord(name[0])) & 63 for name in a.ATTRIBUTE_NAMES]
        if len(set(places)) == len(places):
            slots[places] = range(len(places))
            return multiplier, slots
    raise AssertionError("no multiplier tells the attributes apart")


MULTIPLIER, SLOTS = _attribute_slots()
NAMES = np.zeros((len(a.ATTRIBUTE_NAMES), 32), np.uint8)
NAME_LENGTHS = np.array([len(name) for name in a.ATTRIBUTE_NAMES])
for _row, _name in enumerate(a.ATTRIBUTE_NAMES):
    NAMES[_row, : len(_name)] = np.frombuffer(_name.encode(), np.uint8)


@inner
def _known_attribute(text: BytesAt, memory: IntsAt) -> int:
    """The token's number in ATTRIBUTE_NAMES, -1 when it is not among them."""
    start = memory[a.TOKEN_START]
    size = memory[a.TOKEN_END] - start
    which = SLOTS[(size * MULTIPLIER + text[start]) & 63]
    if which < 0 or NAME_LENGTHS[which] != size:
        return -1
    for place in range(size):
        if NAMES[which, place] != text[start + place]:
            return -1
    return int(which)


@inner
def read_attributes(text: BytesAt, memory: IntsAt) -> None:
    """`, name=value` as often as it stands; then the present instruction is complete."""
    while text[memory[a.POSITION]] == 44:
        advance(text, memory)
        advance(text, memory)
        start = memory[a.TOKEN_START]
        if memory[a.TOKEN] != a.WORD or text[memory[a.TOKEN_END]] != 61:
            fail(memory, a.BAD_ATTRIBUTE, start)
            return
        which = _known_attribute(text, memory)
        value = skip_space(text, memory[a.TOKEN_END] + 1)
        if which >= a.METADATA:
            _end_piece(memory)
            if which == a.METADATA:
                end = _read_metadata(text, memory, start, value)
            else:
                end = _read_config(text, memory, value)
        else:
            if memory[a.PIECE] < 0:
                memory[a.PIECE] = start
            memory[a.POSITION] = value
            end = skip_value(text, value) if which < 0 else _read_calls(text, memory, which)
            memory[a.PIECE_END] = end
        if memory[a.MODE] != a.IN_ATTRIBUTES or memory[a.ERROR] != a.OK:
            return
        if end < 0:
            fail(memory, a.BAD_VALUE, start)
            return
        memory[a.POSITION] = skip_space(text, end)
    _end_piece(memory)
    end_row(memory)
    memory[a.MODE] = a.BODY


@inner
def _end_piece(memory: IntsAt) -> None:
    """The run of attributes that are kept as text ends."""
    if memory[a.PIECE] >= 0:
        add_piece(memory, memory[a.PIECE], memory[a.PIECE_END])
        memory[a.PIECE] = -1


@inner
def _read_config(text: BytesAt, memory: IntsAt, at: int) -> int:
    row = row_at(memory, memory[a.ROW])
    if text[at] == 123:
        end = skip_json_line(text, at, memory[a.SIZE])
        if end < 0:
            end = skip_braces(text, at, JSON_STOP)
    elif text[at] == 34 or text[at] == 39:
        end = skip_string(text, at)
    else:
        end = skip_value(text, at)
    memory[row + a.CONFIG] = at
    memory[row + a.CONFIG_END] = end
    return end


@inner
def _read_metadata(text: BytesAt, memory: IntsAt, start: int, at: int) -> int:
    """`{op_name="…" source_file="…" source_line=3 stack_frame_id=4}`; with any other field the whole is kept too."""
    row = row_at(memory, memory[a.ROW])
    memory[a.POSITION] = skip_space(text, at + 1)
    others = text[at] != 123
    while text[memory[a.POSITION]] != 125:
        advance(text, memory)
        value = skip_space(text, memory[a.TOKEN_END] + 1)
        end = skip_value(text, value)
        if memory[a.TOKEN] != a.WORD or text[memory[a.TOKEN_END]] != 61 or end <= value:
            fail(memory, a.BAD_METADATA, memory[a.TOKEN_START])
            return -1
        if is_token(text, memory, a.OP_NAME_WORD):
            memory[row + a.OP_NAME] = value
            memory[row + a.OP_NAME_END] = end
        elif is_token(text, memory, a.FILE_WORD):
            memory[row + a.FILE] = value
            memory[row + a.FILE_END] = end
        elif is_token(text, memory, a.LINE_WORD):
            memory[row + a.SOURCE_LINE] = read_number(text, value)
        elif is_token(text, memory, a.FRAME_WORD):
            memory[row + a.FRAME] = read_number(text, value)
        else:
            others = True
        memory[a.POSITION] = skip_space(text, end)
        if text[memory[a.POSITION]] == 44:
            memory[a.POSITION] = skip_space(text, memory[a.POSITION] + 1)
    if others:
        add_piece(memory, start, memory[a.POSITION] + 1)
    return int(memory[a.POSITION]) + 1


@inner
def _read_calls(text: BytesAt, memory: IntsAt, role: int) -> int:
    """`%name`, `{%name, %name}`, or a computation in place, for which the mode changes; the place after it."""
    advance(text, memory)
    if memory[a.TOKEN] == a.WORD:
        add_call(memory, role, memory[a.TOKEN_START], memory[a.TOKEN_END])
        return int(memory[a.TOKEN_END])
    brace = memory[a.TOKEN_START]
    if memory[a.TOKEN] != 123:
        return -1
    first = memory[a.POSITION]
    advance(text, memory)
    after = text[memory[a.POSITION]]
    memory[a.POSITION] = first
    if memory[a.TOKEN] == 123 or memory[a.TOKEN] == 125 or after == 44 or after == 125:
        return _read_list_of_calls(text, memory, role)
    memory[a.TOKEN_START] = brace
    _open_inline(memory, role, a.NO)
    return -1


@inner
def _read_list_of_calls(text: BytesAt, memory: IntsAt, role: int) -> int:
    """The rest of a list of computations, from one of its elements on; the place after its brace."""
    advance(text, memory)
    while memory[a.TOKEN] != 125:
        if memory[a.TOKEN] == 123:
            _open_inline(memory, role, a.YES)
            return -1
        if memory[a.TOKEN] != a.WORD:
            fail(memory, a.BAD_CALL, memory[a.TOKEN_START])
            return -1
        add_call(memory, role, memory[a.TOKEN_START], memory[a.TOKEN_END])
        advance(text, memory)
        if memory[a.TOKEN] == 44:
            advance(text, memory)
    return int(memory[a.TOKEN_END])


@inner
def _open_inline(memory: IntsAt, role: int, in_list: int) -> None:
    """A computation written in place begins."""
    if push(memory, a.INLINE_COMPUTATION, role, in_list):
        open_computation(memory, a.NONE, a.NONE, a.NO)


@inner
def close_computation(text: BytesAt, memory: IntsAt) -> None:
    """A computation ends; what stands around it goes on."""
    number = memory[a.IN]
    computation = computation_at(memory, number)
    memory[computation + a.C_DONE] = memory[a.ORDER]
    memory[a.ORDER] += 1
    if memory[computation + a.C_ROOT] < 0:
        memory[computation + a.C_ROOT] = memory[computation + a.C_LAST]
    memory[a.MODE] = a.TOP
    if memory[a.DEPTH] == 0:
        return
    frame = pop(memory)
    memory[a.MODE] = a.IN_ATTRIBUTES
    end = memory[a.TOKEN_END]
    add_call(memory, memory[frame + a.IN_ROLE], a.NONE, number)
    if memory[frame + a.IN_LIST]:
        if text[memory[a.POSITION]] == 44:
            advance(text, memory)
        end = _read_list_of_calls(text, memory, memory[frame + a.IN_ROLE])
        if memory[a.MODE] != a.IN_ATTRIBUTES:
            return
        memory[a.POSITION] = skip_space(text, end)
    memory[a.PIECE_END] = end
