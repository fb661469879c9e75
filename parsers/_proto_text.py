"""How XLA prints lists: numbers with commas, in braces, and long ones with their index in comments."""

from __future__ import annotations

from collections.abc import Iterable


def joined(values: Iterable[int]) -> str:
    """`1,2`."""
    return ",".join(map(str, values))


def ints(values: Iterable[int]) -> str:
    """`{1,2}`."""
    return f"{{{joined(values)}}}"


def numbered(parts: Iterable[str]) -> str:
    """`a, b, c, d, e, /*index=5*/f`: each fifth with its number in a comment before it."""
    return ", ".join(f"/*index={at}*/{part}" if at and not at % 5 else part for at, part in enumerate(parts))
