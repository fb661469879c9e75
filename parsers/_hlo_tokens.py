"""Tokens of HLO text, compiled by numba: words, shapes and single characters, one at a time; distinct ones numbered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import inner
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_lex import (
    BRACE_STOP,
    CLASSES,
    DIGIT,
    IN_WORD,
    eight_bytes,
    is_span,
    skip_braces,
    skip_group,
    skip_space,
)

if TYPE_CHECKING:
    from hlotrace.native import BytesAt, IntsAt

HASH_SEED, HASH_FACTOR, HASH_MASK = 0x345678, 0x2545F4914F6CDD1D, 0x7FFFFFFF


@inner
def advance(text: BytesAt, memory: IntsAt) -> None:
    """Read the next token; `POSITION` becomes the place of the one after it."""
    at = memory[a.POSITION]
    char = text[at]
    memory[a.TOKEN_ELEMENT] = -1
    if char == 37 or CLASSES[char] & IN_WORD:
        _read_word(text, memory, at)
        return
    memory[a.TOKEN_START] = at
    memory[a.TOKEN] = char
    if char != 0:
        at += 1
    memory[a.TOKEN_END] = at
    memory[a.POSITION] = skip_space(text, at)


@inner
def _read_word(text: BytesAt, memory: IntsAt, at: int) -> None:
    """A word, an array's shape, or an arrow."""
    is_name = text[at] == 37
    if is_name:
        at += 1
    start = at
    while CLASSES[text[at]] & IN_WORD:
        at += 1
    memory[a.TOKEN] = a.WORD
    memory[a.TOKEN_START] = start
    memory[a.TOKEN_END] = at
    if at == start + 1 and text[start] == 45 and text[at] == 62:
        memory[a.TOKEN] = a.ARROW
        at += 1
    elif is_name and text[at] == 35:
        at = _read_element(text, memory, at + 1)
    memory[a.POSITION] = skip_space(text, at)
    if not is_name and text[memory[a.POSITION]] == 91:
        _finish_array(text, memory)
    elif text[memory[a.POSITION]] == 35 and not is_name:
        memory[a.POSITION] = skip_space(text, _read_element(text, memory, memory[a.POSITION] + 1))


@inner
def hash_of_token(text: BytesAt, memory: IntsAt) -> int:
    """A hash of the token's bytes, not negative."""
    at, end = memory[a.TOKEN_START], memory[a.TOKEN_END]
    value = HASH_SEED
    while at + 8 <= end:
        value = (value ^ eight_bytes(text, at)) * HASH_FACTOR
        value ^= value >> 29
        at += 8
    rest = 0
    while at < end:
        rest = rest << 8 | text[at]
        at += 1
    value = (value ^ rest) * HASH_FACTOR
    return int(value >> 17) & HASH_MASK


@inner
def read_number(text: BytesAt, at: int) -> int:
    """A number without sign; digits beyond what fits are dropped."""
    number = 0
    while CLASSES[text[at]] & DIGIT and number < 1 << 27:
        number = number * 10 + text[at] - 48
        at += 1
    return number


@inner
def _read_element(text: BytesAt, memory: IntsAt, at: int) -> int:
    """The number after `#`; the place after it."""
    memory[a.TOKEN_ELEMENT] = read_number(text, at)
    while CLASSES[text[at]] & DIGIT:
        at += 1
    return at


@inner
def _finish_array(text: BytesAt, memory: IntsAt) -> None:
    """Turn a word before `[` into an array with its layout; a brace opens a layout where a digit or `:` follows."""
    end = memory[a.POSITION]
    while text[end] != 93:
        if text[end] == 0 or text[end] == 10:
            return
        end += 1
    end += 1
    brace = skip_space(text, end)
    if text[brace] == 123:
        inside = text[skip_space(text, brace + 1)]
        if CLASSES[inside] & DIGIT or inside == 58 or (inside == 125 and brace == end):
            end = max(end, skip_braces(text, brace, BRACE_STOP))
    finish_token(text, memory, a.ARRAY, end)


@inner
def finish_token(text: BytesAt, memory: IntsAt, kind: int, end: int) -> None:
    """Make the token reach to `end`."""
    memory[a.TOKEN] = kind
    memory[a.TOKEN_END] = end
    memory[a.POSITION] = skip_space(text, end)


@inner
def finish_shape(text: BytesAt, memory: IntsAt) -> int:
    """Whether a shape begins with the token, which then becomes the whole shape; -1 where it does not end."""
    if memory[a.TOKEN] == a.ARRAY:
        return 1
    start = memory[a.TOKEN_START]
    is_buffer = memory[a.TOKEN] == a.WORD and memory[a.TOKEN_END] == start + 1 and text[start] == 98
    if memory[a.TOKEN] != 40 and not (is_buffer and text[start + 1] == 40):
        return 0
    end = skip_group(text, start + 1 if is_buffer else start)
    if end < 0:
        return -1
    finish_token(text, memory, a.ARRAY, end)
    return 1


@inner
def is_token(text: BytesAt, memory: IntsAt, expected: int) -> int:
    """Whether the token is this word."""
    if memory[a.TOKEN] != a.WORD:
        return 0
    return is_span(text, memory[a.TOKEN_START], memory[a.TOKEN_END], expected)


@inner
def same(text: BytesAt, one: int, other: int, size: int) -> int:
    """Whether two spans of one size hold the same bytes."""
    for place in range(size):
        if text[one + place] != text[other + place]:
            return 0
    return 1


@inner
def intern(text: BytesAt, memory: IntsAt, counter: int) -> int:
    """The number of the token among the distinct ones of a table; a new one is counted. -1 where there is no room."""
    spans_at, slots_at, mask = memory[counter + a.AT], memory[counter + a.SLOTS_AT], memory[counter + a.SLOT_MASK]
    start, value = memory[a.TOKEN_START], hash_of_token(text, memory)
    size = memory[a.TOKEN_END] - start
    slot = value & mask
    while memory[slots_at + slot]:
        number = memory[slots_at + slot] - 1
        span = spans_at + number * a.SPAN_WIDTH
        known = memory[span + a.SPAN]
        found = memory[span + a.SPAN_HASH] == value and memory[span + a.SPAN_END] - known == size
        if found and same(text, start, known, size):
            return int(number)
        slot = (slot + 1) & mask
    number = memory[counter]
    if number == memory[counter + a.ROOM]:
        return -1
    memory[counter] = number + 1
    memory[slots_at + slot] = number + 1
    span = spans_at + number * a.SPAN_WIDTH
    memory[span + a.SPAN] = start
    memory[span + a.SPAN_END] = start + size
    memory[span + a.SPAN_HASH] = value
    return int(number)
