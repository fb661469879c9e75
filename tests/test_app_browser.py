"""The app in a real Chromium: each page is driven, links bring everything back, nothing leaves the machine."""

from __future__ import annotations

import base64
import logging
import re
import shutil
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from hlotrace.app.words import WORDS
from hlotrace.render.palette import colour

pytestmark = pytest.mark.browser

SCHEMES = ("light", "dark")
WAIT_MS = 30_000
PAGES = ("", "ops", "fusions", "memory", "modules", "problems")


REAL = Path(__file__).parent / "data" / "scan-v5e"


SPIKE_LENGTH, SPIKE_AT = 20_000, 7_000


def long_rows(synthetic):
    """The layer with more instructions than one block of the list holds."""
    rows = synthetic.layer_rows()
    more = (f"copy.{number}" for number in range(400))
    rows["instructions"] += [synthetic.instruction_row("after_codegen", "main", name, "copy") for name in more]
    return rows


@pytest.fixture(scope="session")
def address(synthetic, tmp_path_factory):
    """A server of bundles made by hand and a real dump, on a port of its own."""
    from werkzeug.serving import make_server

    import hlotrace.load
    from hlotrace.app import create_app

    def tables(rows):
        return synthetic.SyntheticTables(rows)

    app = create_app(
        {
            "layers": tables(synthetic.many_rows()),
            "hostile": tables(synthetic.hostile_rows()),
            "text only": tables(synthetic.unscheduled_rows()),
            "long": tables(long_rows(synthetic)),
            "spiked": tables(spiked_rows(synthetic)),
            "real": hlotrace.load(shutil.copytree(REAL, tmp_path_factory.mktemp("real") / "scan-v5e")),
        }
    )
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, app.server, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()


@pytest.fixture(scope="session")
def contexts(browser):
    """Browser contexts by their options, kept so that scripts are fetched and compiled once."""
    made = {}

    def context_with(**options):
        key = repr(sorted(options.items()))
        if key not in made:
            made[key] = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
            made[key].set_default_timeout(WAIT_MS)
        return made[key]

    yield context_with
    for context in made.values():
        context.close()


@pytest.fixture
def visit(contexts, address):
    """Opens an address of the app. At its end a test fails on any complaint of the page, or request to elsewhere."""
    pages, strangers, complaints = [], [], []

    def open_page(path="/", **options):
        page = contexts(**options).new_page()
        pages.append(page)
        page.on("request", lambda request: note(request.url))
        page.on("console", lambda message: complain(message.type, message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        page.goto(address + path)
        page.locator("#page > *").first.wait_for()
        return page

    def note(url):
        if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).hostname != "127.0.0.1":
            strangers.append(url)

    def complain(kind, text):
        if kind in ("error", "warning"):
            complaints.append(f"{kind}: {text}")

    yield open_page
    for page in pages:
        page.close()
    assert strangers == []
    assert complaints == []


def query(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def row(page, grid, text):
    return page.locator(f"#{grid} .ag-center-cols-container .ag-row", has_text=text).first


def bar(page):
    return page.locator("#selection-bar")


def to(page, title):
    page.locator("nav .nav-link", has_text=title).click()


def ready(page, path):
    """Waits for what each page shows last."""
    shown = {
        "": ".page.overview .shares",
        "ops": "#ops-grid .ag-center-cols-container .ag-row .ag-cell",
        "fusions": "#fusion-detail .graph-svg .node",
        "memory": "#memory-grid .ag-center-cols-container .ag-row",
        "modules": ".page.plain .grid .ag-row",
        "problems": ".page.plain .heading",
    }
    page.locator(shown[path]).first.wait_for()
    if path in ("fusions", "memory"):
        page.locator(".js-plotly-plot .main-svg").first.wait_for()


# ---- each page, in light and dark ----


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("path", PAGES)
def test_each_page_opens_in_light_and_dark_without_a_complaint(visit, path, scheme):
    page = visit(f"/{path}", color_scheme=scheme)
    ready(page, path)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    ink, ground = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert abs(brightness(ink) - brightness(ground)) > 150
    heading = page.locator(".heading h2").first
    assert brightness(heading.evaluate("node => getComputedStyle(node).color")) == brightness(ink)


def brightness(colour):
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour)[:3])
    return (red * 299 + green * 587 + blue * 114) / 1000


@pytest.mark.parametrize("path", PAGES)
def test_hostile_names_are_shown_as_text_on_every_page(visit, path):
    page = visit(f"/{path}?bundle=hostile")
    ready(page, path)
    page.locator("#page", has_text="<script>").wait_for()
    assert page.locator("#frame img, #frame iframe, #page script").count() == 0


def test_the_theme_is_switched_and_remembered(visit):
    page = visit("/", color_scheme="light")
    page.locator("#theme-switch").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    page.locator("nav .here").wait_for()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.locator("#theme-switch").click()


# ---- the frame ----


def test_the_module_picker_changes_the_module_and_the_address(visit):
    page = visit("/ops?bundle=layers&module=jit_layer")
    ready(page, "ops")
    page.locator("#module-picker").click()
    page.get_by_role("option", name="jit_layer.cpu").or_(page.get_by_label("jit_layer.cpu")).first.click()
    page.wait_for_url("**module=jit_layer.cpu**")
    page.locator(".heading h2", has_text="jit_layer.cpu").wait_for()


def test_the_bundle_picker_changes_the_bundle_and_takes_its_largest_module(visit):
    page = visit("/?bundle=layers")
    ready(page, "")
    page.locator("#bundle-picker").click()
    page.get_by_role("option", name="text only").or_(page.get_by_label("text only")).first.click()
    page.wait_for_url("**bundle=text+only&module=jit_layer**")


def test_search_goes_to_what_it_finds_by_keys_alone(visit):
    page = visit("/")
    ready(page, "")
    page.keyboard.press("/")
    page.keyboard.type("multiply.1")
    page.locator("#search-results .hit").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**select=op%3Amultiply.1**")
    bar(page).locator("text=multiply.1").first.wait_for()


def test_keys_show_help_and_clear_the_selection(visit):
    page = visit("/ops?select=op:fusion.1")
    ready(page, "ops")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "select" not in url)
    bar(page).locator("text=Nothing selected").wait_for()


def test_j_and_k_walk_the_rows_without_filling_the_history(visit):
    page = visit("/ops?select=op:dot.1")
    ready(page, "ops")
    page.locator("#ops-grid").hover()
    page.locator("#ops-grid .ag-row.is-chosen").first.wait_for()
    before = page.evaluate("history.length")
    page.keyboard.press("j")
    page.wait_for_url("**select=op%3Abitcast.1**")
    page.keyboard.press("k")
    page.wait_for_url("**select=op%3Adot.1**")
    assert page.evaluate("history.length") == before


def test_an_address_of_nothing_says_what_there_is(visit):
    page = visit("/nonsense")
    page.locator("text=There is no page 'nonsense'").wait_for()
    page.goto(page.url.split("/nonsense")[0] + "/ops?bundle=layers&module=gone")
    page.locator("text=no module is named 'gone'").wait_for()


# ---- one selection ----


def test_an_op_chosen_in_a_table_is_shown_on_every_page(visit):
    page = visit("/ops?bundle=layers")
    ready(page, "ops")
    row(page, "ops-grid", "fusion.1").click()
    page.wait_for_url("**select=op%3Afusion.1**")
    bar(page).locator(".selection-name", has_text="fusion.1").wait_for()
    page.locator("#ops-counts-grid .ag-row.is-chosen", has_text="matmul").first.wait_for()
    to(page, "Fusions")
    ready(page, "fusions")
    page.locator("#fusions-grid .ag-row.is-chosen").first.wait_for()
    page.locator("#fusions-treemap .slice.is-chosen").first.wait_for()
    to(page, "Memory")
    ready(page, "memory")
    page.locator("#memory-grid .ag-row.is-chosen", has_text="fusion.1{}").first.wait_for()
    page.locator(".marks .span").first.wait_for(state="attached")
    page.locator(".marks .box").first.wait_for(state="attached")
    to(page, "Overview")
    page.locator(".overview .ag-row.is-chosen", has_text="fusion.1").first.wait_for()


def test_a_source_line_chosen_in_the_bar_lights_up_all_that_comes_from_it(visit):
    page = visit("/fusions?bundle=layers&select=op:add.1")
    ready(page, "fusions")
    bar(page).locator(".link", has_text="layer.py:13").click()
    page.wait_for_url("**select=source%3A**")
    page.locator(".graph .node.is-chosen", has_text="add").first.wait_for()
    page.locator("#fusions-grid .ag-row.is-chosen").first.wait_for()


def test_a_buffer_chosen_on_the_map_is_found_in_the_list(visit):
    page = visit("/memory?bundle=layers")
    ready(page, "memory")
    plot = page.locator("#memory-chart .nsewdrag").last.bounding_box()
    page.mouse.click(plot["x"] + plot["width"] * 0.3, plot["y"] + plot["height"] * 0.9)
    page.wait_for_url("**select=buffer%3Ax%7B%7D**")
    page.locator("#memory-grid .ag-row.is-chosen", has_text="x{}").first.wait_for()


# ---- ops ----


def test_choosing_a_group_filters_the_list(visit):
    page = visit("/ops?bundle=layers")
    ready(page, "ops")
    page.locator(".switch[data-name=by] .choice", has_text="opcode").click()
    page.wait_for_url("**by=opcode**")
    row(page, "ops-counts-grid", "bitcast").click()
    page.locator("#ops-filter", has_text="1 of 8").wait_for()
    rows = page.locator("#ops-grid .ag-center-cols-container .ag-row")
    rows.first.locator("text=bitcast.1").first.wait_for()
    rows.nth(1).wait_for(state="detached")


def test_the_list_of_the_program_before_is_a_switch_away(visit):
    page = visit("/ops?bundle=layers")
    ready(page, "ops")
    page.locator(".switch[data-name=stage] .choice", has_text="before").click()
    page.wait_for_url("**stage=before**")
    row(page, "ops-grid", "dot.2").click()
    page.wait_for_url("**select=before%3Adot.2**")
    bar(page).locator("text=come from it").wait_for()


def test_words_filter_the_list_and_it_is_exported(visit):
    page = visit("/ops?bundle=layers")
    ready(page, "ops")
    page.locator("#ops-quick").fill("layer.py:13")
    row(page, "ops-grid", "dot.1").wait_for(state="detached")
    page.locator("#ops-grid .ag-center-cols-container .ag-row").nth(1).wait_for(state="detached")
    with page.expect_download() as saved:
        page.locator("#ops-export").click()
    lines = saved.value.path().read_text().strip().splitlines()
    assert len(lines) == 2
    assert "add.1" in lines[1]


def test_a_table_sorts_by_a_click_on_its_header_and_is_exported(visit):
    page = visit("/memory?bundle=layers&at=2")
    ready(page, "memory")
    header = page.locator("#memory-grid .ag-header-cell", has_text="size")
    header.click()
    header.click()
    first = page.locator("#memory-grid .ag-center-cols-container .ag-row[row-index='0']")
    first.locator("text=multiply.1{}").wait_for()
    with page.expect_download() as saved:
        page.locator("#memory-alive [data-export]").click()
    assert "multiply.1{}" in saved.value.path().read_text()


def test_the_list_opens_at_the_op_that_a_link_names_however_far_down(visit):
    page = visit("/ops?bundle=long&select=op:copy.399")
    page.locator("#ops-grid .ag-row.is-chosen", has_text="copy.399").first.wait_for()
    page.goto(page.url.replace("copy.399", "copy.250"))
    chosen = page.locator("#ops-grid .ag-row.is-chosen", has_text="copy.250").first
    chosen.wait_for()
    assert int(chosen.get_attribute("row-index")) > 200, "beyond the first blocks of rows"


def test_an_op_chosen_in_the_list_asks_for_no_rows_anew(visit):
    page = visit("/ops?bundle=layers")
    ready(page, "ops")
    page.wait_for_timeout(500)
    asked = []
    page.on("request", lambda request: asked.append(request.post_data or ""))
    row(page, "ops-grid", "multiply.1").click()
    page.locator("#ops-grid .ag-row.is-chosen", has_text="multiply.1").first.wait_for()
    page.wait_for_timeout(300)
    assert asked
    assert not any("getRowsRequest" in post and '"output":"..ops-grid' in post for post in asked)


# ---- fusions ----


@pytest.mark.parametrize("where", ["treemap", "grid"])
def test_a_fusion_chosen_in_the_treemap_or_the_grid_shows_its_graph(visit, where):
    page = visit("/fusions?bundle=layers&select=opcode:custom-call")
    ready(page, "fusions")
    if where == "treemap":
        page.locator("#fusions-treemap .slice", has_text="fusion.1").last.click()
    else:
        row(page, "fusions-grid", "fusion.1").click()
    page.wait_for_url("**select=op%3Afusion.1**")
    page.locator("#fusion-head h2", has_text="fusion.1").wait_for()
    graph = page.locator("#fusion-detail .graph-svg")
    assert graph.locator(".node.member").count() == 2
    assert graph.locator(".edge.inside").count() == 1
    assert graph.locator(".edge.memory").count() == 3
    assert "4.00 MiB" in graph.locator(".edge.inside text").text_content()


def test_a_member_chosen_in_the_graph_stays_where_it_is_and_lights_up(visit):
    page = visit("/fusions?bundle=layers")
    ready(page, "fusions")
    view = page.locator(".graph-svg").get_attribute("viewBox")
    page.locator(".graph-tools .tool", has_text="+").click()
    zoomed = page.locator(".graph-svg").get_attribute("viewBox")
    assert zoomed != view
    page.locator(".graph .node.member", has_text="dot").click()
    page.wait_for_url("**select=op%3Adot.1**")
    page.locator(".graph .node.is-chosen", has_text="dot").wait_for()
    assert page.locator(".graph-svg").get_attribute("viewBox") == zoomed


def test_the_area_of_the_treemap_is_a_choice_in_the_address(visit):
    page = visit("/fusions?bundle=layers")
    ready(page, "fusions")
    page.locator(".switch[data-name=area] .choice", has_text="bytes").click()
    page.wait_for_url("**area=bytes**")
    page.locator("#treemap-title", has_text="bytes in and out").wait_for()


# ---- memory ----


def at_share(page, share):
    """A point in the timeline at a share of its width."""
    plot = page.locator("#memory-chart .nsewdrag").first.bounding_box()
    return plot["x"] + plot["width"] * share, plot["y"] + plot["height"] * 0.5


def test_pointing_at_the_timeline_tells_the_instruction_there(visit):
    page = visit("/memory?bundle=layers")
    ready(page, "memory")
    page.mouse.move(*at_share(page, 0.3))
    page.locator("#memory-readout", has_text="position 1  ·  fusion.1  ·  56.00 MiB alive").wait_for()
    page.mouse.move(*at_share(page, 0.7))
    page.locator("#memory-readout", has_text="position 3  ·  custom-call.1").wait_for()


def test_a_click_in_the_timeline_lists_what_is_alive_with_sizes_and_source_lines(visit):
    page = visit("/memory?bundle=layers")
    ready(page, "memory")
    page.mouse.click(*at_share(page, 0.7))
    page.wait_for_url("**at=3**")
    page.locator("#memory-alive .grid-title", has_text="Alive at position 3").wait_for()
    found = row(page, "memory-grid", "custom-call.1{}").inner_text()
    assert "8.00" in found
    assert "layer.py:12" in found


def test_the_memory_space_is_switched(visit):
    page = visit("/memory?bundle=layers")
    ready(page, "memory")
    page.locator(".switch[data-name=space] .choice", has_text="VMEM").click()
    page.wait_for_url("**space=1**")
    row(page, "memory-grid", "copy.1{}").wait_for()
    page.locator("#memory-figures", has_text="VMEM").wait_for()


def test_a_module_without_a_timeline_says_what_would_bring_one(visit):
    page = visit("/memory?bundle=text+only")
    page.locator(".note-missing", has_text="not scheduled").wait_for()
    page.locator(".command", has_text="hlotrace capture").wait_for()


@pytest.mark.parametrize("path", ["", "ops", "fusions", "memory"])
def test_each_page_shows_a_real_dump(visit, path):
    page = visit(f"/{path}?bundle=real")
    ready(page, path)
    assert page.locator("#said-error").inner_text() == ""


# ---- links ----

LINK = "/memory?bundle=layers&module=jit_layer&select=buffer%3Amultiply.1%7B%7D&space=0&at=3"


def test_a_pasted_link_brings_back_page_module_selection_space_and_position(visit):
    page = visit(LINK)
    ready(page, "memory")
    page.locator("#memory-alive .grid-title", has_text="Alive at position 3").wait_for()
    bar(page).locator(".selection-name", has_text="multiply.1{}").wait_for()
    page.locator("#memory-grid .ag-row.is-chosen", has_text="multiply.1{}").first.wait_for()
    page.locator(".switch[data-name=space] .choice.on", has_text="HBM").wait_for()
    assert query(page) == {
        "bundle": "layers",
        "module": "jit_layer",
        "select": "buffer:multiply.1{}",
        "space": "0",
        "at": "3",
    }


def test_a_link_copied_is_the_state_that_opens_elsewhere(visit, address):
    page = visit(LINK, permissions=["clipboard-read", "clipboard-write"])
    ready(page, "memory")
    page.locator("#copy-link").click()
    page.locator("#said.shown", has_text="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == address + LINK


def test_back_and_forward_go_through_pages_and_selections(visit):
    page = visit("/ops?bundle=layers")
    ready(page, "ops")
    row(page, "ops-grid", "multiply.1").click()
    bar(page).locator(".selection-name", has_text="multiply.1").wait_for()
    to(page, "Memory")
    ready(page, "memory")
    page.go_back()
    ready(page, "ops")
    bar(page).locator(".selection-name", has_text="multiply.1").wait_for()
    page.go_back()
    bar(page).locator("text=Nothing selected").wait_for()
    page.go_forward()
    page.go_forward()
    ready(page, "memory")
    bar(page).locator(".selection-name", has_text="multiply.1").wait_for()


def test_the_address_always_names_bundle_and_module(visit):
    page = visit("/")
    ready(page, "")
    assert query(page) == {"bundle": "layers", "module": "jit_layer"}


# ---- how it looks ----

SIZES = ((1280, 800), (1920, 1080))


@pytest.fixture
def sized(visit):
    """Opens an address in a window of a size."""

    def open_page(path, size, scheme="light"):
        page = visit(path, color_scheme=scheme)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        ready(page, path.strip("/").partition("?")[0])
        page.wait_for_timeout(300)
        return page

    return open_page


def inside(inner, outer):
    return (
        outer["x"] <= inner["x"] + 1
        and inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1
        and outer["y"] <= inner["y"] + 1
        and inner["y"] + inner["height"] <= outer["y"] + outer["height"] + 1
    )


def header_of(page, grid, name):
    return page.locator(f"#{grid} .ag-header-cell[col-id='{name}']").bounding_box()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("path", "grid", "names"),
    [
        ("/?bundle=real", "overview-launches", ("instruction", "category", "cycles_total", "share", "source")),
        ("/?bundle=real", "overview-alive", ("value", "role", "bytes", "source")),
        ("/ops?bundle=real", "ops-counts-grid", ("category", "after", "launches_after", "cycles_total")),
        ("/ops?bundle=real", "ops-grid", ("instruction", "category", "cycles_total", "hbm_bytes_total", "source")),
        ("/fusions?bundle=real", "fusions-grid", ("fusion", "category", "cycles_total", "sources")),
    ],
)
def test_the_columns_that_matter_are_in_sight(sized, path, grid, names, size):
    page = sized(path, size)
    box = page.locator(f"#{grid}").bounding_box()
    assert all(inside(header_of(page, grid, name), box) for name in names)


@pytest.mark.parametrize("size", SIZES)
def test_what_the_header_says_of_the_chip_is_not_cut(sized, size):
    page = sized("/?bundle=real", size)
    assert page.locator("#chip").evaluate("node => node.scrollWidth <= node.clientWidth")


def test_a_tables_title_stays_beside_its_filter(sized):
    page = sized("/?bundle=real", (1100, 700))
    for table in page.locator(".grid-bar").all():
        filter_box = table.locator(".quick-box").bounding_box()
        count = table.locator(".count").bounding_box()
        title = table.locator(".grid-title > *").first.bounding_box()
        assert title["x"] + title["width"] <= count["x"] + 1
        assert count["x"] + count["width"] <= filter_box["x"] + 1


@pytest.mark.parametrize("size", SIZES)
def test_the_figures_of_memory_stand_in_one_row_the_main_one_first(sized, size):
    page = sized("/memory?bundle=real", size)
    figures = page.locator("#memory-figures .figure")
    assert "alive in HBM" in figures.first.inner_text()
    assert len({box.bounding_box()["y"] for box in figures.all()}) == 1


@pytest.mark.parametrize("size", SIZES)
def test_legend_buttons_and_nodes_of_a_graph_have_places_of_their_own(sized, size):
    page = sized("/fusions?bundle=real", size)
    strip, picture = (page.locator(f".graph-box .{name}").bounding_box() for name in ("graph-strip", "graph-svg"))
    assert strip["y"] + strip["height"] <= picture["y"]
    for part in page.locator(".graph-strip .edge-key, .graph-strip .tool").all():
        assert inside(part.bounding_box(), strip)


def test_a_graph_opens_at_a_scale_at_which_its_text_is_read_and_at_its_root(sized):
    page = sized("/fusions?bundle=real", (1280, 800))
    picture = page.locator(".graph-svg")
    scale = picture.evaluate("node => node.getScreenCTM().a")
    sizes = page.locator(".graph-svg text").evaluate_all(
        "nodes => nodes.map((node) => parseFloat(getComputedStyle(node).fontSize))"
    )
    assert scale * min(sizes) >= 8.99
    lowest = max((node.bounding_box() for node in page.locator(".graph-svg .node").all()), key=lambda box: box["y"])
    assert inside(lowest, picture.bounding_box())


def test_the_hover_of_a_tile_wraps_and_stays_in_the_window(sized):
    page = sized("/fusions?bundle=real", (1280, 800))
    tile = page.locator("#fusions-treemap .slice path.surface").last.bounding_box()
    for step in (0.4, 0.5):
        page.mouse.move(tile["x"] + tile["width"] * step, tile["y"] + tile["height"] * step)
    hover = page.locator("#tile-hover.shown")
    hover.wait_for()
    assert inside(hover.bounding_box(), {"x": 0, "y": 0, "width": 1280, "height": 800})
    lines = hover.locator("div").all_text_contents()
    assert "fusion" in lines[0]
    assert lines[1].endswith(" cycles")
    page.mouse.move(5, 5)
    hover.wait_for(state="detached")


def test_no_text_of_a_treemap_is_too_small_to_read(sized):
    page = sized("/fusions?bundle=real", (1280, 800))
    sizes = page.locator("text.slicetext").evaluate_all(
        r"""nodes => nodes.filter((node) => node.style.visibility !== "hidden").map((node) => {
            const scale = /scale\(([\d.]+)/.exec(node.getAttribute("transform"));
            return parseFloat(getComputedStyle(node).fontSize) * (scale ? Number(scale[1]) : 1);
        })"""
    )
    assert sizes
    assert min(sizes) >= 8


def test_the_line_at_the_peak_leaves_the_area_in_sight(sized):
    page = sized("/memory?bundle=layers", (1280, 800))
    plot = page.locator("#memory-chart .nsewdrag").first.bounding_box()
    above, below = (mark.bounding_box() for mark in page.locator(".marks .mark.peak").all())
    assert above["y"] + above["height"] < plot["y"] + plot["height"] * 0.2, "it ends over the area"
    assert below["y"] >= plot["y"] + plot["height"] - 1, "and goes on under it"


def spiked_rows(synthetic):
    """The layer over a long schedule at one position of which much more is alive."""
    rows = synthetic.layer_rows()
    space = [row for row in rows["memory_timeline"] if row["memory_space"] == 0]
    flat = min(space, key=lambda row: row["live_bytes"])
    rows["memory_timeline"] = [{**flat, "schedule_index": index} for index in range(SPIKE_LENGTH)]
    spike = rows["memory_timeline"][SPIKE_AT]
    more = 9 * flat["live_bytes"]
    spike |= {"live_bytes": flat["live_bytes"] + more, "temp_bytes": flat.get("temp_bytes", 0) + more}
    return rows


@pytest.mark.parametrize("at", ["", "&at=9000"])
def test_a_peak_one_position_wide_is_seen(visit, at):
    page = visit(f"/memory?bundle=spiked{at}")
    page.locator(".marks .mark").first.wait_for(state="attached")
    plot = page.locator("#memory-chart .nsewdrag").first.bounding_box()
    x = plot["x"] + plot["width"] * (SPIKE_AT + 0.5) / SPIKE_LENGTH
    clip = {"x": x - 6, "y": plot["y"] + plot["height"] * 0.5, "width": 12, "height": 1}
    picture = base64.b64encode(page.screenshot(clip=clip)).decode()
    pixels = page.evaluate(
        """async (picture) => {
            const image = new Image();
            image.src = "data:image/png;base64," + picture;
            await image.decode();
            const context = Object.assign(document.createElement("canvas"), { width: 12, height: 1 }).getContext("2d");
            context.drawImage(image, 0, 0);
            const pixels = context.getImageData(0, 0, 12, 1).data;
            return [...Array(12).keys()].map((index) => [...pixels.slice(4 * index, 4 * index + 3)]);
        }""",
        picture,
    )
    wanted = bytes.fromhex(colour("temporary").removeprefix("#"))
    assert any(max(abs(a - b) for a, b in zip(wanted, pixel, strict=True)) < 40 for pixel in pixels), pixels


@pytest.mark.parametrize("leave", ["Escape", "page", "bundle"])
def test_what_was_searched_for_goes_when_it_says_nothing_any_more(visit, leave):
    page = visit("/?bundle=layers")
    ready(page, "")
    page.keyboard.press("/")
    page.keyboard.type("multiply")
    page.locator("#search-results .hit").first.wait_for()
    if leave == "Escape":
        page.keyboard.press("Escape")
    elif leave == "page":
        to(page, "Ops")
    else:
        page.locator("#bundle-picker").click()
        page.get_by_role("option", name="text only").or_(page.get_by_label("text only")).first.click()
    page.wait_for_function("document.getElementById('search').value === ''")


def test_a_finding_leads_to_the_op_that_it_names(visit):
    page = visit("/?bundle=layers")
    ready(page, "")
    page.locator(".note-finding .link", has_text="estimated cycles").first.click()
    page.wait_for_url("**/ops?**select=op%3A**")
    page.locator("#ops-grid .ag-row.is-chosen").first.wait_for()


def test_choosing_a_group_shows_the_lists_first_column(sized):
    page = sized("/ops?bundle=layers", (1280, 800))
    page.locator("#ops-grid .ag-center-cols-viewport").evaluate("node => { node.scrollLeft = 400; }")
    row(page, "ops-counts-grid", "elementwise").click()
    page.wait_for_url("**select=category**")
    page.wait_for_function("document.querySelector('#ops-grid .ag-center-cols-viewport').scrollLeft === 0")


def test_a_number_reads_the_same_in_a_grid_as_in_the_terminal(visit):
    page = visit("/")
    ready(page, "")
    numbers = [eighth / 8 for eighth in [*range(-4000, -8), *range(4000)]]
    numbers += [cent / 100 + half for cent in range(0, 3000, 7) for half in (0.005, 0.0049999)]
    numbers += [129.125, 1e6 + 0.125, 12345678.875, 999.995, 1e12 + 0.5]
    for decimals in (0, 1, 2):
        ours = [f"{number:,.{decimals}f}" for number in numbers]
        theirs = page.evaluate(
            "([all, decimals]) => all.map((number) => window.hlotraceDigits.grouped(number, decimals))",
            [numbers, decimals],
        )
        assert [pair for pair in zip(numbers, ours, theirs, strict=True) if pair[1] != pair[2]] == []


def test_words_are_explained_where_they_stand_and_in_the_help(visit):
    page = visit("/ops?bundle=layers")
    ready(page, "ops")
    assert "asked to start" in page.locator(".figure-label", has_text="launches").first.get_attribute("title")
    page.keyboard.press("?")
    assert page.locator("#help dt").all_text_contents() == list(WORDS)
    assert "asked to start" in page.locator("#help dl").inner_text()
