"""How well the shapes of a program's products fit the matrix units: the tiles they fill against those they use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.analyses.modules import records
from hlotrace.analyses.predicted import PRODUCTS
from hlotrace.hlo.product_shape import ProductShape, product_shape
from hlotrace.hlo.shape_text import parse_shape
from hlotrace.tables import LINES

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("stage", "computation", "instruction", "opcode", "operands", "shape", "dtype", "attributes", "flops"),
    *("execution_count", "op_name", *LINES),
)
"""The columns of `instructions` that this reads."""
_READ = ("computation", "opcode", "operands", "shape", "attributes")


def products(
    instructions: pd.DataFrame, computations: pd.DataFrame, stage: str | None, size: int | None
) -> pd.DataFrame:
    """The dots and convolutions of a stage, those whose shape wastes most FLOPs of the matrix units first.

    Adds `launch` (the fusion that it runs in, itself outside of any), `product` and `padded` (as text), `mxu_share`
    (the part of the matrix units that its shape can use at best), `wasted_flops` (what padding adds in one run),
    `flops_total`, and `change` (the dimension to change). All but the first two are null where the units' size is not
    known.

    Args:
        size: rows and columns of a matrix unit.
    """
    final = instructions[instructions["stage"] == stage]
    chosen = final[final["opcode"].isin(PRODUCTS)]
    shapes = _shapes_of(final, chosen)
    around = _callers(computations[computations["stage"] == stage], final)
    texts: dict[str, list[Any]] = {
        "product": [shape.text if shape else None for shape in shapes],
        "padded": [shape.padded(size).text if shape and size else None for shape in shapes],
        "change": [shape.change(size) if shape and size else None for shape in shapes],
    }
    made = chosen.assign(
        **texts,
        launch=[
            _launch(where, name, around)
            for where, name in zip(chosen["computation"], chosen["instruction"], strict=True)
        ],
        flops_total=chosen["flops"] * chosen["execution_count"],
        mxu_share=[shape.share(size) if shape and size else float("nan") for shape in shapes],
    )
    waste = made["flops_total"].astype("Float64") * (1 / made["mxu_share"].astype("Float64") - 1)
    made = made.assign(wasted_flops=waste.astype("float64"))
    return made.sort_values(["wasted_flops", "flops_total"], ascending=False, kind="stable")


def usable_share(found: pd.DataFrame) -> float | None:
    """Of all products together, weighted by what they take: the part of the matrix units that they can use at best."""
    known = found[found["mxu_share"].notna() & found["flops_total"].notna()]
    flops = known["flops_total"].astype("float64")
    filled = float((flops / known["mxu_share"]).sum())
    return float(flops.sum()) / filled if filled else None


def _shapes_of(final: pd.DataFrame, chosen: pd.DataFrame) -> list[ProductShape | None]:
    wanted = final[final["computation"].isin(chosen["computation"].unique())]
    places = zip(wanted["computation"], wanted["instruction"], strict=True)
    shape_at = dict(zip(places, wanted["shape"], strict=True))
    return [_shape_of(row, shape_at) for row in records(chosen[list(_READ)])]


def _shape_of(row: dict[str, Any], shape_at: dict[tuple[str, str], str]) -> ProductShape | None:
    operands = [_dims(shape_at, row["computation"], operand) for operand in row["operands"][:2]]
    result = parse_shape(row["shape"])
    if len(operands) < 2 or result.is_tuple or None in operands:
        return None
    lhs, rhs = operands
    assert lhs is not None
    assert rhs is not None
    return product_shape(row["opcode"], row["attributes"] or "", result.dims, lhs, rhs)


def _dims(shape_at: dict[tuple[str, str], str], computation: str, operand: str) -> tuple[int, ...] | None:
    name, _, element = operand.partition("#")
    text = shape_at.get((computation, name))
    if text is None:
        return None
    shape = parse_shape(text)
    if element:
        shape = shape.elements[int(element)]
    return None if shape.is_tuple else shape.dims


def _callers(computations: pd.DataFrame, final: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """For each computation of a fusion the fusion, and the computation that it stands in."""
    stands_in = dict(zip(final["instruction"], final["computation"], strict=True))
    fused = computations[computations["role"] == "fusion"]
    return {
        str(name): (str(stands_in[caller]), str(caller))
        for name, caller in zip(fused["computation"], fused["caller"], strict=True)
        if caller in stands_in
    }


def _launch(computation: str, instruction: str, around: dict[str, tuple[str, str]]) -> str:
    while computation in around:
        computation, instruction = around[computation]
    return instruction
