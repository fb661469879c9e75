"""The report: one small file that fetches nothing, lets nothing out of its cells, and names nobody."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from hlotrace.errors import HlotraceError
from hlotrace.render.report import build_report, write_report

LIMIT = 5_000_000


class Page(HTMLParser):
    """Every tag with its attributes, and the text outside of style and script."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open not in ("style", "script"):
            self.words.append(data)


@pytest.fixture
def written(synthetic, tmp_path):
    def write(case="layer_rows", suffix=".html", redact=True, **options):
        path = tmp_path / f"report{suffix}"
        write_report(synthetic.SyntheticTables(getattr(synthetic, case)(), **options), path, redact=redact)
        return path.read_text(encoding="utf-8")

    return write


@pytest.mark.parametrize("case", ["layer_rows", "hostile_rows", "cpu_rows", "unscheduled_rows", "many_rows"])
def test_nothing_in_the_page_points_out_of_it(written, case):
    html = written(case)
    for tag, attributes in Page(html).tags:
        for name in ("src", "href", "xlink:href", "data", "action", "srcset", "poster", "formaction"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith("#") or (tag == "link" and value == "data:,"), (tag, name, value)
        assert tag not in ("iframe", "object", "embed", "img", "base", "form"), tag
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)


def test_hostile_names_stay_text(written):
    page = Page(written("hostile_rows"))
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert len(scripts) == 1
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "<script>alert('x')</script>" in "".join(page.words)


def test_the_page_reads_what_headline_findings_detail(written):
    html = re.sub(r"<nav.*</nav>", "", written(), flags=re.DOTALL)
    marks = ["<h1>", "compiled" if "compiled from" in html else "XLA&#39;s program", 'class="figures"', "note finding"]
    marks += [
        "Largest ops",
        "Counts by category",
        "Fusions by",
        "The largest fusion",
        "over the schedule",
        "Alive at the peak",
    ]
    places = [html.rfind(mark) if mark == "Alive at the peak" else html.find(mark) for mark in marks]
    assert -1 not in places
    assert places == sorted(places)


def test_charts_are_drawn_in_the_page(written):
    page = Page(written())
    labels = [attributes["aria-label"] for tag, attributes in page.tags if tag == "svg" and "aria-label" in attributes]
    assert labels == [
        "Ops by category",
        "Fusions by the compiler's cycles",
        "Inside fusion.1",
        "Alive in HBM over the schedule",
        "Roofline: 2 of 3 kernels, those with FLOPs and HBM traffic",
    ]


def test_a_report_of_a_large_program_stays_under_the_limit(synthetic, tmp_path):
    rows = synthetic.layer_rows()
    fusion, launch = rows["fusions"][0], rows["instructions"][10]
    long = "x" * 200
    rows["fusions"] += [
        {**fusion, "fusion": f"{long}.{n}", "source_lines": [f"/a/{long}.py:{n}"] * 50} for n in range(5000)
    ]
    rows["instructions"] += [{**launch, "instruction": f"{long}.{n}"} for n in range(20_000)]
    rows["buffers"] += [synthetic.buffer_row(f"{long}.{n}", "temp", 64, (0, 4), allocation=n) for n in range(20_000)]
    rows["memory_timeline"] += [
        {**rows["memory_timeline"][2], "schedule_index": n, "instruction": f"{long}.{n}"} for n in range(5, 20_000)
    ]
    rows["problems"] = [{"file": long, "place": "1", "what": long, "consequence": long}] * 5000
    path = tmp_path / "report.html"
    write_report(synthetic.SyntheticTables(rows), path)
    assert path.stat().st_size < LIMIT


@pytest.mark.parametrize("suffix", [".html", ".md"])
def test_planted_names_do_not_leave_the_machine(written, synthetic, monkeypatch, suffix):
    monkeypatch.setattr("socket.gethostname", lambda: "plantedbox")
    options = {
        "manifest": synthetic.manifest(argv=["/home/planted/model/layer.py", "--name=planted"]),
        "path": "/home/planted/runs/plantedbox",
    }
    private = written(suffix=suffix, **options)
    assert "planted" not in private
    assert "layer.py:12" in private.replace("\\", "")
    whole = written(suffix=suffix, redact=False, **options)
    assert "/home/planted/model/layer.py" in whole.replace("\\", "")


def test_markdown_folds_long_tables_and_keeps_cells_in_their_rows(written):
    text = written("hostile_rows", ".md")
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert tables
    outside_code = re.sub(r"(`+).*?\1", "", re.sub(r"\\.", "", text))
    assert not re.search(r"<(?!details>|/details>|summary>|/summary>)", outside_code)
    header = next(line for line in tables if line.startswith("| op |"))
    row = next(line for line in tables if line.startswith("| `") and "fusion.1" in line)
    assert len(re.findall(r"(?<!\\)\|", row)) == len(re.findall(r"(?<!\\)\|", header))


def test_a_report_on_several_modules_leaves_out_the_eager_ones(synthetic):
    report = build_report(synthetic.SyntheticTables(synthetic.many_rows()))
    first = [section.title for section in report.sections if section.level == 1]
    assert first == ["jit_layer on v5e:2x2", "jit_layer (jit_layer.cpu) on cpu", "Modules"]
    alone = build_report(synthetic.SyntheticTables(synthetic.many_rows()), module="jit_layer.cpu")
    assert alone.sections[0].title == "jit_layer (jit_layer.cpu) on cpu"


def test_a_report_that_fails_leaves_the_old_one(synthetic, tmp_path, monkeypatch):
    tables = synthetic.SyntheticTables(synthetic.layer_rows())
    out = tmp_path / "report.md"
    out.write_text("the old one")

    def full(self, text, **_):
        with self.open("w") as file:
            file.write(text[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(HlotraceError, match="No space left"):
        write_report(tables, out)
    assert out.read_text() == "the old one"
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]


def test_a_place_that_cannot_be_written_and_an_unknown_kind_are_one_line(synthetic, tmp_path):
    tables = synthetic.SyntheticTables(synthetic.layer_rows())
    with pytest.raises(HlotraceError, match=r"ends in \.html or \.htm or \.md"):
        write_report(tables, tmp_path / "report.pdf")
    with pytest.raises(HlotraceError, match="cannot write the report"):
        write_report(tables, tmp_path / "absent" / "report.html")


def test_the_machines_that_were_traced_are_unnamed(synthetic, tmp_path):
    tables = synthetic.SyntheticTables(synthetic.traced_rows())
    tables.traces = (
        "plugins/profile/2026_01_02_03_04_05/planted-box-7.xplane.pb",
        "2026_01_02_03_04_05_plantedhost.trace.json.gz",
    )
    tables.path = "2026_01_02_03_04_05_plantedhost.trace.json.gz"
    for name in ("report.html", "report.md"):
        write_report(tables, tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "planted-box-7" not in text
        assert "plantedhost" not in text
