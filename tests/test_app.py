"""The app without a browser: state in the URL, one selection on every page, what callbacks answer, hostile names."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlotrace
from hlotrace.analyses.fusions import members
from hlotrace.analyses.modules import records
from hlotrace.app import (
    create_app,
    figures,
    frame,
    ops_list,
    page_fusions,
    page_memory,
    page_ops,
    page_overview,
    rows,
)
from hlotrace.app.chosen import choose, matching
from hlotrace.app.data import Bundles
from hlotrace.app.factory import all_pages, show_hits, show_page, show_selection
from hlotrace.app.grids import unique
from hlotrace.app.server import listening_socket
from hlotrace.app.state import AREA_CHOICES, BY_CHOICES, SELECTION_KINDS, STAGE_CHOICES, Selection, State
from hlotrace.app.words import meaning
from hlotrace.errors import HlotraceError
from hlotrace.sample_dumps import path_of
from hlotrace.views.blocks import StackedArea
from hlotrace.views.registry import VIEWS

REAL = Path(__file__).parent / "data"
ASSETS = Path(__file__).parent.parent / "app" / "assets"
CASES = ("layer_rows", "hostile_rows", "cpu_rows", "unscheduled_rows", "many_rows", "traced_rows")
OF_TRACES = ("profile", "steps", "collectives")


def opened(synthetic, case="layer_rows"):
    return Bundles({"bundle": synthetic.SyntheticTables(getattr(synthetic, case)())})


@pytest.fixture
def layer(synthetic):
    return opened(synthetic).module(None, None)


def as_json(component) -> str:
    from dash._utils import to_json

    return to_json(component)


def chosen_by(module, text):
    return choose(module, Selection.parse(text))


# ---- the state in the URL ----

names = st.text(min_size=1).filter(lambda text: text.isprintable())
numbers = st.none() | st.integers(0, 10**17)
states = st.builds(
    State,
    page=st.sampled_from(["overview", "ops", "memory", "a page / that ? is & not"]),
    bundle=st.none() | names,
    module=st.none() | names,
    select=st.none() | st.builds(Selection, st.sampled_from(SELECTION_KINDS), names),
    space=numbers,
    at=numbers,
    by=st.none() | st.sampled_from(BY_CHOICES),
    stage=st.none() | st.sampled_from(STAGE_CHOICES),
    area=st.none() | st.sampled_from(AREA_CHOICES),
)


def parameters(state):
    return {name: value if value is None else str(value) for name, value in vars(state).items()}


@given(states)
def test_the_parameters_in_a_url_bring_back_the_state_they_came_from(state):
    assert State.of(parameters(state)) == state


@given(st.dictionaries(st.sampled_from([field.name for field in dataclasses.fields(State)]), st.none() | st.text()))
def test_any_parameters_are_some_state(values):
    state = State.of(values)
    assert State.of(parameters(state)) == state


@pytest.mark.parametrize("text", ["", "op", "op:", ":x", "nothing:x", None])
def test_what_is_no_selection_selects_nothing(text):
    assert Selection.parse(text) is None


def test_a_selection_may_hold_colons():
    assert Selection.parse("source:/a/b.py:12") == Selection("source", "/a/b.py:12")


def test_the_browser_knows_the_same_parameters_as_python():
    stated = re.search(r"const PARAMETERS = (\[.*?\]);", (ASSETS / "frame.js").read_text())
    assert stated is not None
    assert {"page", *json.loads(stated[1])} == {field.name for field in dataclasses.fields(State)}
    stored = re.search(r"const NAMES = (\[.*?\]);", (ASSETS / "routes.js").read_text())
    assert stored is not None
    assert ("view", *json.loads(stored[1])) == frame.STORES


# ---- one selection ----


def test_an_op_inside_a_fusion_leads_to_the_fusion_its_place_and_its_groups(layer):
    chosen = chosen_by(layer, "op:add.1")
    assert chosen.fusions == ("fusion.1",)
    assert chosen.positions == (1,)
    assert {"op:add.1", "op:fusion.1", "opcode:add", "source:/home/planted/model/layer.py:13"} <= set(chosen.ids)
    assert {"scope:jit(layer)", "scope:jit(layer)/mlp"} <= set(chosen.ids)


def test_a_fusion_leads_to_its_buffer_and_where_that_lives(layer):
    chosen = chosen_by(layer, "op:fusion.1")
    assert chosen.values == ("fusion.1{}",)
    assert chosen.spans == ((1, 2),)
    assert "buffer:fusion.1{}" in chosen.ids


def test_a_buffer_leads_to_the_op_that_defines_it(layer):
    chosen = chosen_by(layer, "buffer:multiply.1{}")
    assert chosen.spans == ((2, 3),)
    assert "op:multiply.1" in chosen.ids


def test_a_buffer_whose_op_is_not_there_is_still_found(layer):
    chosen = chosen_by(layer, "buffer:bitcast.9{}")
    assert chosen.found
    assert chosen.count == 0
    assert chosen.spans == ((1, 2),)


def test_a_source_line_leads_to_its_ops_fusions_and_buffers(layer):
    chosen = chosen_by(layer, "source:/home/planted/model/layer.py:12")
    assert {"op:fusion.1", "op:dot.1", "op:multiply.1", "buffer:multiply.1{}"} <= set(chosen.ids)
    assert chosen.fusions == ("fusion.1",)
    assert "op:add.1" not in chosen.ids, "it comes from the next line"


def test_a_source_line_takes_what_came_through_it_by_any_frame_of_a_stack(layer):
    chosen = chosen_by(layer, "source:/home/planted/train.py:39")
    assert chosen.found
    assert chosen.count == len(layer.final)
    assert chosen_by(layer, "source:/home/planted/train.py:40").count == 0


def test_before_optimisation_a_source_line_takes_the_same(layer):
    rows = matching(layer, Selection.parse("source:/home/planted/train.py:39"), "before")
    assert len(rows) == len(layer.before)


def test_a_scope_takes_what_lies_in_it_and_not_what_merely_begins_alike(layer):
    assert chosen_by(layer, "scope:jit(layer)/mlp").count == len(layer.final)
    assert chosen_by(layer, "scope:jit(layer)/ml").count == 0


def test_an_op_before_optimisation_leads_to_those_that_come_from_it(layer):
    chosen = chosen_by(layer, "before:dot.2")
    assert chosen.found
    assert "op:dot.1" in chosen.ids
    assert "op:add.1" not in chosen.ids


def test_what_is_not_there_is_not_found(layer):
    for text in ("op:nothing", "before:nothing", "buffer:nothing", "scope:nothing", "opcode:nothing"):
        assert not chosen_by(layer, text).found


@pytest.mark.parametrize("kind", SELECTION_KINDS)
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_selection_has_a_bar_in_every_case(synthetic, case, kind):
    bundles = opened(synthetic, case)
    module = bundles.module(None, None)
    first = {
        "op": module.final["instruction"],
        "before": module.before["instruction"],
        "buffer": module.buffers["value"],
    }
    names = first.get(kind, pd.Series(["nothing"])).tolist() or ["nothing"]
    if kind in ("opcode", "category", "source"):
        names = module.lookup.groups(kind).names
    chosen, bar = show_selection(bundles, {"page": "ops"}, f"{kind}:{names[0]}")
    assert chosen["select"] == f"{kind}:{names[0]}"
    assert chosen["found"] == (names != ["nothing"])
    assert as_json([chosen, bar])


# ---- pages ----


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("page", list(all_pages()))
def test_every_page_is_made_in_every_case_and_can_be_sent(synthetic, page, case):
    component, chip = show_page(opened(synthetic, case), all_pages(), {"page": page})
    assert len(as_json([component, chip])) > 200


@pytest.fixture(scope="module", params=["scan-cpu", "scan-v5e"])
def real(request, tmp_path_factory):
    """A real dump, opened where its cache does no harm."""
    import shutil

    import hlotrace.load

    copied = tmp_path_factory.mktemp("real") / request.param
    shutil.copytree(REAL / request.param, copied)
    return Bundles({"real": hlotrace.load(copied)})


@pytest.mark.parametrize("page", list(all_pages()))
def test_every_page_is_made_of_a_real_dump(real, page):
    component, chip = show_page(real, all_pages(), {"page": page})
    of_a_tpu = real.module(None, None).row["platform"] == "tpu"
    may_lack = {"overview", "problems", *OF_TRACES} | (set() if of_a_tpu else {"roofline", "mxu"})
    assert "note-missing" not in as_json([component, chip]) or page in may_lack


def test_every_fusion_of_a_real_dump_has_its_graph(real):
    module = real.module(None, None)
    for fusion in module.fusions["fusion"]:
        shown, _ = page_fusions.shown_fusion(module, State(select=Selection("op", fusion)))
        assert shown["fusion"] == fusion
        graph = graph_of(page_fusions.detail(module, shown))
        assert any(node["kind"] == "member" for node in graph["nodes"])


@pytest.mark.parametrize("sample", ["layer-v5e", "step-v5e-2x2"])
def test_the_list_of_members_has_as_many_as_the_fusion_counts(sample):
    module = Bundles({"sample": hlotrace.load(path_of(sample))}).module(None, None)
    for fusion in records(module.fusions):
        inside = members(page_fusions.rows_of_fusion(module, fusion), fusion, module.row["final_stage"])
        assert len(inside.frame) == fusion["member_count"], fusion["fusion"]


def test_every_space_of_a_real_dump_has_a_chart_and_a_list(real):
    module = real.module(None, None)
    assert module.spaces
    for space in module.spaces:
        _, positions, _, _ = page_memory.chart_parts(module, State(space=space))
        assert max(positions["total"]) > 0
        assert positions["total"][positions["x"].index(positions["peak"])] == max(positions["total"])
        assert as_json(page_memory.alive_parts(module, State(space=space)))


def test_every_view_has_a_page():
    titles = {title for title, _ in all_pages().values()}
    assert {view.title for view in VIEWS} - titles == {"Summary"}
    assert "Overview" in titles


def test_a_page_that_is_not_there_says_which_are(synthetic):
    component, _ = show_page(opened(synthetic), all_pages(), {"page": "nonsense"})
    assert "There is no page 'nonsense'" in as_json(component)
    assert "Overview" in as_json(component)


def test_a_module_that_is_not_there_says_which_is_nearest(synthetic):
    component, _ = show_page(opened(synthetic), all_pages(), {"page": "ops", "module": "jit_layr"})
    assert "no module is named 'jit_layr'. Known: jit_layer" in as_json(component)


def test_a_bundle_that_is_not_there_says_which_are(synthetic):
    component, _ = show_page(opened(synthetic), all_pages(), {"page": "ops", "bundle": "other"})
    assert "no bundle is named 'other'. Known: bundle" in as_json(component)


def test_a_module_without_a_schedule_says_what_would_bring_a_timeline(synthetic):
    component, _ = show_page(opened(synthetic, "unscheduled_rows"), all_pages(), {"page": "memory"})
    assert "not scheduled" in as_json(component)
    assert "hlotrace capture" in as_json(component)


def test_a_module_without_fusions_says_so(synthetic):
    component, _ = show_page(opened(synthetic, "unscheduled_rows"), all_pages(), {"page": "fusions"})
    assert "Nothing is fused" in as_json(component)


# ---- ops ----


def request_of(start=0, end=100, **more):
    return {"startRow": start, "endRow": end, **more}


def test_a_group_narrows_the_list_and_an_op_does_not(layer):
    everything = ops_list.rows_response(layer, State(), None, request_of())
    assert everything["rowCount"] == len(layer.final)
    one = ops_list.rows_response(layer, State(select=Selection("opcode", "dot")), None, request_of())
    assert [row["instruction"] for row in one["rowData"]] == ["dot.1"]
    lit = ops_list.rows_response(layer, State(select=Selection("op", "dot.1")), None, request_of())
    assert lit["rowCount"] == len(layer.final)


@pytest.mark.parametrize("stage", STAGE_CHOICES)
@pytest.mark.parametrize("case", CASES)
def test_the_list_begins_with_the_costliest_where_costs_are_known(synthetic, case, stage):
    module = opened(synthetic, case).module(None, None)
    columns = json.loads(as_json(ops_list.list_grid(module, stage)))["props"]["children"][1]["props"]["columnDefs"]
    first = [column["field"] for column in columns if column.get("initialSort") == "desc"]
    assert first in (["cycles_total"], ["flops_total"], [])
    assert first or not ops_list.listed(module, stage)["flops_total"].notna().any()


def test_the_list_sends_the_block_asked_for_and_only_what_it_shows(layer):
    block = ops_list.rows_response(layer, State(), None, request_of(2, 4))
    assert [row["instruction"] for row in block["rowData"]] == layer.final["instruction"].tolist()[2:4]
    shown = {name for column in ops_list.COLUMNS for name in (column.name, column.detail) if name}
    assert set(block["rowData"][0]) == {"id", *shown}


def test_the_list_of_the_program_before_has_selections_of_its_own(layer):
    block = ops_list.rows_response(layer, State(stage="before"), None, request_of())
    assert block["rowData"][1]["id"] == "before:dot.1"


def test_the_list_sorts_what_is_not_known_last(layer):
    for order in ("asc", "desc"):
        block = ops_list.rows_response(
            layer, State(), None, request_of(sortModel=[{"colId": "cycles_total", "sort": order}])
        )
        cycles = [row["cycles_total"] for row in block["rowData"]]
        known = [value for value in cycles if value is not None]
        assert known == sorted(known, reverse=order == "desc")
        assert cycles[len(known) :] == [None] * (len(cycles) - len(known))


def test_the_filter_finds_the_lines_that_ops_came_through(layer):
    for stage in (None, "before"):
        found = ops_list.chosen_rows(layer, State(stage=stage), "TRAIN.py:39")
        assert len(found) == len(ops_list.listed(layer, stage))
    chosen = State(select=Selection.parse("opcode:dot"))
    assert ops_list.chosen_rows(layer, chosen, "train.py:39")["instruction"].tolist() == ["dot.1"]


def test_the_users_line_is_shown_and_the_innermost_in_the_tooltip_and_the_bar(synthetic):
    rows = synthetic.layer_rows()
    for row in rows["instructions"]:
        row |= {"source_file": "/venv/lib/python3.11/site-packages/flax/linear.py", "source_line": 422}
    module = Bundles({"bundle": synthetic.SyntheticTables(rows)}).module(None, None)
    row = ops_list.rows_response(module, State(), None, request_of(2, 3))["rowData"][0]
    assert row["source"] == "/home/planted/model/layer.py:12"
    assert row["source_detail"].startswith(f"{row['source']}\ninnermost frame: /venv/")
    grid = as_json(ops_list.list_grid(module, None))
    assert '"tooltipField":"source_detail"' in grid
    _, bar = show_selection(Bundles({"bundle": synthetic.SyntheticTables(rows)}), {"page": "ops"}, "op:dot.1")
    assert "model\\u002flayer.py:12" in as_json(bar)
    assert "innermost frame: " in as_json(bar)
    assert "linear.py:422" in as_json(bar)


def test_a_buffer_says_what_made_it_where_it_says_nothing_itself(synthetic):
    rows = synthetic.layer_rows()
    rows["buffers"][1]["inherited_from"] = "multiply.1"
    bundles = Bundles({"bundle": synthetic.SyntheticTables(rows)})
    _, bar = show_selection(bundles, {"page": "memory"}, "buffer:fusion.1{}")
    assert "made by multiply.1" in as_json(bar)
    assert "layer.py:12 *" in as_json(page_memory.alive_parts(bundles.module(None, None), State()))


def test_the_filter_finds_words_in_names_opcodes_scopes_and_sources(layer):
    for words, count in (("FUSION", 1), ("layer.py:13", 1), ("mlp/dot", 1), ("custom", 1), ("nothing", 0), ("(", 8)):
        assert ops_list.rows_response(layer, State(), words, request_of())["rowCount"] == count, words


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ({"filterType": "number", "type": "greaterThan", "filter": 2}, [3]),
        ({"filterType": "number", "type": "inRange", "filter": 1, "filterTo": 2}, [1, 2]),
        ({"filterType": "number", "type": "blank"}, [None]),
        ({"filterType": "number", "type": "notBlank"}, [1, 2, 3]),
        (
            {
                "filterType": "number",
                "operator": "OR",
                "conditions": [
                    {"filterType": "number", "type": "equals", "filter": 1},
                    {"filterType": "number", "type": "equals", "filter": 3},
                ],
            },
            [1, 3],
        ),
    ],
)
def test_number_filters_of_the_grid_hold_on_frames(condition, kept):
    table = pd.DataFrame({"n": pd.array([1, 2, None, 3], dtype="Int64")})
    found = rows.filtered(table, {"n": condition})["n"]
    assert [None if pd.isna(value) else value for value in found] == kept


@pytest.mark.parametrize(
    ("kind", "words", "kept"),
    [
        ("contains", "A.", ["a.b"]),
        ("startsWith", "A", ["a.b", "axb"]),
        ("notEqual", "AXB", ["a.b"]),
        ("endsWith", "B", ["a.b", "axb"]),
    ],
)
def test_text_filters_of_the_grid_take_words_as_they_are(kind, words, kept):
    table = pd.DataFrame({"t": pd.Series(["a.b", "axb", None], dtype="str")})
    assert rows.filtered(table, {"t": {"filterType": "text", "type": kind, "filter": words}})["t"].tolist() == kept


def test_counts_stand_side_by_side_by_every_grouping(layer):
    for by in BY_CHOICES:
        bars, grid = page_ops.counts_parts(layer, by)
        assert "before" in as_json(bars)
        assert f'"{by}:' in as_json(grid)


# ---- fusions ----


def test_the_fusion_shown_is_the_chosen_one_or_the_one_that_holds_it_or_the_costliest(layer):
    for select, reason in (
        (None, "the costliest"),
        ("op:fusion.1", ""),
        ("op:add.1", "holds what is selected"),
        ("op:x", "in no fusion"),
    ):
        fusion, why = page_fusions.shown_fusion(layer, State(select=Selection.parse(select)))
        assert fusion["fusion"] == "fusion.1"
        assert reason in why


def graph_of(component):
    found = re.search(r'"data-graph":("(?:[^"\\]|\\.)*")', as_json(component))
    assert found is not None
    return json.loads(json.loads(found[1]))


def test_the_graph_tells_edges_that_stay_inside_from_those_through_memory_with_their_bytes(layer):
    fusion, _ = page_fusions.shown_fusion(layer, State())
    graph = graph_of(page_fusions.detail(layer, fusion))
    inside = {(edge["source"], edge["target"]): edge for edge in graph["edges"]}
    assert not inside["dot.1", "add.1"]["in_memory"]
    assert inside["param_0", "dot.1"]["in_memory"]
    assert inside["dot.1", "add.1"]["label"] == "4.00 MiB"
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert nodes["param_0"]["select"] == "op:x", "an input stands for the op that makes it"
    assert "layer.py:13" in nodes["add.1"]["title"]


def test_the_treemap_has_an_area_for_each_choice(layer):
    for area in AREA_CHOICES:
        figure, _ = page_fusions.treemap_parts(layer, area)
        assert "op:fusion.1" in figure["data"][0]["ids"]


# ---- memory ----


def test_the_chart_reads_back_names_and_bytes_by_position(layer):
    _, positions, _, _ = page_memory.chart_parts(layer, State())
    assert positions["names"][2] == "multiply.1"
    assert positions["total"][2] == 64 << 20
    assert positions["peak"] == 2
    assert "fusion.1{}" in positions["rectangles"]["value"]


def test_the_other_memory_space_is_another_chart(layer):
    _, positions, _, _ = page_memory.chart_parts(layer, State(space=1))
    assert positions["rectangles"]["value"] == ["copy.1{}"]


def test_a_memory_space_that_is_not_there_shows_the_main_one(layer):
    assert page_memory.space_of(layer, State(space=77)) == 0


@pytest.mark.parametrize(
    ("at", "words"), [(None, "Alive at the peak"), (3, "Alive at position 3"), (900, "the nearest")]
)
def test_what_is_alive_is_listed_for_the_position_the_peak_or_the_nearest(layer, at, words):
    assert words in as_json(page_memory.alive_parts(layer, State(at=at)))


def test_steps_keep_every_change_and_the_end():
    import base64

    import numpy as np

    made = figures._steps(np.array([4, 5, 6, 7, 9]), np.array([1.0, 1.0, 2.0, 2.0, 2.0]))
    x = np.frombuffer(base64.b64decode(made["x"]["bdata"]), made["x"]["dtype"])
    y = np.frombuffer(base64.b64decode(made["y"]["bdata"]), made["y"]["dtype"])
    assert list(zip(x, y, strict=True)) == [(4, 1.0), (6, 2.0), (9, 2.0), (10, 2.0)]


# ---- search, names ----


def test_search_finds_ops_groups_and_buffers_the_closest_first(synthetic):
    hits = as_json(show_hits(opened(synthetic), {}, "multiply"))
    for found in ("op:multiply.1", "opcode:multiply", "buffer:multiply.1{}"):
        assert found in hits
    assert hits.index("op:multiply.1") < hits.index("buffer:multiply.1{}")


def test_search_finds_the_lines_that_ops_came_through(synthetic):
    hits = as_json(show_hits(opened(synthetic), {}, "train.py:39"))
    assert "planted\\u002ftrain.py:39" in hits
    assert "8 ops" in hits


@pytest.mark.parametrize("text", ["", "   ", None])
def test_search_for_nothing_finds_nothing(synthetic, text):
    assert show_hits(opened(synthetic), {}, text) == []


def test_search_says_when_there_is_nothing(synthetic):
    assert "Nothing found" in as_json(show_hits(opened(synthetic), {}, "zzz"))


@given(st.lists(st.text(max_size=3), max_size=30))
def test_row_ids_are_unique_and_keep_what_they_choose(ids):
    made = unique(identity.replace("\t", "") for identity in ids)
    assert len(set(made)) == len(made)
    assert [identity.split("\t")[0] for identity in made] == [identity.replace("\t", "") for identity in ids]


def test_names_in_charts_are_text_and_no_tags(synthetic):
    module = opened(synthetic, "hostile_rows").module(None, None)
    figure, _ = page_fusions.treemap_parts(module, None)
    data = figure["data"][0]
    assert all("<script" not in text and "<img" not in text for text in data["labels"])
    assert any("&lt;script" in text for text in data["labels"])


# ---- the server ----


@pytest.fixture
def client(synthetic):
    return create_app({"bundle": synthetic.SyntheticTables(synthetic.layer_rows())}).server.test_client()


def test_pages_are_told_to_ask_for_nothing_elsewhere(client):
    response = client.get("/", headers={"Host": "127.0.0.1:8050"})
    policy = response.headers["Content-Security-Policy"]
    assert response.status_code == 200
    assert "default-src 'self'" in policy
    assert "connect-src 'self'" in policy
    assert "http" not in policy
    assert "unsafe-eval" not in policy


def test_scripts_and_styles_come_from_this_server(client):
    page = client.get("/", headers={"Host": "127.0.0.1"}).get_data(as_text=True)
    sources = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(sources) > 5
    assert all(source.startswith("/") and not source.startswith("//") for source in sources), sources


def test_a_page_of_another_site_cannot_read_what_is_shown(client):
    assert client.get("/", headers={"Host": "evil.example:8050"}).status_code == 400


def test_a_port_that_is_taken_is_one_clear_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(HlotraceError, match=r"--port: port \d+ cannot be used.*Leave --port out"):
            listening_socket(taken.getsockname()[1])
    with pytest.raises(HlotraceError, match="from 0 to 65535"):
        listening_socket(70_000)


def test_without_a_port_any_free_one_is_found():
    with listening_socket() as first, listening_socket() as second:
        assert first.getsockname()[1] != second.getsockname()[1]
        assert first.getsockname()[0] == "127.0.0.1"


def test_an_app_over_nothing_is_an_error_and_no_empty_page(synthetic):
    with pytest.raises(HlotraceError, match="there is no module"):
        create_app({"bundle": synthetic.SyntheticTables({})})


SERVE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("synthetic", sys.argv[1])
synthetic = importlib.util.module_from_spec(spec)
spec.loader.exec_module(synthetic)
import hlotrace
from hlotrace.app import create_app, serve
serve(create_app({"bundle": synthetic.SyntheticTables(synthetic.layer_rows())}), 0, lambda url: print(url, flush=True))
print("ended", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as a signal")
def test_it_says_its_address_answers_quietly_and_ends_at_ctrl_c():
    from urllib.request import urlopen

    here = Path(__file__).parent / "synthetic.py"
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(here)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
        with urlopen(url) as response:
            assert response.status == 200
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert time.monotonic() - began < 15
    assert process.returncode == 0
    assert out.strip() == "ended"
    assert err == ""


@pytest.mark.parametrize("capacity", [12, 1 << 30])
@pytest.mark.parametrize("peak", [0, 9])
def test_the_words_at_the_capacity_stand_on_the_side_without_the_peak(capacity, peak):
    heights = tuple(10 if x == peak else 1 for x in range(10))
    block = StackedArea("HBM", tuple(range(10)), "position", {"temp": heights}, "bytes", capacity=capacity, peak_x=peak)
    notes = {note["text"].split()[0]: note for note in figures.stacked_area(block)["layout"]["annotations"]}
    assert notes["capacity"]["xanchor"] == ("right" if peak == 0 else "left")
    assert notes["peak"]["x"] == peak


def floats(packed):
    """The numbers of a typed array as Plotly gets it."""
    return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])


@pytest.mark.parametrize("bundle", sorted(path.name for path in REAL.glob("scan-*")))
def test_timeline_and_map_end_at_the_same_position(bundle, tmp_path):
    tables = hlotrace.load(shutil.copytree(REAL / bundle, tmp_path / bundle))
    module = Bundles({bundle: tables}).module(None, None)
    figure, positions, *_ = page_memory.chart_parts(module, State(page="memory"))
    last = {
        axis: max(np.nanmax(floats(trace["x"])) for trace in figure["data"] if trace.get("yaxis") == axis)
        for axis in (None, "y2")
    }
    assert last[None] == last["y2"] == positions["x"][-1] + 1 == figure["layout"]["xaxis"]["range"][1]
    assert max(positions["rectangles"]["live_to"]) == module.buffers["live_to"].max(), "words keep to XLA's ranges"


def test_a_layer_that_holds_nothing_is_covered_by_the_one_below():
    block = StackedArea("HBM", (0, 1, 2), "position", {"argument": (4.0, 4.0, 4.0), "temp": (0.0, 9.0, 0.0)}, "bytes")
    below, above = figures.stacked_area(block)["data"][::-1]
    assert (below["name"], above["name"]) == ("argument", "temp")
    assert all(trace["fill"] == "tozeroy" and trace["line"]["width"] > 1 for trace in (below, above))


@pytest.mark.parametrize("label", ["launches", "launches after", "preallocated", "kept out", "alias", "control"])
def test_words_that_a_newcomer_does_not_know_have_a_meaning(label):
    assert meaning(label)


def test_a_plain_word_has_no_meaning_of_its_own():
    assert meaning("source") == ""


def test_where_time_goes_is_said_on_one_scale_with_its_unit(layer):
    shown = as_json(page_overview.page(layer))
    title = re.search(r'"Where time goes"[^]]*', shown)
    assert title is not None
    assert '"M cycles"' in title.group()
    amounts = re.findall(r'"children":"([^"]*)","className":"amount"', shown)
    assert amounts
    assert all(re.fullmatch(r"<?[\d,.]+( %)?", amount) for amount in amounts), amounts
