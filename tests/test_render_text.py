"""Blocks on a terminal."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import hlotrace
from hlotrace import sample_dumps
from hlotrace.render._text_charts import bar, meter
from hlotrace.render._text_grid import _fit, _prepared, keep_end
from hlotrace.render.cells import columns_of
from hlotrace.render.text import MARKS, draw
from hlotrace.views.blocks import (
    Bars,
    Block,
    Figure,
    Figures,
    Graph,
    Grid,
    Heading,
    Note,
    ShownColumn,
    StackedArea,
    Treemap,
)
from hlotrace.views.registry import VIEWS

MIB = 2**20


def grid(**columns: object) -> Grid:
    """A grid of the columns given as (values, ShownColumn arguments)."""
    frame = pd.DataFrame({name: values for name, (values, _) in columns.items()})  # type: ignore[misc]
    shown = tuple(ShownColumn(name, name, **kwargs) for name, (_, kwargs) in columns.items())  # type: ignore[misc]
    return Grid("Ops", frame, shown, len(frame))


def cells(text: str, name: str) -> list[str]:
    """What stands in the lines that begin with `name`, split at gaps."""
    line = next(line for line in text.splitlines() if line.startswith(name))
    return re.split(r"\s{2,}", line.strip())


SIZES = grid(
    op=(["fusion.1", "copy.2", "add.3"], {"emphasis": "code"}),
    size=(pd.array([3 * MIB, 100, None], dtype="Int64"), {"unit": "bytes"}),
)


def test_a_column_has_one_unit_in_its_heading_and_none_in_its_cells() -> None:
    text = draw([SIZES])
    assert "size (MiB)" in text
    assert cells(text, "fusion.1") == ["fusion.1", "3.00"]
    assert cells(text, "copy.2") == ["copy.2", "<0.01"]


def test_a_missing_number_is_a_dash() -> None:
    assert cells(draw([SIZES]), "add.3") == ["add.3", "–"]


def test_numbers_stand_right_aligned() -> None:
    lines = [line for line in draw([SIZES]).splitlines() if line.startswith(("fusion.1", "copy.2", "add.3"))]
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize(("origin", "mark"), [("measured", "●"), ("compiler", "◐"), ("predicted", "○")])
def test_each_number_says_where_it_is_from_and_the_legend_explains_the_mark(origin: str, mark: str) -> None:
    text = draw([grid(size=([1, 2], {"unit": "bytes", "origin": origin}))])
    assert f"size (B)\N{NO-BREAK SPACE}{mark}" in text
    assert text.splitlines()[-1].startswith(mark)


def test_the_legend_names_only_the_origins_that_occur() -> None:
    assert "●" not in draw([SIZES])


def test_a_long_name_keeps_its_end() -> None:
    path = "jit(step)/jit(main)/layers/transformer/attention/mlp/dot_general"
    table = grid(scope=([path], {"emphasis": "path"}), size=([1], {"unit": "bytes"}))
    assert "…/mlp/dot_general " in draw([table], width=32)


def test_a_sentence_wraps_instead_of_being_cut() -> None:
    words = "the trip count of the loop is not known so its work counts once"
    text = draw([grid(what=([words], {}), place=(["while.3"], {"emphasis": "code"}))], width=40)
    assert " ".join(text.replace("while.3", "").split()).endswith(words)


def test_columns_without_room_follow_under_each_row() -> None:
    many = grid(**{f"column{i}": ([10**8 + i], {"unit": "bytes"}) for i in range(9)})
    text = draw([many], width=40)
    assert "column8 (MiB) 95.37" in " ".join(text.split())
    assert all(len(line) <= 40 for line in text.splitlines())


def test_a_cut_grid_says_how_many_rows_there_are() -> None:
    cut = Grid("Ops", SIZES.frame, SIZES.columns, 1234)
    assert "Ops  3 of 1,234" in draw([cut])


def test_an_empty_grid_is_drawn_with_its_headings() -> None:
    assert "op" in draw([grid(op=([], {"emphasis": "code"}), size=([], {"unit": "bytes"}))])


def test_a_figure_shows_its_part_of_the_capacity() -> None:
    text = draw([Figures((Figure("HBM", 4 * 2**30, "bytes", capacity=16 * 2**30),))])
    assert "4.00 GiB" in text
    assert "of 16.00 GiB" in text
    assert "25.0 %" in text


def test_a_figure_that_is_text_needs_no_unit() -> None:
    assert "error  none" in draw([Figures((Figure("error", "none"),))])


def test_a_command_stays_whole_however_narrow_the_terminal() -> None:
    command = "hlotrace show some/long/directory/of/a/bundle memory --module jit_train_step"
    assert f"$ {command}\n" in draw([Note("More:", command=command)], width=40)


@pytest.mark.parametrize(("kind", "sign"), [("finding", "▸"), ("warning", "!"), ("missing", "–")])
def test_notes_carry_a_sign_of_their_kind(kind: str, sign: str) -> None:
    assert draw([Note("text", kind)]).startswith(f"{sign} text")  # type: ignore[arg-type]


def test_the_area_shows_its_peak_and_what_it_is_made_of() -> None:
    area = StackedArea(
        "HBM",
        x=(0, 1, 2, 3),
        x_label="position",
        series={"argument": (MIB, MIB, MIB, MIB), "temp": (0, 0, 3 * MIB, 0)},
        unit="bytes",
        capacity=16 * MIB,
        peak_x=2,
        hover=("a", "b", "fusion.7", "c"),
    )
    text = draw([area])
    assert "Peak at 2 fusion.7: 4.00 MiB of 16.00 MiB (temp 3.00 MiB, argument 1.00 MiB)" in text
    assert "▲" in text


def test_a_peak_one_position_wide_survives_a_narrow_terminal() -> None:
    values = [1.0] * 5000
    values[4321] = 100.0
    text = draw([StackedArea("HBM", tuple(range(5000)), "position", {"temp": tuple(values)}, "bytes")], width=60)
    assert "█" in text.splitlines()[1]


def test_an_area_without_positions_says_so() -> None:
    assert "nothing to show" in draw([StackedArea("HBM", (), "position", {}, "bytes")])


def test_bars_share_one_scale() -> None:
    text = draw([Bars("Ops", ("add", "mul"), {"before": (10.0, 5.0), "after": (5.0, 0.0)}, "count")])
    add, mul = (line for line in text.splitlines() if line.startswith(("add", "mul")))
    assert add.count("█") == 36
    assert mul.count("█") == 12


def test_a_treemap_lists_groups_by_size_and_folds_the_rest() -> None:
    labels = tuple(f"f{i}" for i in range(20))
    text = draw([Treemap("Bytes", labels, ("loop",) * 10 + ("matmul",) * 10, tuple(map(float, range(20))), "count")])
    assert text.index("matmul") < text.index("loop")
    assert "6 more" in text


def test_a_graph_says_which_edges_go_through_memory() -> None:
    graph = Graph(
        "Members",
        {"p": ("param_0", "input"), "m": ("mul", "member")},
        (("p", "m", "4 MiB", True), ("m", "m", "", False)),
    )
    text = draw([graph])
    assert "← param_0  4 MiB  through memory" in text
    assert "kept inside" in text


ALL = [
    Heading("jit_step", "What is it?"),
    SIZES,
    Figures((Figure("HBM", MIB, "bytes", capacity=2 * MIB),)),
    Note("note", "warning", "hlotrace show x"),
]


def test_piped_text_has_no_escape_codes_and_no_trailing_blanks() -> None:
    text = draw(ALL)
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_colour_adds_nothing_but_escape_codes() -> None:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", draw(ALL, color=True))
    assert [line.rstrip() for line in plain.splitlines()] == draw(ALL).splitlines()


def test_text_from_dumps_is_never_read_as_markup() -> None:
    assert "[bold]x[/bold]" in draw([Note("[bold]x[/bold]"), grid(op=(["[red]y"], {}))])
    assert "[red]y" in draw([grid(op=(["[red]y"], {}))])


@settings(max_examples=40, deadline=None)
@given(st.integers(20, 200), st.lists(st.text("abc/.é", max_size=80), min_size=1, max_size=5))
def test_no_line_of_a_grid_is_wider_than_the_terminal(width: int, names: list[str]) -> None:
    table = grid(
        path=(names, {"emphasis": "path"}),
        code=(names, {"emphasis": "code"}),
        size=([10**9] * len(names), {"unit": "bytes", "emphasis": "bar"}),
    )
    blocks: list[Block] = [Grid(table.title, table.frame, table.columns[:3], table.total_rows)]
    assert max(map(cell_len, draw(blocks, width=width).splitlines()[:-1])) <= width


@given(st.text("ab/", min_size=1, max_size=60), st.integers(2, 60))
def test_keeping_the_end_keeps_the_end(path: str, width: int) -> None:
    kept = keep_end(path, width)
    assert len(kept) <= width
    assert path.endswith(kept.removeprefix("…"))


@given(st.floats(0, 1), st.integers(1, 40))
def test_bars_fill_their_width_by_the_share(share: float, width: int) -> None:
    assert cell_len(bar(share, width)) == width
    assert abs(bar(share, width).count("█") - share * width) <= 1
    assert len(meter(share, width)) == width


def sample_grids() -> list[Grid]:
    """Every table of every view of the samples."""
    opened = [hlotrace.load(sample_dumps.path_of(name)) for name in sample_dumps.names()]
    return [block for tables in opened for view in VIEWS for block in view.build(tables) if isinstance(block, Grid)]


def letters_shown(table: Grid, width: int) -> dict[str, int]:
    """How much of each column's longest text is to be seen, in the row or under it."""
    shown = [_prepared(column, MARKS) for column in columns_of(table)]
    for column in _fit(shown, width):
        assert column.width >= column.least or column.is_name or column is shown[0]
    return {column.source.shown.name: column.width if column.is_name and not column.wraps else 0 for column in shown}


def test_a_wider_terminal_never_shows_less_and_always_what_the_rows_are_compared_by() -> None:
    for table in sample_grids():
        compared = {column.name for column in table.columns if column.emphasis == "bar"}
        before: dict[str, int] = {}
        for width in range(60, 201):
            now = letters_shown(table, width)
            assert all(now[name] >= letters for name, letters in before.items()), (table.title, width)
            kept = _fit([_prepared(column, MARKS) for column in columns_of(table)], width)
            assert compared <= {column.source.shown.name for column in kept}, (table.title, width)
            before = now
