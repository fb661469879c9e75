"""A treemap as inline SVG: groups as rectangles, their members in them, squarified so that areas compare well."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from hlotrace.render.palette import colour
from hlotrace.render.svg import WIDTH, element, is_hatched, paint, picture, text
from hlotrace.units import end_of, format_percent, format_value

if TYPE_CHECKING:
    from hlotrace.views.blocks import Origin, Treemap

HEIGHT = 400.0
GROUP_TITLE = 18.0
CHARACTER = 6.6
DARK_INK_FROM = 0.18
"""The luminance of a surface from which on dark letters are read more easily on it."""


class Box(NamedTuple):
    """A rectangle: its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float


def squarify(values: Sequence[float], box: Box) -> list[Box]:
    """A rectangle for each value, as near to squares as they come; `values` are positive and in descending order."""
    if not values:
        return []
    scale = box.width * box.height / sum(values)
    areas = [value * scale for value in values]
    placed: list[Box] = []
    row: list[float] = []
    for area in areas:
        side = min(box.width, box.height)
        if row and _worst([*row, area], side) > _worst(row, side):
            boxes, box = _laid(row, box)
            placed += boxes
            row = []
        row.append(area)
    boxes, _ = _laid(row, box)
    return placed + boxes


def _worst(row: list[float], side: float) -> float:
    """The least square of the rectangles of a row along `side`: its longer edge over its shorter one."""
    total = sum(row)
    if side <= 0 or total <= 0:
        return float("inf")
    return max(side * side * max(row) / (total * total), total * total / (side * side * min(row)))


def _laid(row: list[float], box: Box) -> tuple[list[Box], Box]:
    """The row along the shorter side of the box, and what is left of the box."""
    total = sum(row)
    upright = box.width >= box.height
    thick = total / (box.height if upright else box.width) if min(box.width, box.height) > 0 else 0.0
    boxes, offset = [], 0.0
    for area in row:
        long = area / thick if thick else 0.0
        boxes.append(Box(box.x, box.y + offset, thick, long) if upright else Box(box.x + offset, box.y, long, thick))
        offset += long
    rest = (
        Box(box.x + thick, box.y, max(box.width - thick, 0.0), box.height)
        if upright
        else Box(box.x, box.y + thick, box.width, max(box.height - thick, 0.0))
    )
    return boxes, rest


def treemap(block: Treemap) -> str:
    """The treemap, with a name where it fits and the rest on pointing at it."""
    groups: dict[str, list[int]] = {}
    for index, (group, value) in enumerate(zip(block.groups, block.values, strict=True)):
        if value > 0:
            groups.setdefault(group, []).append(index)
    totals = {group: sum(block.values[index] for index in members) for group, members in groups.items()}
    ordered = sorted(groups, key=lambda group: -totals[group])
    if not ordered:
        return ""
    boxes = squarify([totals[group] for group in ordered], Box(0.0, 0.0, WIDTH, HEIGHT))
    everything = sum(totals.values())
    parts: list[str] = []
    for group, box in zip(ordered, boxes, strict=True):
        share = f"{format_value(totals[group], block.unit)}, {format_percent(totals[group] / everything)}"
        parts += _group(block, group, share, groups[group], box)
    return picture(HEIGHT, block.title, parts)


def _group(block: Treemap, group: str, share: str, members: list[int], box: Box) -> list[str]:
    inner, parts = box, []
    if box.height > 3 * GROUP_TITLE and box.width > 60:
        inner = Box(box.x, box.y + GROUP_TITLE, box.width, box.height - GROUP_TITLE)
        whole = f"{group}  {share}"
        label = whole if len(whole) * CHARACTER < box.width - 8 else _fitting(group, box.width - 8)
        parts.append(text(box.x + 3, box.y + 13, label, class_="group"))
    members = sorted(members, key=lambda index: -block.values[index])
    everything = sum(block.values)
    for index, place in zip(members, squarify([block.values[index] for index in members], inner), strict=True):
        value = f"{format_value(block.values[index], block.unit)}, {format_percent(block.values[index] / everything)}"
        lines = [block.labels[index], f"{group}: {value}", *([block.hover[index]] if index < len(block.hover) else [])]
        content = element("title", escape("\n".join(lines)))
        wide, high = max(place.width - 1, 0.2), max(place.height - 1, 0.2)
        content += element(
            "rect", "", x=place.x + 0.5, y=place.y + 0.5, width=wide, height=high, **paint(group, block.origin)
        )
        parts.append(element("g", content + _label(block.labels[index], value, group, block.origin, place)))
    return parts


def _label(name: str, value: str, group: str, origin: Origin, place: Box) -> str:
    if place.height < 16 or place.width < 34:
        return ""
    ink = "ink-dark" if luminance(colour(group)) > DARK_INK_FROM else "ink-light"
    if is_hatched(group, origin):
        ink = "halo"
    label = _fitting(name, place.width - 8)
    written = text(place.x + 4, place.y + 13, label, class_=ink) if label else ""
    if place.height > 32 and len(value) * CHARACTER < place.width - 8:
        written += text(place.x + 4, place.y + 27, value, class_=ink)
    return written


def _fitting(name: str, width: float) -> str:
    longest = int(width / CHARACTER)
    return end_of(name, longest) if longest >= 5 or len(name) <= longest else ""


def luminance(hex_colour: str) -> float:
    """The relative luminance of `#RRGGBB`, 0 to 1."""
    channels = [int(hex_colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
