"""Every view builds from any tables, every drawer takes what it builds, and the text stays as it was looked at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hlotrace.load
from hlotrace.errors import HlotraceError
from hlotrace.render import html, markdown, records, text
from hlotrace.views.blocks import Block, Figures, Grid, Heading, Note, StackedArea
from hlotrace.views.registry import VIEWS, view_named

GOLDEN = Path(__file__).parent / "golden" / "views"
REAL = Path(__file__).parent / "data"
CASES = ("layer_rows", "hostile_rows", "cpu_rows", "unscheduled_rows", "many_rows")
SUMMARY_LINES = 40


def tables_of(synthetic, case, **options):
    return synthetic.SyntheticTables(getattr(synthetic, case)(), **options)


def of_kind(blocks: list[Block], kind: type) -> list:
    return [block for block in blocks if isinstance(block, kind)]


def texts(blocks: list[Block]) -> str:
    return text.draw(blocks, width=120)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_builds_and_every_drawer_takes_its_blocks(synthetic, view, case):
    blocks = view.build(tables_of(synthetic, case))
    assert isinstance(blocks[0], Heading)
    assert blocks[0].question == view.question
    assert text.draw(blocks, width=80).strip()
    assert markdown.render(blocks).strip()
    assert "".join(html.draw(block) for block in blocks)
    assert records.to_json(blocks)
    for grid in of_kind(blocks, Grid):
        assert {column.name for column in grid.columns} <= set(grid.frame.columns)
        assert grid.total_rows >= len(grid.frame)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_path_with_no_module_is_one_clear_line_or_an_empty_list(synthetic, view):
    tables = synthetic.SyntheticTables({})
    if view.name in ("modules", "problems"):
        assert texts(view.build(tables))
        return
    with pytest.raises(HlotraceError, match="there is no module"):
        view.build(tables)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_module_of_which_nothing_is_known_still_has_every_view(synthetic, view):
    tables = synthetic.SyntheticTables({"modules": [{"module": "m", "name": "m"}]})
    drawn = texts(view.build(tables))
    assert "nan" not in drawn.lower().split()
    assert "<NA>" not in drawn
    assert "None" not in drawn


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("case", [case for case in CASES if case != "hostile_rows"])
def test_the_summary_keeps_to_forty_lines(synthetic, case, width):
    drawn = text.draw(view_named("summary").build(tables_of(synthetic, case)), width=width)
    assert drawn.count("\n") <= SUMMARY_LINES


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_the_text_of_each_view_is_as_it_was_looked_at(synthetic, view):
    drawn = text.draw(view.build(tables_of(synthetic, "layer_rows", manifest=synthetic.manifest())), width=110)
    path = GOLDEN / f"{view.name}.txt"
    if os.environ.get("HLOTRACE_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drawn, encoding="utf-8")
    assert drawn == path.read_text(encoding="utf-8"), "look at it; HLOTRACE_UPDATE_GOLDEN=1 keeps the new text"


@pytest.mark.parametrize("directory", sorted(path.name for path in REAL.glob("scan-*")))
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_builds_on_what_a_compiler_wrote(view, directory, tmp_path, monkeypatch):
    monkeypatch.setenv("HLOTRACE_CACHE_DIR", str(tmp_path))
    blocks = view.build(hlotrace.load.load(REAL / directory))
    assert text.draw(blocks, width=100)
    assert markdown.render(blocks)
    assert all(isinstance(html.draw(block), str) for block in blocks)


def test_the_last_block_counts_the_problems(synthetic):
    rows = synthetic.layer_rows()
    rows["problems"] = [{"file": "a.txt", "place": "1:2", "what": "w", "consequence": "c"}]
    tables = synthetic.SyntheticTables(rows)
    for view in VIEWS[:-1]:
        last = view.build(tables)[-1]
        assert isinstance(last, Note)
        assert last.kind == "warning"
        assert last.command == "hlotrace show bundle problems"
    assert not any("problem" in note.text for note in of_kind(VIEWS[0].build(tables_of(synthetic, "layer_rows")), Note))


def test_the_largest_module_is_the_default_and_the_accelerator_goes_first(synthetic):
    tables = tables_of(synthetic, "many_rows")
    blocks = view_named("ops").build(tables)
    assert blocks[0].text == "jit_layer on v5e:2x2"
    assert "largest of 9 modules" in blocks[1].text
    other = view_named("ops").build(tables, module="jit_layer.cpu")
    assert other[0].text == "jit_layer (jit_layer.cpu) on cpu"
    assert "--module jit_layer.cpu" in texts(other)


def test_eager_modules_fold_into_one_line_that_unfolds(synthetic):
    tables = tables_of(synthetic, "many_rows")
    folded = view_named("modules").build(tables)
    assert len(of_kind(folded, Grid)[0].frame) == 2
    assert "7 small modules (eager primitives and helpers), 21 instructions in all." in texts(folded)
    assert "4 more compilations were counted and not kept: jit_convert." in texts(folded)
    assert len(of_kind(view_named("modules").build(tables, top=0), Grid)[0].frame) == 9


def test_a_cpu_module_says_that_there_are_no_cycles_instead_of_zeros(synthetic):
    tables = tables_of(synthetic, "cpu_rows")
    summary = view_named("summary").build(tables)
    missing = [note for note in of_kind(summary, Note) if note.kind == "missing"]
    assert [note.command for note in missing] == ["hlotrace capture MODEL.py --target v5e"]
    assert "the compiler for CPU gives no cycles" in missing[0].text
    for view in ("summary", "ops", "fusions"):
        for grid in of_kind(view_named(view).build(tables), Grid):
            assert "cycles_total" not in {column.name for column in grid.columns}
    assert "by FLOPs: the compiler gave no cycles" in texts(summary)


def test_what_does_not_fit_says_how_much_is_needed_how_much_there_is_and_what_holds_it(synthetic):
    gib = 1 << 30
    failure = synthetic.Failure("out_of_memory", "…", 22 * gib, 16 * gib, "hbm")
    rows = synthetic.layer_rows()
    rows["modules"] = [synthetic.module_row(error="RESOURCE_EXHAUSTED", hbm_needed_bytes=22 * gib)]
    tables = synthetic.SyntheticTables(rows, manifest=synthetic.manifest(failure))
    warning = next(note for note in of_kind(view_named("summary").build(tables), Note) if note.kind == "warning")
    assert warning.text.startswith("Does not fit: it needs 22.00 GiB of HBM, there are 16.00 GiB.")
    assert warning.text.endswith("Held by temporaries 40.00 MiB, arguments 24.00 MiB, outputs 8.00 MiB.")


def test_every_number_has_an_origin_and_estimates_say_how_far_they_reach(synthetic):
    summary = view_named("summary").build(tables_of(synthetic, "layer_rows"))
    figures = {figure.label: figure for figure in of_kind(summary, Figures)[0].items}
    assert figures["predicted time of one run"].origin == "predicted"
    assert figures["predicted time of one run"].value == 820_000
    assert "98% of it the compiler's estimate" in figures["predicted time of one run"].detail
    assert figures["roofline floor"].origin == "predicted"
    assert figures["roofline floor"].value == 3 * 15_364
    assert figures["compile time"].origin == "measured"


def test_memory_at_a_position_lists_what_is_alive_there(synthetic):
    tables = tables_of(synthetic, "layer_rows")
    blocks = view_named("memory").build(tables, at=3)
    alive = of_kind(blocks, Grid)[-1]
    assert alive.title == "Alive at position 3"
    assert list(alive.frame["instruction"]) == ["x", "custom-call.1", "multiply.1"]
    assert of_kind(blocks, StackedArea)[0].peak_x == 3
    with pytest.raises(HlotraceError, match=r"Positions go from 0 to 4\."):
        view_named("memory").build(tables, at=99)


def test_a_memory_space_goes_by_name_or_number(synthetic):
    tables = tables_of(synthetic, "layer_rows")
    for word in ("vmem", "VMEM", "1", "S(1)"):
        blocks = view_named("memory").build(tables, memory_space=word)
        assert list(of_kind(blocks, Grid)[-1].frame["instruction"]) == ["copy.1"]
    with pytest.raises(HlotraceError, match=r"Known: .*VMEM \(1\)"):
        view_named("memory").build(tables, memory_space="vmmm")


def test_an_unscheduled_module_says_that_it_has_no_timeline(synthetic):
    drawn = texts(view_named("memory").build(tables_of(synthetic, "unscheduled_rows")))
    assert "No timeline: the final program is not scheduled" in drawn


def test_parameters_that_a_view_does_not_know_are_told_with_the_known_ones(synthetic):
    tables = tables_of(synthetic, "layer_rows")
    with pytest.raises(HlotraceError, match="no parameter of the view ops is named 'bye'"):
        view_named("ops").build(tables, bye="opcode")
    with pytest.raises(HlotraceError, match="category"):
        view_named("ops").build(tables, by="categori")
    with pytest.raises(HlotraceError, match=r"--top: expected a whole number, found 'many'\."):
        view_named("ops").build(tables, top="many")
    with pytest.raises(HlotraceError, match=r"Known: fusions"):
        view_named("fusion")
    with pytest.raises(HlotraceError, match=r"no fusion is named 'fusion\.2'.*fusion\.1"):
        view_named("fusions").build(tables, fusion="fusion.2")


def test_the_roofline_takes_the_flops_of_the_model(synthetic):
    tables = tables_of(synthetic, "layer_rows")
    blocks = view_named("roofline").build(tables, model_flops=197_000_000)
    mfu = next(item for item in of_kind(blocks, Figures)[0].items if item.label == "MFU")
    assert mfu.value == pytest.approx(1_000 / 820_000)
    with pytest.raises(HlotraceError, match="above 0"):
        view_named("roofline").build(tables, model_flops=0)
