"""The text of an XLA shape, such as `(bf16[8,<=128]{1,0:T(8,128)(2,1)S(1)}, token[])`, read into a `Shape`."""

from __future__ import annotations

import re
from functools import lru_cache

from hlotrace.errors import ParseError
from hlotrace.hlo.shape import Layout, Shape

_CACHED = 1 << 16
_DEEPEST = 200

_COMMENT = re.compile(r"\s*/\*.*?\*/\s*", re.DOTALL)
_ARRAY = re.compile(r"\s*([A-Za-z]\w*)\s*\[([^\[\]{}()]*)\]")
_BRACES = re.compile(r"\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_DIMENSION = re.compile(r"\s*(\?|<=)?\s*(\d+)?\s*")
_PROPERTY = re.compile(r"\s*([A-Z]+|[#*])\s*((?:\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))+)\s*")
_GROUP = re.compile(r"\(([^()]*)\)")


class ShapeError(ParseError):
    """Text that is no shape; `offset` counts the characters before the place where reading stopped."""

    def __init__(self, what: str, text: str, offset: int) -> None:
        self.offset = offset
        super().__init__(what, place=f"shape {text[:80]!r}, column {offset + 1}")


@lru_cache(maxsize=_CACHED)
def parse_shape(text: str) -> Shape:
    """Read a shape: an array, tuple, token, opaque or buffer, with or without layouts.

    Raises:
        ShapeError: the text is no shape, or is followed by something else.
    """
    clean = strip_comments(text).strip()
    shape, end = _shape(clean, 0, 0)
    if end != len(clean):
        raise ShapeError("expected the shape to end here", clean, end)
    return shape


def strip_comments(text: str) -> str:
    """The text without `/*index=5*/` comments, one space left after a comma."""
    return _COMMENT.sub(" ", text) if "/*" in text else text


def _shape(text: str, at: int, depth: int) -> tuple[Shape, int]:
    """The shape that begins at `at`, and where it ends."""
    if depth > _DEEPEST:
        raise ShapeError(f"tuples nest deeper than {_DEEPEST}", text, at)
    at = _skip_space(text, at)
    if text.startswith("(", at):
        return _tuple(text, at, depth)
    if text.startswith("b(", at):
        inner, end = _shape(text, at + 2, depth + 1)
        end = _skip_space(text, end)
        if not text.startswith(")", end):
            raise ShapeError("expected `)` after the shape of a buffer", text, end)
        return Shape(text[at : end + 1], "buffer", elements=(inner,)), end + 1
    return _array(text, at)


def _tuple(text: str, at: int, depth: int) -> tuple[Shape, int]:
    elements: list[Shape] = []
    end = _skip_space(text, at + 1)
    while not text.startswith(")", end):
        element, end = _shape(text, end, depth + 1)
        elements.append(element)
        end = _skip_space(text, end)
        if text.startswith(",", end):
            end = _skip_space(text, end + 1)
        elif not text.startswith(")", end):
            raise ShapeError("expected `,` or `)` in a tuple", text, end)
    return Shape(text[at : end + 1], "tuple", elements=tuple(elements)), end + 1


def _array(text: str, at: int) -> tuple[Shape, int]:
    head = _ARRAY.match(text, at)
    if not head:
        raise ShapeError("expected a shape, such as `f32[8,128]` or a tuple of shapes", text, at)
    braces = _BRACES.match(text, head.end())
    end = braces.end() if braces else head.end()
    return _array_of(text[at:end]), end


@lru_cache(maxsize=_CACHED)
def _array_of(text: str) -> Shape:
    head = _ARRAY.match(text)
    assert head
    dims, dynamic = _dimensions(text, head.start(2), head[2])
    braces = _BRACES.match(text, head.end())
    layout = _layout(braces[1]) if braces else None
    if layout and len(layout.minor_to_major) != len(dims):
        raise ShapeError(f"the layout orders {len(layout.minor_to_major)} dimensions of {len(dims)}", text, head.end())
    return Shape(text, head[1], dims, dynamic, layout)


def _dimensions(text: str, at: int, inside: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Sizes, and which of them are bounds (`<=8`) or unbounded (`?`, -1)."""
    if not inside or inside.isspace():
        return (), ()
    parts = inside.split(",")
    if all(part.isdecimal() for part in parts):
        return tuple(map(int, parts)), (False,) * len(parts)
    dims, dynamic = [], []
    for part in parts:
        match = _DIMENSION.fullmatch(part)
        if not match or (match[1] == "?") == (match[2] is not None):
            raise ShapeError("expected a dimension: a size, `<=` and a bound, or `?`", text, at)
        dims.append(-1 if match[1] == "?" else int(match[2]))
        dynamic.append(match[1] is not None)
        at += len(part) + 1
    return tuple(dims), tuple(dynamic)


@lru_cache(maxsize=_CACHED)
def _layout(text: str) -> Layout:
    order, _, properties = text.partition(":")
    try:
        minor_to_major = tuple(int(part) for part in order.split(",")) if order.strip() else ()
    except ValueError:
        raise ShapeError("expected the layout's dimensions, minor to major", text, 0) from None
    found: dict[str, str] = {}
    at = 0
    while at < len(properties):
        match = _PROPERTY.match(properties, at)
        if not match:
            raise ShapeError("expected a layout property, such as `T(8,128)` or `S(1)`", text, len(order) + 1 + at)
        found[match[1]] = match[2]
        at = match.end()
    try:
        return Layout(
            minor_to_major,
            _tiles(found.get("T", "")),
            element_bits=_integer(found.get("E"), 0),
            memory_space=_integer(found.get("S"), 0),
            tail_alignment=_integer(found.get("L"), 1),
            text=text,
        )
    except ValueError:
        raise ShapeError("expected numbers in the layout's properties", text, len(order) + 1) from None


def _tiles(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(-1 if part.strip() == "*" else int(part) for part in group.split(",") if part.strip())
        for group in _GROUP.findall(text)
    )


def _integer(parenthesised: str | None, absent: int) -> int:
    return absent if parenthesised is None else int(parenthesised.strip()[1:-1])


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
