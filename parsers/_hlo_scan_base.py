"""How the scanner of HLO text enters what it finds: rows, names, operands, calls, computations; compiled by numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import inner
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_tokens import hash_of_token, same

if TYPE_CHECKING:
    from hlotrace.native import BytesAt, IntsAt


@inner
def fail(memory: IntsAt, error: int, place: int) -> None:
    """Stop with an error."""
    memory[a.ERROR] = error
    memory[a.ERROR_PLACE] = place


@inner
def entry_for(memory: IntsAt, counter: int) -> int:
    """Where in memory a new entry of a table goes; 0 after an error, when there is no room."""
    count = memory[counter]
    if count == memory[counter + a.ROOM]:
        fail(memory, a.FULL, memory[a.POSITION])
        return 0
    memory[counter] = count + 1
    return int(memory[counter + a.AT] + count * a.WIDTHS[counter - a.ROWS])


@inner
def row_at(memory: IntsAt, number: int) -> int:
    """Where in memory an instruction's columns stand."""
    return int(memory[a.ROWS_AT]) + number * a.ROW_WIDTH


@inner
def computation_at(memory: IntsAt, number: int) -> int:
    """Where in memory a computation's columns stand."""
    return int(memory[a.COMPUTATIONS_AT]) + number * a.COMPUTATION_WIDTH


@inner
def add_row(text: BytesAt, memory: IntsAt, is_named: int) -> None:
    """A new instruction, named by the token or without name, made the present one."""
    row = entry_for(memory, a.ROWS)
    if row == 0:
        return
    for column in range(a.ROW_WIDTH):
        memory[row + column] = -1
    memory[a.ROW] = memory[a.ROWS] - 1
    memory[a.PIECE] = -1
    memory[row + a.COMPUTATION] = memory[a.IN]
    memory[row + a.FRAME] = 0
    if not is_named:
        return
    memory[row + a.NAME] = memory[a.TOKEN_START]
    memory[row + a.NAME_END] = memory[a.TOKEN_END]
    value = hash_of_token(text, memory)
    memory[row + a.NAME_HASH] = value
    slot = slot_of_token(text, memory, value)
    if memory[slot]:  # the latest instruction of a name is found: a computation is read in one go
        memory[a.DUPLICATES] += 1
        if memory[row_at(memory, memory[slot] - 1) + a.COMPUTATION] == memory[a.IN]:
            fail(memory, a.NAME_TWICE, memory[a.TOKEN_START])
    memory[slot] = memory[a.ROWS]


@inner
def slot_of_token(text: BytesAt, memory: IntsAt, value: int) -> int:
    """The slot that holds the latest instruction named as the token, or the free one where it would go."""
    slots_at, mask = memory[a.ROWS + a.SLOTS_AT], memory[a.ROWS + a.SLOT_MASK]
    start = memory[a.TOKEN_START]
    size = memory[a.TOKEN_END] - start
    slot = value & mask
    while memory[slots_at + slot]:
        row = row_at(memory, memory[slots_at + slot] - 1)
        known = memory[row + a.NAME]
        found = memory[row + a.NAME_HASH] == value and memory[row + a.NAME_END] - known == size
        if found and same(text, start, known, size):
            break
        slot = (slot + 1) & mask
    return int(slots_at + slot)


@inner
def add_operand(text: BytesAt, memory: IntsAt, shape: int, row: int) -> None:
    """An operand of the present instruction: the one named by the token, or `row`, or a shape alone (`row` is -2)."""
    operand = entry_for(memory, a.OPERANDS)
    if operand == 0:
        return
    memory[operand + a.OWNER] = memory[a.ROW]
    memory[operand + a.START] = memory[a.TOKEN_START] if row == -1 else -1
    memory[operand + a.STOP] = memory[a.TOKEN_END]
    memory[operand + a.ELEMENT] = memory[a.TOKEN_ELEMENT] if row == -1 else -1
    memory[operand + a.OPERAND_SHAPE] = shape
    if row == -1:
        row = memory[slot_of_token(text, memory, hash_of_token(text, memory))] - 1
        if row >= 0 and memory[row_at(memory, row) + a.COMPUTATION] != memory[a.IN]:
            row = -1
    memory[operand + a.TARGET] = row
    if row < 0:
        memory[a.UNRESOLVED] += 1


@inner
def add_call(memory: IntsAt, role: int, start: int, end: int) -> None:
    """A computation that the present instruction calls."""
    call = entry_for(memory, a.CALLS)
    if call:
        memory[call + a.OWNER] = memory[a.ROW]
        memory[call + a.START] = start
        memory[call + a.STOP] = end
        memory[call + a.ROLE] = role


@inner
def add_piece(memory: IntsAt, start: int, end: int) -> None:
    """A run of attributes of the present instruction that is kept as text."""
    piece = entry_for(memory, a.PIECES)
    if piece:
        memory[piece + a.OWNER] = memory[a.ROW]
        memory[piece + a.START] = start
        memory[piece + a.STOP] = end


@inner
def push(memory: IntsAt, kind: int, role: int, in_list: int) -> bool:
    """Put what is being read on the stack; whether there was room."""
    if memory[a.DEPTH] == a.MOST_NESTED:
        fail(memory, a.TOO_DEEP, memory[a.TOKEN_START])
        return False
    frame = memory[a.STACK_AT] + memory[a.DEPTH] * a.STACK_WIDTH
    memory[frame + a.KIND] = kind
    memory[frame + a.IN_ROW] = memory[a.ROW]
    memory[frame + a.IN_COMPUTATION] = memory[a.IN]
    memory[frame + a.IN_PIECE] = memory[a.PIECE]
    memory[frame + a.IN_ROLE] = role
    memory[frame + a.IN_LIST] = in_list
    memory[a.DEPTH] += 1
    memory[a.REORDERED] += 1
    return True


@inner
def pop(memory: IntsAt) -> int:
    """Go back to what stood around; where its frame stands."""
    memory[a.DEPTH] -= 1
    frame = memory[a.STACK_AT] + memory[a.DEPTH] * a.STACK_WIDTH
    memory[a.ROW] = memory[frame + a.IN_ROW]
    memory[a.IN] = memory[frame + a.IN_COMPUTATION]
    memory[a.PIECE] = memory[frame + a.IN_PIECE]
    return int(frame)


@inner
def end_row(memory: IntsAt) -> None:
    """The present instruction is complete."""
    memory[row_at(memory, memory[a.ROW]) + a.DONE] = memory[a.ORDER]
    memory[a.ORDER] += 1
    memory[computation_at(memory, memory[a.IN]) + a.C_LAST] = memory[a.ROW]


@inner
def open_computation(memory: IntsAt, start: int, end: int, is_entry: int) -> None:
    """A computation begins; its instructions come next."""
    computation = entry_for(memory, a.COMPUTATIONS)
    if computation:
        memory[computation + a.C_NAME] = start
        memory[computation + a.C_NAME_END] = end
        memory[computation + a.C_PLACE] = memory[a.TOKEN_START]
        memory[computation + a.C_ROOT] = -1
        memory[computation + a.C_ENTRY] = is_entry
        memory[computation + a.C_LAST] = -1
        memory[a.IN] = memory[a.COMPUTATIONS] - 1
        memory[a.MODE] = a.BODY
