"""LiteralProto as the text that XLA prints for a constant: elided beyond ten elements, as its dumps do."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hlotrace.parsers._proto_shape import primitive_type

if TYPE_CHECKING:
    from hlotrace.parsers._wire import Message

ELIDED = "{...}"
_MOST = 10
"""XLA prints larger constants only on demand."""

_REPEATED = {"pred": 2, "s32": 4, "s64": 5, "u32": 6, "u64": 7}
_RAW = {"f16": 11, "bf16": 13, "s8": 15, "u8": 3, "u16": 16, "s16": 17}
_PACKED_FLOATS = {"f32": (8, "<f", 4), "f64": (9, "<d", 8), "c64": (12, "<f", 4), "c128": (18, "<d", 8)}
_SUB_BYTE = {"s1": (30, 1), "s2": (26, 2), "s4": (21, 4), "u1": (31, 1), "u2": (27, 2), "u4": (22, 4)}
_SMALL_FLOATS = {
    # name: field, exponent bits, mantissa bits, exponent bias, what all-ones exponents mean
    "f8e5m2": (19, 5, 2, 15, "ieee"),
    "f8e4m3": (28, 4, 3, 7, "ieee"),
    "f8e3m4": (29, 3, 4, 3, "ieee"),
    "f8e4m3fn": (20, 4, 3, 7, "nan at all ones"),
    "f8e5m2fnuz": (24, 5, 2, 16, "nan at minus zero"),
    "f8e4m3fnuz": (25, 4, 3, 8, "nan at minus zero"),
    "f8e4m3b11fnuz": (23, 4, 3, 11, "nan at minus zero"),
    "f8e8m0fnu": (33, 8, 0, 127, "no sign"),
    "f4e2m1fn": (32, 2, 1, 1, "finite"),
    "f6e3m2fn": (35, 3, 2, 3, "finite"),
    "f6e2m3fn": (36, 2, 3, 1, "finite"),
}
_DIGITS = {"bf16": 4, "f16": 5, "f8e3m4": 3, "f8e4m3": 3, "f8e4m3fn": 3, "f8e4m3fnuz": 3, "f8e4m3b11fnuz": 3}


def literal_text(literal: Message) -> str:
    """What stands between the parentheses of `constant(…)`."""
    shape = literal.message(1)
    dtype = primitive_type(shape.integer(2))
    dims = shape.integers(3)
    if dtype == "token":
        return ""
    if dtype == "tuple" or math.prod(dims) > _MOST:
        return ELIDED
    values = list(_values(literal, dtype, bool(dims)))
    if len(values) != math.prod(dims):
        return ELIDED
    values = _row_major(values, dims, shape.message(5).integers(1))
    return _array(values, dims, 0) if dims else values[0]


def _row_major(values: list[str], dims: list[int], minor_to_major: list[int]) -> list[str]:
    """Values as they are stored, put into the order of the dimensions."""
    if sorted(minor_to_major) != list(range(len(dims))) or minor_to_major == sorted(minor_to_major, reverse=True):
        return values
    strides = [0] * len(dims)
    step = 1
    for dim in minor_to_major:
        strides[dim] = step
        step *= dims[dim]
    places = itertools.product(*map(range, dims))
    return [values[sum(at * stride for at, stride in zip(place, strides, strict=True))] for place in places]


def _array(values: list[str], dims: list[int], level: int, comment: str = "") -> str:
    """Nested braces on one line; beyond rank 3 the outer ones tell their index in a comment."""
    rank = len(dims)
    if level == rank - 1:
        inner = ", ".join(values)
        return "{ " + inner + " }" if rank > 1 and dims[level] > 1 else "{" + inner + "}"
    size = len(values) // dims[level] if dims[level] else 0
    parts = []
    for at in range(dims[level]):
        inside = f"/*i{level}={at}*/" if rank > 3 and level < rank - 2 else ""
        parts.append(_array(values[at * size : (at + 1) * size], dims, level + 1, inside))
    return " ".join(filter(None, ("{", comment, ", ".join(parts), "}")))


def _values(literal: Message, dtype: str, in_array: bool) -> Iterator[str]:
    if dtype == "pred":
        names = ("0", "1") if in_array else ("false", "true")
        yield from (names[bool(value)] for value in literal.integers(2))
    elif dtype in ("s32", "s64"):
        yield from map(str, literal.integers(_REPEATED[dtype]))
    elif dtype in ("u32", "u64"):
        yield from (str(value % (1 << int(dtype[1:]))) for value in literal.integers(_REPEATED[dtype]))
    elif dtype in _PACKED_FLOATS:
        yield from _floats(literal, dtype)
    elif dtype in _RAW:
        yield from _raw(literal.raw(_RAW[dtype]), dtype)
    elif dtype in _SUB_BYTE:
        number, bits = _SUB_BYTE[dtype]
        yield from _sub_byte(literal, literal.raw(number), bits, dtype.startswith("s"))
    elif dtype in _SMALL_FLOATS:
        yield from _small_floats(literal, dtype)


def _floats(literal: Message, dtype: str) -> Iterator[str]:
    number, form, size = _PACKED_FLOATS[dtype]
    data = b"".join(
        literal.data[part] if isinstance(part, slice) else part.to_bytes(size, "little")
        for part in literal.fields.get(number, [])
    )
    usable = len(data) // size * size
    part = "f32" if size == 4 else "f64"
    texts = [float_text(value, part) for (value,) in struct.iter_unpack(form, data[:usable])]
    if dtype.startswith("c"):
        texts = [f"({real}, {imaginary})" for real, imaginary in zip(texts[::2], texts[1::2], strict=False)]
    yield from texts


_READERS: dict[str, Callable[[bytes], str]] = {
    "f16": lambda piece: _half(piece),
    "bf16": lambda piece: float_text(struct.unpack("<f", b"\0\0" + piece)[0], "bf16"),
}


def _half(piece: bytes) -> str:
    return float_text(struct.unpack("<e", piece)[0], "f16")


def _raw(data: bytes, dtype: str) -> Iterator[str]:
    size = 1 if dtype in ("s8", "u8") else 2
    read = _READERS.get(dtype)
    for at in range(0, len(data) - size + 1, size):
        piece = data[at : at + size]
        yield read(piece) if read else str(int.from_bytes(piece, "little", signed=dtype.startswith("s")))


def _sub_byte(literal: Message, data: bytes, bits: int, signed: bool) -> Iterator[str]:
    for value in _unpacked(literal, data, bits):
        yield str(value - (1 << bits) if signed and value >= 1 << (bits - 1) else value)


def _unpacked(literal: Message, data: bytes, bits: int) -> list[int]:
    """Elements of less than a byte: one a byte, or several with the first in the low bits."""
    count = math.prod(literal.message(1).integers(3))
    mask = (1 << bits) - 1
    if len(data) >= count:
        return [byte & mask for byte in data[:count]]
    per = 8 // bits
    return [data[at // per] >> (at % per * bits) & mask for at in range(min(count, len(data) * per))]


def _small_floats(literal: Message, dtype: str) -> Iterator[str]:
    number, exponent_bits, mantissa_bits, bias, kind = _SMALL_FLOATS[dtype]
    bits = exponent_bits + mantissa_bits + (kind != "no sign")
    for code in _unpacked(literal, literal.raw(number), bits):
        yield _decode(code, exponent_bits, mantissa_bits, bias, kind, dtype)


def _decode(code: int, exponent_bits: int, mantissa_bits: int, bias: int, kind: str, dtype: str) -> str:
    sign = "-" if kind != "no sign" and code >> (exponent_bits + mantissa_bits) else ""
    exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = code & ((1 << mantissa_bits) - 1)
    ones = exponent == (1 << exponent_bits) - 1
    if kind == "no sign":
        return "nan" if ones else float_text(math.ldexp(1.0, exponent - bias), dtype)
    if kind == "nan at minus zero" and sign and not exponent and not mantissa:
        return "-nan"
    if kind == "ieee" and ones:
        return sign + ("nan" if mantissa else "inf")
    if kind == "nan at all ones" and ones and mantissa == (1 << mantissa_bits) - 1:
        return sign + "nan"
    fraction = mantissa / (1 << mantissa_bits)
    value = math.ldexp(1 + fraction, exponent - bias) if exponent else math.ldexp(fraction, 1 - bias)
    return sign + float_text(value, dtype)


def float_text(value: float, dtype: str) -> str:
    """A float as XLA prints it: the fewest digits, from the type's decimal precision up, that read back the same."""
    if math.isnan(value):
        return "-nan" if math.copysign(1, value) < 0 else "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if dtype == "f32":
        short = f"{value:.6g}"
        same = struct.unpack("<f", struct.pack("<f", float(short)))[0] == value if abs(float(short)) < 3.4e38 else False
        return short if same else f"{value:.9g}"
    if dtype == "f64":
        short = f"{value:.15g}"
        return short if float(short) == value else f"{value:.17g}"
    return f"{value:.{_DIGITS.get(dtype, 2)}g}"
