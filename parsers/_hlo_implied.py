"""Shapes that a text leaves out, and those that XLA makes from the operands whatever the text says.

Of the latter the text is taken as long as it says the same; it knows more, such as the memory spaces of flags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotrace.errors import ParseError
from hlotrace.hlo.shape import Shape
from hlotrace.parsers import _hlo_arrays as a
from hlotrace.parsers._hlo_infer import Inference, Known, array, tuple_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hlotrace.parsers._hlo_draft import Draft

_TOKEN = Shape("token[]", "token")

_IMPLIED: dict[str, Callable[[Known], Shape]] = {
    "send": lambda known: tuple_of([known.operands[0], array("u32", ()), _TOKEN]),
    "recv": lambda known: tuple_of([known.written.elements[0], array("u32", ()), _TOKEN]),
    "recv-done": lambda known: tuple_of([known.operands[0].elements[0], _TOKEN]),
    "infeed": lambda known: tuple_of([known.written.elements[0], _TOKEN]),
    **dict.fromkeys(("send-done", "outfeed", "after-all"), lambda _: _TOKEN),
}


def complete_shapes(draft: Draft, problems: list[tuple[str, str, str]]) -> None:
    """Infer the shapes that are missing, and replace those that cannot be their operation's; each becomes a problem.

    Raises:
        ParseError: an instruction has no shape, and it does not follow from its operands.
    """
    implied = [number for number, opcode in enumerate(draft.opcodes) if opcode in _IMPLIED]
    if not implied and not draft.state[a.SHAPELESS]:
        return
    rows = np.flatnonzero((draft.rows[:, a.SHAPE] < 0) | np.isin(draft.rows[:, a.OPCODE], implied))
    inference = Inference(draft)
    for row in rows[np.argsort(draft.rows[rows, a.DONE], kind="stable")].tolist():
        opcode = draft.opcodes[draft.rows[row, a.OPCODE]]
        is_missing = draft.rows[row, a.SHAPE] < 0
        shape = inference.shape(row, _IMPLIED.get(opcode))
        if shape is None and is_missing:
            what = f"expected a shape: that of this {opcode!r} does not follow from its operands"
            raise ParseError(what, place=draft.where(row))
        if shape is None or (not is_missing and agree(draft.shapes[draft.rows[row, a.SHAPE]], shape)):
            continue
        if not is_missing:
            what = f"the result {draft.shapes[draft.rows[row, a.SHAPE]].text} is not what {opcode} gives"
            problems.append((draft.where(row), what, f"it is taken as {shape.text}"))
        draft.rows[row, a.SHAPE] = draft.shape_number(shape)


def agree(one: Shape, other: Shape) -> bool:
    """Whether two shapes are the same but for tiles and memory spaces."""
    if (one.dtype, one.dims, one.dynamic, _order(one)) != (other.dtype, other.dims, other.dynamic, _order(other)):
        return False
    return len(one.elements) == len(other.elements) and all(map(agree, one.elements, other.elements))


def _order(shape: Shape) -> tuple[int, ...]:
    """The dimensions, minor to major; without a layout the last is the most minor one."""
    return shape.layout.minor_to_major if shape.layout else tuple(reversed(range(len(shape.dims))))
