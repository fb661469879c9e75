"""Protobuf's wire format: what is written comes back, and damage is an error with its place."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.errors import ParseError
from hlotrace.parsers._wire import MAX_DEPTH, Message

NUMBERS = st.integers(1, 1 << 20)
SIGNED = st.integers(-(1 << 63), (1 << 63) - 1)


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def block(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def read(data: bytes) -> Message:
    return Message(data, "f.pb")


@given(NUMBERS, SIGNED)
def test_an_integer_comes_back_with_its_sign(number: int, value: int) -> None:
    assert read(integer(number, value)).integer(number) == value


@given(NUMBERS, st.lists(SIGNED))
def test_packed_and_repeated_integers_are_the_same(number: int, values: list[int]) -> None:
    packed = block(number, b"".join(map(varint, values)))
    repeated = b"".join(integer(number, value) for value in values)
    assert read(packed).integers(number) == values
    assert read(repeated).integers(number) == values
    assert read(repeated + packed).integers(number) == values * 2


@given(NUMBERS, st.text(), st.text())
def test_the_last_of_a_singular_field_counts(number: int, first: str, last: str) -> None:
    data = block(number, first.encode()) + block(number, last.encode())
    assert read(data).text(number) == last
    assert read(data).texts(number) == [first, last]


def test_floats_come_back() -> None:
    data = varint(1 << 3 | 1) + struct.pack("<d", -0.1) + varint(2 << 3 | 5) + struct.pack("<f", 1.5)
    assert (read(data).double(1), read(data).float(2)) == (-0.1, 1.5)


def test_what_is_absent_gives_the_default() -> None:
    message = read(b"")
    assert (message.integer(1), message.integer(1, -1), message.text(2), message.integers(3)) == (0, -1, "", [])
    assert (message.double(4), message.float(4), message.raw(5), list(message.messages(6))) == (0.0, 0.0, b"", [])
    assert message.message(7).integer(1) == 0
    assert 1 not in message


def test_nested_messages_and_maps_are_read() -> None:
    data = block(1, block(2, b"a") + integer(3, 7)) + block(4, block(1, b"k") + block(2, b"v"))
    message = read(data)
    assert [(inner.text(2), inner.integer(3)) for inner in message.messages(1)] == [("a", 7)]
    assert message.string_map(4) == {"k": "v"}


def test_a_field_that_is_stepped_over_is_not_there() -> None:
    data = integer(1, 5) + block(2, b"x" * 300) + integer(3, 6)
    message = Message(data, "f.pb", skip=2)
    assert (message.integer(1), 2 in message, message.integer(3)) == (5, False, 6)


@given(st.lists(st.tuples(NUMBERS, st.one_of(SIGNED, st.binary(max_size=40))), min_size=1), st.data())
def test_a_cut_within_a_field_is_an_error_and_between_fields_is_not(
    fields: list[tuple[int, int | bytes]], data: st.DataObject
) -> None:
    pieces = [block(n, v) if isinstance(v, bytes) else integer(n, v) for n, v in fields]
    whole = b"".join(pieces)
    cut = data.draw(st.integers(0, len(whole)))
    ends = {sum(map(len, pieces[:count])) for count in range(len(pieces) + 1)}
    if cut in ends:
        read(whole[:cut])
        return
    with pytest.raises(ParseError) as caught:
        read(whole[:cut])
    assert str(caught.value).startswith("f.pb at byte ")


@pytest.mark.parametrize(
    ("data", "found", "at"),
    [
        (b"\x0a\x05abc", "longer than the message", 2),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "longer than the message", 2),
        (b"\x08" + b"\xff" * 10, "longer than ten bytes", 3),
        (b"\x08\xff", "runs past its end", 3),
        (b"\x08", "runs past its end", 3),
        (b"\x0b", "wire type 3", 2),
        (b"\x0f", "wire type 7", 2),
        (b"\x00\x01", "field number 0", 2),
        (b"\x09\x01\x02", "longer than the message", 2),
    ],
)
def test_damage_says_what_was_found_and_where(data: bytes, found: str, at: int) -> None:
    with pytest.raises(ParseError, match=found) as caught:
        read(integer(1, 1) + data)
    assert caught.value.place == f"f.pb at byte {at}"


def test_a_field_of_another_kind_is_an_error() -> None:
    with pytest.raises(ParseError, match="field 1 of another kind"):
        read(block(1, b"text")).integer(1)
    with pytest.raises(ParseError, match="field 1 of another kind"):
        list(read(integer(1, 3)).messages(1))


def test_messages_nested_without_end_are_an_error() -> None:
    data = b""
    for _ in range(2 * MAX_DEPTH):
        data = block(1, data)

    def descend(message: Message) -> None:
        descend(message.message(1))

    with pytest.raises(ParseError, match="deep"):
        descend(read(data))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        message = read(data)
    except ParseError:
        return
    for number in message.fields:
        for method in (message.integer, message.integers, message.text, message.double):
            try:
                method(number)
            except ParseError:
                continue
