"""The lexical grain of HLO text, compiled by numba: where spaces, strings, groups and attribute values end.

The text is bytes with a zero after its end. A zero is in no class of characters, so no loop runs past the end. The
`skip` functions take a place and return the place after what they read, -1 where it does not end.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.native import inner
from hlotrace.parsers import _hlo_arrays as a

if TYPE_CHECKING:
    from hlotrace.native import BytesAt

IN_WORD, DIGIT, SPACE, VALUE_END, BRACE_STOP, JSON_STOP = (1 << bit for bit in range(6))


def _classes() -> np.ndarray:
    table = np.zeros(256, np.uint8)
    members = {
        IN_WORD: string.ascii_letters + string.digits + "_.-",
        DIGIT: string.digits,
        SPACE: " \t\r\n",
        VALUE_END: ",{}()[]\"'/ \t\r\n\0",
        BRACE_STOP: "{}\"'/\0",
        JSON_STOP: '{}"\0',
    }
    for bit, characters in members.items():
        table[[ord(character) for character in characters]] |= bit
    return table


def _words() -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(word) for word in a.WORDS])
    table = np.zeros((len(a.WORDS), int(lengths.max())), np.uint8)
    for row, word in enumerate(a.WORDS):
        table[row, : len(word)] = np.frombuffer(word.encode(), np.uint8)
    return table, lengths


CLASSES = _classes()
ONES, LOW_BITS, TOP_BITS = 0x0101010101010101, 0x7F7F7F7F7F7F7F7F, -0x7F7F7F7F7F7F7F80
NEWLINES, EQUALS, BACKSLASHES, OPENING, CLOSING, QUOTES = (ONES * ord(character) for character in '\n=\\{}"')
WORDS, WORD_LENGTHS = _words()


@inner
def skip_space(text: BytesAt, at: int) -> int:
    """The place of the next character that is neither space nor comment."""
    while True:
        if CLASSES[text[at]] & SPACE:
            at += 1
        elif text[at] == 47 and text[at + 1] == 47:
            while text[at] != 10 and text[at] != 0:
                at += 1
        elif text[at] == 47 and text[at + 1] == 42:
            end = at + 2
            while text[end] != 0 and not (text[end] == 42 and text[end + 1] == 47):
                end += 1
            if text[end] == 0:
                return at
            at = end + 2
        else:
            return at


@inner
def skip_string(text: BytesAt, at: int) -> int:
    """The place after a string in either quotes, which may hold escapes and raw newlines."""
    quote = text[at]
    at += 1
    while text[at] != quote:
        if text[at] == 92:
            at += 1
        if text[at] == 0:
            return -1
        at += 1
    return at + 1


@inner
def skip_braces(text: BytesAt, at: int, stop: int) -> int:
    """The place after braces; `stop` says what is heeded in them.

    With JSON_STOP strings in double quotes, with BRACE_STOP strings in either quotes and comments as well.
    """
    depth = 0
    while True:
        while not CLASSES[text[at]] & stop:
            at += 1
        char = text[at]
        if char == 34 or char == 39:
            at = skip_string(text, at)
            if at < 0:
                return -1
        elif char == 47:
            at = max(skip_space(text, at), at + 1)
        elif char == 0:
            return -1
        else:
            depth += 1 if char == 123 else -1
            at += 1
            if depth == 0:
                return at


@inner
def eight_bytes(text: BytesAt, at: int) -> int:
    """Eight bytes as one number, the first one lowest: a single load on the processors there are."""
    low = text[at] | text[at + 1] << 8 | text[at + 2] << 16 | text[at + 3] << 24
    high = text[at + 4] | text[at + 5] << 8 | text[at + 6] << 16 | text[at + 7] << 24
    return int(low | high << 32)


@inner
def marks(eight: int, pattern: int) -> int:
    """The top bit of each of eight bytes that is the one of `pattern`, which holds it eight times."""
    different = eight ^ pattern
    return ~((different & LOW_BITS) + LOW_BITS | different) & TOP_BITS


@inner
def count_marks(found: int) -> int:
    """How many top bits are set."""
    return ((found >> 7 & ONES) * ONES >> 56) & 255


@inner
def skip_json_line(text: BytesAt, at: int, size: int) -> int:
    """The place after a dictionary that ends its line, -1 where that is not plain to see.

    It is when nothing up to the line's end can begin another attribute (`=`) or hide a quote (a backslash), braces
    are balanced, and quotes too. A dictionary is most of a line, so eight bytes are looked at in one go.
    """
    balance = quotes = 0
    while at + 8 <= size:
        eight = eight_bytes(text, at)
        if marks(eight, NEWLINES) | marks(eight, EQUALS) | marks(eight, BACKSLASHES):
            break
        balance += (marks(eight, OPENING) >> 7 & ONES) - (marks(eight, CLOSING) >> 7 & ONES)
        quotes ^= marks(eight, QUOTES)
        at += 8
    balance %= 255  # the sum of its bytes, since 256 is 1 more
    even = count_marks(quotes) & 1 == 0
    while text[at] != 10:
        char = text[at]
        if char == 61 or char == 92 or char == 0:
            return -1
        balance += (char == 123) - (char == 125)
        even ^= char == 34
        at += 1
    return at if balance % 255 == 0 and even and text[at - 1] == 125 and text[at - 2] != 32 else -1


@inner
def skip_group(text: BytesAt, at: int) -> int:
    """The place after parentheses or brackets, with others of both kinds and strings inside."""
    depth = 0
    while True:
        char = text[at]
        if char == 40 or char == 91:
            depth += 1
        elif char == 41 or char == 93:
            depth -= 1
            if depth == 0:
                return at + 1
        elif char == 34 or char == 39:
            at = skip_string(text, at) - 1
            if at < 0:
                return -1
        elif char == 0:
            return -1
        at += 1


@inner
def skip_value(text: BytesAt, at: int) -> int:
    """The place after an attribute's value.

    A value ends at a comma, at a closing bracket of what surrounds it, and at space, unless a group follows, or on
    the same line a number or a word for one (`literal=pred[] true`).
    """
    while True:
        while not CLASSES[text[at]] & VALUE_END:
            at += 1
        char = text[at]
        end = at
        if char == 123:
            at = skip_braces(text, at, BRACE_STOP)
        elif char == 40 or char == 91:
            at = skip_group(text, at)
        elif char == 34 or char == 39:
            at = skip_string(text, at)
        elif CLASSES[char] & SPACE or char == 47:
            at = _continues(text, at)
            if at < 0:
                return end
        else:
            return at
        if at < 0:
            return -1


@inner
def _continues(text: BytesAt, at: int) -> int:
    """Where a value goes on after space, -1 where it does not."""
    follow = skip_space(text, at)
    if follow == at:
        return at + 1
    char = text[follow]
    if char == 123 or char == 40 or char == 91:
        return follow
    for place in range(at, follow):
        if text[place] == 10:
            return -1
    end = follow
    while CLASSES[text[end]] & IN_WORD:
        end += 1
    if CLASSES[char] & DIGIT or char == 45:
        return end
    if text[skip_space(text, end)] != 61:
        for literal in range(a.INF, a.NAN + 1):
            if is_span(text, follow, end, literal):
                return end
    return -1


@inner
def is_span(text: BytesAt, start: int, end: int, expected: int) -> int:
    """Whether a span holds this one of the known words."""
    if end - start != WORD_LENGTHS[expected]:
        return 0
    for place in range(end - start):
        if text[start + place] != WORDS[expected, place]:
            return 0
    return 1
