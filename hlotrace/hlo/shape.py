"""XLA shapes: what a shape's text says, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of an array, as XLA's text writes it between braces.

    `tiles` holds the dimensions of each tile, outermost first, -1 for `*` (combined with the next).
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()
    element_bits: int = 0
    memory_space: int = 0
    tail_alignment: int = 1
    text: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """An array, token, opaque or tuple shape.

    Attributes:
        text: the shape as written, `/*index=5*/` comments removed.
        dtype: the element type (`bf16`, `token`, `opaque`); `tuple` for a tuple.
        dims: dimension sizes; a bounded dynamic dimension gives its bound, an unbounded one -1.
        dynamic: for each dimension whether it is dynamic.
        layout: None where the text gives none.
        elements: the shapes of a tuple's elements.
    """

    text: str
    dtype: str
    dims: tuple[int, ...] = ()
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None
    elements: tuple[Shape, ...] = ()

    @property
    def is_tuple(self) -> bool:
        """Whether it is a tuple."""
        return self.dtype == "tuple"

    @property
    def memory_space(self) -> int:
        """XLA's memory space number, 0 when the layout names none."""
        return self.layout.memory_space if self.layout else 0
