"""The report in a real Chromium with the network cut off: it asks for nothing, and shows everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotrace.render.report import write_report

pytestmark = pytest.mark.browser

SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def written(synthetic, tmp_path_factory):
    """Each report once."""
    directory = tmp_path_factory.mktemp("reports")

    def write(case) -> Path:
        path: Path = directory / f"{case}.html"
        if not path.exists():
            write_report(synthetic.SyntheticTables(getattr(synthetic, case)()), path)
        return path

    return write


@pytest.fixture
def opened(browser, written):
    """Opens the report on some tables, offline; everything the page asked for beside itself is in `asked`."""
    contexts = []

    def open_report(case="layer_rows", **options):
        path = written(case)
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.asked = []
        page.complaints = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(path.as_uri())
        page.asked = [url for url in page.asked if url not in (path.as_uri(), "data:,")]
        return page

    yield open_report
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("case", ["layer_rows", "hostile_rows"])
def test_the_page_asks_for_nothing_and_nothing_in_it_runs_but_its_own_script(opened, case, scheme):
    page = opened(case, color_scheme=scheme)
    page.wait_for_timeout(200)
    assert page.asked == []
    assert page.complaints == []
    assert page.locator("th button").count() > 0


@pytest.mark.parametrize("width", [1280, 1920, 700])
def test_the_page_is_not_wider_than_the_window(opened, width):
    page = opened(viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_tables_sort_by_a_click_and_back(opened):
    page = opened()
    table = page.locator("figure.table", has_text="Largest ops").first
    ops = table.locator("tbody tr td:first-child")
    assert ops.all_inner_texts() == ["fusion.1", "multiply.1", "custom-call.1"]
    table.get_by_role("button", name="op", exact=True).click()
    assert ops.all_inner_texts() == ["custom-call.1", "fusion.1", "multiply.1"]
    table.get_by_role("button", name="cycles").click()
    assert ops.all_inner_texts() == ["fusion.1", "multiply.1", "custom-call.1"]
    table.get_by_role("button", name="cycles").click()
    assert ops.all_inner_texts() == ["multiply.1", "fusion.1", "custom-call.1"], "unknown stays last"


def test_tables_and_charts_are_there_without_scripts(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("table tbody tr").count() > 10
    assert page.locator("svg[role=img]").count() == 5
    assert page.locator("th button").count() == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_letters_stand_out_from_the_ground_in_light_and_dark(opened, scheme):
    page = opened(color_scheme=scheme)
    ink, ground = (
        page.evaluate(f"getComputedStyle(document.documentElement).{name}") for name in ("color", "backgroundColor")
    )
    assert contrast(ink, ground) > 7
    axis = page.locator("svg text.value").first.evaluate("node => getComputedStyle(node).fill")
    assert contrast(axis, ground) > 4.5


def contrast(one, other):
    """The contrast ratio of two `rgb(r, g, b)`, 1 to 21."""

    def luminance(colour):
        channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
        return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_pointing_at_a_position_tells_the_instruction(opened):
    page = opened()
    pointers = page.locator("svg[aria-label^=Alive] .pointer")
    assert pointers.count() == 5
    told = pointers.nth(2).locator("title").text_content()
    assert told.startswith("schedule position 2: multiply.1\nalive 64.00 MiB")


def test_it_prints(opened):
    page = opened()
    assert len(page.pdf(format="A4")) > 10_000
