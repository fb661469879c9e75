"""What people read: bytes, times and counts with a unit that fits, long names by their ends."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_TIME_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
_COUNT_UNITS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))
NOTHING = "–"


def is_missing(value: object) -> bool:
    """Whether a cell holds nothing: None, NaN or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return isinstance(value, float) and math.isnan(value)


def format_bytes(value: float | int | None) -> str:
    """A byte count with a binary unit: `1536` gives `1.50 KiB`; missing gives a dash."""
    if is_missing(value):
        return NOTHING
    size = float(value)  # type: ignore[arg-type]
    if abs(size) < 1024:
        return f"{size:.0f} B"
    for unit in _BYTE_UNITS[1:]:
        size /= 1024
        if abs(size) < 1023.995 or unit == _BYTE_UNITS[-1]:
            break
    return f"{size:.2f} {unit}"


def format_ns(value: float | int | None) -> str:
    """A duration given in nanoseconds: `2500000` gives `2.50 ms`; missing gives a dash."""
    if is_missing(value):
        return NOTHING
    duration = float(value)  # type: ignore[arg-type]
    for unit, scale in _TIME_UNITS:
        if abs(duration) >= scale or unit == "ns":
            break
    return f"{duration / scale:.3g} {unit}" if unit == "ns" else f"{duration / scale:.2f} {unit}"


def format_count(value: float | int | None) -> str:
    """A count, exact below a million (`12,345`), then with a decimal unit (`3.21 M`)."""
    if is_missing(value):
        return NOTHING
    number = float(value)  # type: ignore[arg-type]
    for scale, unit in _COUNT_UNITS:
        if abs(number) >= scale:
            return f"{number / scale:.2f} {unit}"
    return f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"


def format_percent(value: float | int | None) -> str:
    """A share given between 0 and 1: `0.4237` gives `42.4 %`."""
    return NOTHING if is_missing(value) else f"{100 * float(value):.1f} %"  # type: ignore[arg-type]


FORMATS = {
    "bytes": format_bytes,
    "ns": format_ns,
    "ps": lambda value: NOTHING if is_missing(value) else format_ns(float(value) / 1000),
    "count": format_count,
    "cycles": format_count,
    "flop": format_count,
    "share": format_percent,
}


def format_value(value: object, unit: str | None) -> str:
    """A table cell as text by its column's unit; text stays as it is, missing gives a dash."""
    if is_missing(value):
        return NOTHING
    if unit in FORMATS and isinstance(value, int | float):
        return FORMATS[unit](value)
    if isinstance(value, float):
        return f"{value:,.4g}"
    return str(value)


def end_of(name: str, longest: int) -> str:
    """A name in at most `longest` characters: what is cut off is its beginning, since its end tells more."""
    return name if len(name) <= longest else "…" + name[1 - longest :]


@dataclass(frozen=True)
class Scale:
    """One unit for a whole column, so that its numbers can be compared by eye."""

    divisor: float
    suffix: str
    decimals: int

    def format(self, value: float | int | None) -> str:
        """The number without its unit; a value too small to show reads `<0.01`, a missing one is a dash."""
        if is_missing(value):
            return NOTHING
        number = float(value) / self.divisor  # type: ignore[arg-type]
        least = 10.0**-self.decimals
        if number and abs(number) < least / 2:
            return f"<{least:.{self.decimals}f}"
        return f"{number:,.{self.decimals}f}"


_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "bytes": tuple((1024.0**power, unit) for power, unit in reversed(list(enumerate(_BYTE_UNITS)))),
    "ns": tuple((scale, unit) for unit, scale in _TIME_UNITS),
    "ps": (*((1000 * scale, unit) for unit, scale in _TIME_UNITS), (1.0, "ps")),
    "count": (*_COUNT_UNITS[:2], (1.0, "")),
    "cycles": (*_COUNT_UNITS, (1e3, "k"), (1.0, "")),
    "flop": (*_COUNT_UNITS, (1e3, "k"), (1.0, "")),
    "share": ((0.01, "%"),),
}


def column_scale(values: Iterable[float | int | None], unit: str | None) -> Scale:
    """The unit in which a column's largest number reads best, and how many decimals its numbers get.

    Columns of counts stay exact up to a billion: nobody wants 0.01 M instructions.
    """
    present = [float(value) for value in values if not is_missing(value)]  # type: ignore[arg-type]
    largest = max((abs(value) for value in present), default=0.0)
    steps = _SCALES.get(unit or "", ((1.0, ""),))
    divisor, suffix = next((step for step in steps if largest >= step[0]), steps[-1])
    if unit == "share":
        return Scale(divisor, suffix, 1)
    whole = divisor == 1.0 and all(value == int(value) for value in present)
    return Scale(divisor, suffix, 0 if whole else 2)
