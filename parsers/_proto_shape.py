"""ShapeProto and LayoutProto as the text that XLA prints for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.parsers._proto_text import joined

if TYPE_CHECKING:
    from hlotrace.parsers._wire import Message


PRIMITIVE_TYPES = {
    1: "pred",
    2: "s8",
    3: "s16",
    4: "s32",
    5: "s64",
    6: "u8",
    7: "u16",
    8: "u32",
    9: "u64",
    10: "f16",
    11: "f32",
    12: "f64",
    13: "tuple",
    14: "opaque",
    15: "c64",
    16: "bf16",
    17: "token",
    18: "c128",
    19: "f8e5m2",
    20: "f8e4m3fn",
    21: "s4",
    22: "u4",
    23: "f8e4m3b11fnuz",
    24: "f8e5m2fnuz",
    25: "f8e4m3fnuz",
    26: "s2",
    27: "u2",
    28: "f8e4m3",
    29: "f8e3m4",
    30: "s1",
    31: "u1",
    32: "f4e2m1fn",
    33: "f8e8m0fnu",
    34: "buffer",
    35: "f6e3m2fn",
    36: "f6e2m3fn",
}
"""XLA's PrimitiveType numbers; one that is newer than these is written `type37`."""

_TUPLE, _OPAQUE, _TOKEN, _BUFFER = 13, 14, 17, 34
_UNBOUNDED = -(1 << 63)
_LEVELS = "DCS"
"""Dense, compressed, singleton; a `+` after the letter for loose compressed, and marks for non-unique and unordered."""


def primitive_type(number: int) -> str:
    """The name of an element type as HLO text has it."""
    return PRIMITIVE_TYPES.get(number, f"type{number}")


def shape_text(shape: Message) -> str:
    """The text of a ShapeProto with layouts, without `/*index=5*/` comments."""
    kind = shape.integer(2)
    if kind == _TUPLE:
        return f"({', '.join(shape_text(element) for element in shape.messages(4))})"
    if kind == _BUFFER:
        return f"b({', '.join(shape_text(element) for element in shape.messages(4))})"
    dims = shape.integers(3)
    dynamic = shape.integers(6)
    sizes = [
        str(size) if at >= len(dynamic) or not dynamic[at] else ("?" if size == _UNBOUNDED else f"<={size}")
        for at, size in enumerate(dims)
    ]
    text = f"{primitive_type(kind)}[{','.join(sizes)}]"
    if kind in (_OPAQUE, _TOKEN) or 5 not in shape:
        return text
    layout = layout_text(shape.message(5))
    return text if layout == "{}" and not dims else text + layout


def layout_text(layout: Message) -> str:
    """The text of a LayoutProto, braces included."""
    parts = _levels(layout)
    tiles = [_tile(tile.integers(1)) for tile in layout.messages(6)]
    if tiles:
        parts.append("T" + "".join(tiles))
    if (tail := layout.integer(16, 1)) not in (0, 1):
        parts.append(f"L({tail})")
    parts += [f"{sign}({primitive_type(kind)})" for sign, kind in _index_types(layout)]
    parts += [
        f"{letter}({layout.integer(number)})" for letter, number in (("E", 7), ("S", 8)) if layout.integer(number)
    ]
    splits = [f"({split.integer(1)}:{joined(split.integers(2))})" for split in layout.messages(17)]
    if splits:
        parts.append("SC" + "".join(splits))
    if 10 in layout:
        parts.append(f"P({shape_text(layout.message(10))})")
    if prefix := layout.integer(15):
        parts.append(f"M({prefix})")
    return "{" + joined(layout.integers(1)) + (":" + "".join(parts) if parts else "") + "}"


def _levels(layout: Message) -> list[str]:
    kinds = layout.integers(9)
    if not any(kinds):
        return []
    unique, ordered = layout.integers(13), layout.integers(14)
    marks = []
    for at, kind in enumerate(kinds):
        mark = "C+" if kind == 3 else _LEVELS[kind] if kind < 3 else "?"
        mark += "+" if unique and not unique[at] else ""
        mark += "~" if ordered and not ordered[at] else ""
        marks.append(mark)
    return [f"D({','.join(marks)})"]


def _index_types(layout: Message) -> list[tuple[str, int]]:
    return [(sign, layout.integer(number)) for sign, number in (("#", 11), ("*", 12)) if layout.integer(number)]


def _tile(sizes: list[int]) -> str:
    return "(" + ",".join("*" if size == _UNBOUNDED else str(size) for size in sizes) + ")"
