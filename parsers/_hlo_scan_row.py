"""An instruction up to its attributes: name, shape, opcode, operands or value; compiled by numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import inner
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_lex import skip_space
from hlotrace.parsers._hlo_scan_base import add_operand, add_row, end_row, fail, pop, push, row_at
from hlotrace.parsers._hlo_tokens import advance, finish_shape, intern, is_token, read_number

if TYPE_CHECKING:
    from hlotrace.native import BytesAt, IntsAt


@inner
def read_right_side(text: BytesAt, memory: IntsAt) -> None:
    """`[shape] opcode (` from the token on; operands come next, or a constant's or parameter's value is read."""
    row = row_at(memory, memory[a.ROW])
    has_shape = finish_shape(text, memory)
    if has_shape < 0:
        fail(memory, a.BAD_SHAPE, memory[a.TOKEN_START])
        return
    if has_shape:
        memory[row + a.SHAPE] = intern(text, memory, a.SHAPES)
        advance(text, memory)
    else:
        memory[a.SHAPELESS] += 1
    if memory[a.TOKEN] != a.WORD or text[memory[a.POSITION]] != 40:
        fail(memory, a.NO_OPCODE, memory[a.TOKEN_START])
        return
    memory[row + a.OPCODE] = intern(text, memory, a.OPCODES)
    if memory[row + a.OPCODE] < 0 or (has_shape and memory[row + a.SHAPE] < 0):
        fail(memory, a.FULL, memory[a.TOKEN_START])
    elif is_token(text, memory, a.CONSTANT_WORD):
        _read_literal(text, memory, row)
    elif is_token(text, memory, a.PARAMETER_WORD):
        _read_parameter(text, memory, row)
    else:
        memory[a.MODE] = a.IN_OPERANDS
        memory[a.POSITION] = skip_space(text, memory[a.POSITION] + 1)


@inner
def _read_literal(text: BytesAt, memory: IntsAt, row: int) -> None:
    """A constant's value as it stands between its parentheses."""
    start = memory[a.POSITION] + 1
    end = start
    depth = 1
    while depth:
        if text[end] == 40:
            depth += 1
        elif text[end] == 41:
            depth -= 1
        elif text[end] == 0:
            fail(memory, a.BAD_LITERAL, start)
            return
        end += 1
    memory[row + a.LITERAL] = start
    memory[row + a.LITERAL_END] = end - 1
    memory[a.POSITION] = skip_space(text, end)
    memory[a.MODE] = a.IN_ATTRIBUTES


@inner
def _read_parameter(text: BytesAt, memory: IntsAt, row: int) -> None:
    """A parameter's number, between its parentheses."""
    advance(text, memory)
    advance(text, memory)
    memory[row + a.PARAMETER] = read_number(text, memory[a.TOKEN_START])
    for place in range(memory[a.TOKEN_START], memory[a.TOKEN_END]):
        if text[place] < 48 or text[place] > 57:
            memory[a.TOKEN] = a.END_OF_TEXT
    if memory[a.TOKEN] != a.WORD or text[memory[a.POSITION]] != 41:
        fail(memory, a.BAD_PARAMETER, memory[a.TOKEN_START])
        return
    memory[a.POSITION] = skip_space(text, memory[a.POSITION] + 1)
    memory[a.MODE] = a.IN_ATTRIBUTES


@inner
def read_operands(text: BytesAt, memory: IntsAt) -> None:
    """Operands up to the closing parenthesis, or to an instruction that stands as one."""
    advance(text, memory)
    while memory[a.TOKEN] != 41:
        if not _read_operand(text, memory):
            return
        advance(text, memory)
        if memory[a.TOKEN] == 44:
            advance(text, memory)
        elif memory[a.TOKEN] != 41:
            fail(memory, a.NO_COMMA, memory[a.TOKEN_START])
    kind = memory[memory[a.STACK_AT] + (memory[a.DEPTH] - 1) * a.STACK_WIDTH + a.KIND] if memory[a.DEPTH] else 0
    if kind == a.NESTED_INSTRUCTION:
        _close_nested(text, memory)
    else:
        memory[a.MODE] = a.IN_ATTRIBUTES


@inner
def _read_operand(text: BytesAt, memory: IntsAt) -> bool:
    """`[shape] [%]name[#element]`; False after an error, and where an instruction begins instead of a name."""
    if memory[a.ERROR] != a.OK:
        return False
    begin = memory[a.TOKEN_START]
    has_shape = finish_shape(text, memory)
    shape = -1
    if has_shape:
        if memory[a.BARE] and has_shape > 0:
            shape = intern(text, memory, a.SHAPES)
        after = text[memory[a.POSITION]]
        if memory[a.BARE] and (after == 44 or after == 41):
            add_operand(text, memory, shape, a.SHAPE_ALONE)
            return True
        advance(text, memory)
    if has_shape < 0 or memory[a.TOKEN] != a.WORD or memory[a.TOKEN_START] == memory[a.TOKEN_END]:
        fail(memory, a.BAD_SHAPE if has_shape < 0 else a.BAD_OPERAND, memory[a.TOKEN_START])
        return False
    if text[memory[a.POSITION]] == 40:
        memory[a.POSITION] = begin
        _open_nested(text, memory)
        return False
    add_operand(text, memory, shape, a.NONE)
    return True


@inner
def _open_nested(text: BytesAt, memory: IntsAt) -> None:
    """An instruction that stands as operand begins."""
    if push(memory, a.NESTED_INSTRUCTION, a.NONE, a.NO):
        add_row(text, memory, a.NO)
        advance(text, memory)
        if memory[a.ERROR] == a.OK:
            read_right_side(text, memory)
        if memory[a.MODE] == a.IN_ATTRIBUTES:  # a constant or parameter: it has no operands to close it
            _close_nested(text, memory)


@inner
def _close_nested(text: BytesAt, memory: IntsAt) -> None:
    """An instruction that stands as operand ends: it becomes an operand of the one around it."""
    number = memory[a.ROW]
    end_row(memory)
    pop(memory)
    add_operand(text, memory, a.NONE, number)
    if text[memory[a.POSITION]] == 44:
        memory[a.POSITION] = skip_space(text, memory[a.POSITION] + 1)
    memory[a.MODE] = a.IN_OPERANDS
