"""Every view builds from any tables, every drawer takes what it builds, and the text stays as it was looked at."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
from pathlib import Path

import pytest

import hlotrace.load
from hlotrace.bundle import Target
from hlotrace.errors import HlotraceError
from hlotrace.render import html, markdown, records, text
from hlotrace.render.redact import redacted
from hlotrace.tables import ALL_TABLES
from hlotrace.views.blocks import Block, Figures, Grid, Heading, Note, StackedArea
from hlotrace.views.registry import VIEWS, view_named

GOLDEN = Path(__file__).parent / "golden" / "views"
REAL = Path(__file__).parent / "data"
CASES = ("layer_rows", "hostile_rows", "cpu_rows", "unscheduled_rows", "many_rows", "traced_rows")
OF_TRACES = ("profile", "steps", "collectives")
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
    if view.name in ("modules", "problems", *OF_TRACES):
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
    rows = "traced_rows" if view.name in OF_TRACES else "layer_rows"
    drawn = text.draw(view.build(tables_of(synthetic, rows, manifest=synthetic.manifest())), width=110)
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
    assert "7 small modules (such as eager primitives and helpers), 21 instructions in all." in texts(folded)
    assert "4 more compilations were counted and not kept: jit_convert." in texts(folded)
    assert len(of_kind(view_named("modules").build(tables, top=0), Grid)[0].frame) == 9


def test_small_programs_of_the_users_own_are_not_called_eager_ones(synthetic):
    rows = [{**row, "function": "f"} for row in synthetic.many_rows()["modules"]]
    folded = texts(view_named("modules").build(synthetic.SyntheticTables({"modules": rows})))
    assert "7 small modules, 21 instructions in all." in folded


def test_the_list_of_modules_says_what_its_flops_leave_out(synthetic):
    rows = [{**row, "launches_without_flops": 1} for row in synthetic.layer_rows()["modules"]]
    drawn = texts(view_named("modules").build(synthetic.SyntheticTables({"modules": rows})))
    assert "FLOPs are without 1 launch whose operations are not known." in drawn


def test_a_program_of_which_nothing_was_read_does_not_fold(synthetic):
    rows = [*synthetic.many_rows()["modules"], {"module": "jit_lost", "name": "jit_lost", "function": "f"}]
    shown = of_kind(view_named("modules").build(synthetic.SyntheticTables({"modules": rows})), Grid)[0]
    assert "jit_lost" in set(shown.frame["module"])


def changed(synthetic, **values):
    rows = synthetic.layer_rows()
    return synthetic.SyntheticTables({**rows, "modules": [{**rows["modules"][0], **values}]})


@pytest.mark.parametrize(
    ("buffers", "ranges", "origins"),
    [
        ("compiler", "compiler", ("compiler", "compiler")),
        ("compiler", "model", ("compiler", "predicted")),
        ("incomplete", "compiler", ("predicted", "predicted")),
        ("model", "model", ("predicted", "predicted")),
    ],
)
@pytest.mark.parametrize("view", ["summary", "memory"])
def test_memory_is_the_compilers_only_where_it_said_so(synthetic, view, buffers, ranges, origins):
    blocks = view_named(view).build(changed(synthetic, buffers_from=buffers, live_ranges_from=ranges))
    figures = {figure.label: figure for block in of_kind(blocks, Figures) for figure in block.items}
    alive = next(figure for label, figure in figures.items() if "alive" in label)
    assert (figures["HBM needed"].origin, alive.origin) == origins
    assert ("incomplete" in figures["HBM needed"].detail) == (buffers == "incomplete")
    sizes = [column for grid in of_kind(blocks, Grid) for column in grid.columns if column.label == "size"]
    assert {column.origin for column in sizes} == {origins[0]}
    assert {area.origin for area in of_kind(blocks, StackedArea)} <= {origins[1]}


def test_temporaries_and_preallocated_blocks_are_one_role(synthetic):
    rows = synthetic.layer_rows()
    rows["buffers"] = [
        {**row, "category": "preallocated"} if row["category"] == "temp" and number % 2 else row
        for number, row in enumerate(rows["buffers"])
    ]
    blocks = view_named("memory").build(synthetic.SyntheticTables(rows))
    roles = next(grid for grid in of_kind(blocks, Grid) if "role" in {column.name for column in grid.columns})
    assert roles.frame["role"].is_unique
    assert "preallocated" not in texts(blocks)


def test_the_compilers_own_peak_stands_beside_ours(synthetic):
    manifest = synthetic.manifest()
    program = dataclasses.replace(manifest.programs[0], memory_analysis={"peak_memory_in_bytes": 3 << 30})
    tables = tables_of(synthetic, "layer_rows", manifest=dataclasses.replace(manifest, programs=[program]))
    assert "the compiler's peak  3.00 GiB" in texts(view_named("memory").build(tables))


@pytest.mark.parametrize(
    ("used", "words"), [(1, "on one of the 4 devices of v5e:2x2"), (2, "on 2 of the 4"), (4, None)]
)
def test_a_program_on_a_part_of_its_topology_says_so(synthetic, used, words):
    manifest = synthetic.manifest(targets=[Target("v5e", "v5e:2x2", "tpu", "TPU v5 lite", 4)])
    program = dataclasses.replace(manifest.programs[0], device_count=used)
    tables = tables_of(synthetic, "layer_rows", manifest=dataclasses.replace(manifest, programs=[program]))
    first = " ".join(texts(view_named("summary").build(tables)).splitlines()[:3])
    assert (words in first) if words else ("of the 4 devices" not in first)


def test_without_cycles_in_after_codegen_the_file_is_not_called_missing(synthetic):
    rows = synthetic.layer_rows()
    rows["instructions"] = [{**row, "estimated_cycles": None} for row in rows["instructions"]]
    rows["modules"] = [{**rows["modules"][0], "estimated_cycles": None}]
    rows["predictions"] = []
    drawn = texts(view_named("summary").build(synthetic.SyntheticTables(rows)))
    assert "No time: the compiler gave no cycles for any launch (custom-call x1" in drawn
    assert "not among the files" not in drawn


def test_the_headline_of_ops_is_the_same_whatever_they_are_counted_by(synthetic):
    tables = tables_of(synthetic, "layer_rows")
    heads = [of_kind(view_named("ops").build(tables, by=by), Figures)[0] for by in ("category", "scope", "source")]
    assert heads[0] == heads[1] == heads[2]
    assert "of 9 instructions, 2 parameters inside" in heads[0].items[0].detail


def test_launches_saved_stand_beside_the_launches_there_were_and_are(synthetic):
    figures = of_kind(view_named("fusions").build(tables_of(synthetic, "layer_rows")), Figures)[0].items
    launches, saved = figures[1:3]
    assert (launches.label, launches.value, launches.detail) == ("launches", 3, "4 before optimisation")
    assert saved.label == "launches saved, all trips"


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


def test_the_ops_of_a_line_are_those_with_the_line_anywhere_in_their_stacks(synthetic):
    tables = tables_of(synthetic, "layer_rows")
    blocks = view_named("ops").build(tables, source="train.py:39")
    grid = of_kind(blocks, Grid)[0]
    assert grid.total_rows == 8
    assert grid.frame["instruction"].tolist()[0] == "fusion.1"
    assert set(grid.frame.loc[grid.frame["computation"] == "f1", "fusion"]) == {"fusion.1"}
    figures = {figure.label: figure for figure in of_kind(blocks, Figures)[0].items}
    assert (figures["ops"].value, figures["launches"].value) == (8, 3)
    assert (figures["cycles"].value, figures["cycles"].detail) == (1_500_000, "100.0 % of the module")
    one = view_named("ops").build(tables, source="layer.py:13", top=1)
    assert of_kind(one, Grid)[0].frame["instruction"].tolist() == ["add.1"]
    with pytest.raises(HlotraceError, match=r"no op comes from line 11 of layer\.py.*12 \(7 ops\), 13 \(1 ops\)"):
        view_named("ops").build(tables, source="layer.py:11")


def test_counts_by_source_name_the_command_for_one_line(synthetic):
    drawn = texts(view_named("ops").build(tables_of(synthetic, "layer_rows"), by="source"))
    assert "hlotrace show bundle ops --source layer.py:12" in drawn


def records_of(synthetic, view: str, case: str = "layer_rows", **parameters) -> list[dict]:
    return json.loads(records.to_json(view_named(view).build(tables_of(synthetic, case), **parameters)))


def test_the_records_of_a_view_are_rows_of_the_table_it_is_about(synthetic):
    for view, parameters, table, rows in (
        ("summary", {}, "modules", 1),
        ("memory", {}, "buffers", 4),
        ("memory", {"at": 0, "top": 0}, "buffers", 1),
        ("memory", {"memory_space": "vmem"}, "buffers", 1),
        ("fusions", {}, "fusions", 1),
        ("modules", {}, "modules", 1),
        ("ops", {"source": "train.py:39"}, "instructions", 8),
    ):
        found = records_of(synthetic, view, **parameters)
        declared = set(ALL_TABLES[table].column_names)
        assert len(found) == rows, view
        assert all(len(declared & set(record)) >= len(declared) // 2 for record in found), view
        assert all("source_detail" not in record for record in found), view
        lines = records.to_csv(view_named(view).build(tables_of(synthetic, "layer_rows"), **parameters))
        assert next(csv.reader(io.StringIO(lines))) == list(found[0]), view


def test_the_buffers_alive_are_the_records_of_memory_and_nothing_else(synthetic):
    found = records_of(synthetic, "memory", top=0)
    assert {record["value"] for record in found} == {"x{}", "fusion.1{}", "bitcast.9{}", "multiply.1{}"}
    assert set(ALL_TABLES["buffers"].column_names) <= set(found[0])
    unscheduled = records_of(synthetic, "memory", "unscheduled_rows", top=0)
    assert all(set(ALL_TABLES["buffers"].column_names) <= set(record) for record in unscheduled)


def test_the_summarys_record_is_the_modules_row_with_all_its_columns(synthetic):
    (record,) = records_of(synthetic, "summary")
    assert set(record) == set(ALL_TABLES["modules"].column_names)
    assert record["module"] == "jit_layer"


def test_what_a_value_has_from_what_produced_it_is_marked(synthetic):
    rows = synthetic.layer_rows()
    rows["buffers"][1]["inherited_from"] = "multiply.1"
    rows["buffers"][0] |= {"user_file": None, "op_name": "params['w']", "inherited_from": "x"}
    grid = of_kind(view_named("memory").build(synthetic.SyntheticTables(rows)), Grid)[-1]
    shown = dict(zip(grid.frame["value"], grid.frame["source"], strict=True))
    assert shown["fusion.1{}"] == "/home/planted/model/layer.py:12 *"
    assert shown["x{}"] == "params['w'] *"
    assert shown["multiply.1{}"] == "/home/planted/model/layer.py:12"
    assert "inherited from multiply.1" in html.draw(grid)
    for view in ("memory", "summary"):
        drawn = texts(view_named(view).build(synthetic.SyntheticTables(rows)))
        assert "* The source of what produced the value" in drawn
    assert "* The source" not in texts(view_named("memory").build(tables_of(synthetic, "layer_rows")))


def test_a_report_names_the_innermost_frame_where_one_looks_closer(synthetic):
    rows = synthetic.layer_rows()
    for row in rows["instructions"]:
        row |= {"source_file": "/venv/lib/python3.11/site-packages/flax/linear.py", "source_line": 422}
    blocks = view_named("ops").build(synthetic.SyntheticTables(rows))
    drawn = "".join(html.draw(block) for block in redacted(blocks))
    assert "innermost frame: /venv/lib/python3.11/site-packages/flax/linear.py:422" in drawn
    assert "linear.py" not in texts(blocks)


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
