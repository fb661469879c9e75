"""A roofline in every output: on logarithmic axes, with what is untrusted escaped."""

from __future__ import annotations

import re

import pytest

from hlotrace.app import figures
from hlotrace.render import html, markdown, text
from hlotrace.render.svg_scatter import Axis, power_of_ten, scatter
from hlotrace.views.blocks import Scatter
from hlotrace.views.registry import view_named

ROOFS = {"HBM": ((1.0, 1e9), (100.0, 1e11)), "bf16": ((100.0, 1e11), (1000.0, 1e11))}


def chart(labels=("a", "b"), x=(1.0, 1000.0), y=(1e8, 1e10)) -> Scatter:
    return Scatter("Roofline", labels, ("matmul",) * len(labels), x, y, "FLOPs a byte", "FLOP/s", ROOFS, "predicted")


def test_axes_are_whole_decades():
    axis = Axis.over([2.0, 900.0], 0.0, 300.0)
    assert axis.ticks() == [1.0, 10.0, 100.0, 1000.0]
    assert axis.place(10.0) == pytest.approx(100.0)
    assert [power_of_ten(value) for value in (0.01, 100.0, 1e12)] == ["0.01", "100", "1e12"]


def test_a_point_on_a_roof_is_drawn_on_its_line():
    drawn = scatter(chart(("on",), (100.0,), (1e11,)))
    (circle,) = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawn)
    assert f'x2="{circle[0]}"' in drawn
    assert f'y2="{circle[1]}"' in drawn


def test_names_cannot_leave_their_place():
    block = chart(("<script>alert(1)</script>", "b"))
    assert "<script>" not in html.draw(block)
    shown = figures.scatter(block)["data"][-1]
    assert "<script>" not in str(shown["hovertext"])
    assert markdown.render([block]).count("`<script>alert(1)</script>`") == 1


def test_without_points_or_roofs_there_is_an_empty_picture():
    assert scatter(Scatter("Roofline", (), (), (), (), "x", "y")).startswith("<svg")
    assert text.draw([Scatter("Roofline", (), (), (), (), "x", "y")])


def test_the_roofline_of_a_chip_meets_at_its_ridge(synthetic):
    blocks = view_named("roofline").build(synthetic.SyntheticTables(synthetic.layer_rows()))
    (found,) = (block for block in blocks if isinstance(block, Scatter))
    assert found.labels == ("fusion.1", "multiply.1")
    (_, slope_end), (flat_start, flat_end) = found.roofs.values()
    assert slope_end == flat_start == (pytest.approx(197e12 / 819e9), 197e12)
    assert flat_end[1] == 197e12
    assert found.y[0] == pytest.approx(1_000_001_024 / 800_000 * 1e9)
