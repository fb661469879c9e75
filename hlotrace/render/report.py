"""A report: the views of the modules that matter, in the order an investigation is read, in one file.

write_report(hlotrace.load("bundle"), Path("report.html"))
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotrace.analyses.fusions import fusion_groups
from hlotrace.analyses.modules import by_size, chosen_module, is_small
from hlotrace.errors import HlotraceError
from hlotrace.render.redact import redacted, this_machine
from hlotrace.views.blocks import Block, Heading, Note
from hlotrace.views.common import rows_of, title
from hlotrace.views.registry import view_named

if TYPE_CHECKING:
    from hlotrace.views.view import Tables

ROWS = 40
"""Rows of a table in a report: what is further down is in `hlotrace show`."""
MOST_MODULES = 4
SUFFIXES = (".html", ".htm", ".md")


@dataclass(frozen=True)
class Section:
    """A part of a report: `level` 1 for a module, 2 for a view of it."""

    anchor: str
    title: str
    question: str
    level: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """Everything a report says, before it is drawn."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]


def build_report(tables: Tables, *, module: str | None = None, redact: bool = True) -> Report:
    """A report on one module, or on the largest few of what was opened.

    Raises:
        HlotraceError: there is no such module, or none at all.
    """
    chosen = _chosen(tables, module)
    sections = [section for row in chosen for section in _of_module(tables, row)]
    if not chosen:
        sections.append(_of_view(tables, "summary", "summary", 1))
    if tables.traces:
        sections += _of_trace(tables)
    if module is None and chosen and _is_on_several_chips(tables, chosen[0]["name"]):
        sections.append(_of_view(tables, "chips", "chips", 1, module=chosen[0]["name"]))
    if len(tables["modules"]) > 1:
        sections.append(_of_view(tables, "modules", "modules", 1))
    if len(tables["problems"]):
        sections.append(_of_view(tables, "problems", "problems", 1))
    subject = title(chosen[0]) if chosen else tables.path.rstrip("/").rpartition("/")[2]
    report = Report(f"hlotrace: {subject}", _subtitle(tables, len(chosen)), tuple(sections))
    return _redacted(report, {*this_machine(), *_traced_machines(tables)}) if redact else report


def write_report(tables: Tables, path: Path, *, module: str | None = None, redact: bool = True) -> None:
    """Write a report to `path`, as its suffix says: `.html` or `.md`.

    Raises:
        HlotraceError: another suffix, a place that cannot be written, no such module.
    """
    if path.suffix not in SUFFIXES:
        raise HlotraceError(f"expected a name that ends in {' or '.join(SUFFIXES)}", place=str(path))
    report = build_report(tables, module=module, redact=redact)
    if path.suffix == ".md":
        from hlotrace.render.markdown import render_report
    else:
        from hlotrace.render.html import render_report
    text = render_report(report)
    try:
        _replace(path, text)
    except OSError as error:
        raise HlotraceError(f"cannot write the report: {error.strerror}", place=str(path)) from None


def _replace(path: Path, text: str) -> None:
    """Write beside a file and rename: a report that was there stays until the new one is whole."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")  # such as /dev/stdout, which nothing may replace
        return
    target = path.resolve()  # a link stays one
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        if target.exists():
            aside.chmod(target.stat().st_mode & 0o777)
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def _chosen(tables: Tables, module: str | None) -> list[dict[str, Any]]:
    if tables.traces and module is None and tables["modules"].empty:
        return []
    first = chosen_module(tables["modules"], module)
    if module is not None:
        return [first]
    large = [row for row in by_size(tables["modules"]) if not is_small(row)]
    return (large or [first])[:MOST_MODULES]


def _is_on_several_chips(tables: Tables, name: str) -> bool:
    modules = tables["modules"]
    return modules.loc[(modules["name"] == name) & (modules["platform"] == "tpu"), "target"].nunique() > 1


def _subtitle(tables: Tables, shown: int) -> str:
    manifest = tables.manifest
    count = len(tables["modules"])
    if not count:
        return f"{tables.path}: a trace, without HLO."
    modules = (
        "its one module"
        if count == 1
        else f"{shown} of its {count} modules"
        if shown < count
        else f"its {count} modules"
    )
    if manifest is None:
        return f"{tables.path}: {modules}. A dump, without a manifest."
    versions = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    return f"{tables.path}: {modules}. Captured {manifest.created} by {' '.join(manifest.argv)}. {versions}."


def _of_module(tables: Tables, row: dict[str, Any]) -> list[Section]:
    name = str(row["module"])
    prefix = f"module-{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-').lower()}"
    summary = _of_view(tables, "summary", prefix, 1, module=name)
    parts = [replace(summary, title=title(row))]
    parts.append(_of_view(tables, "ops", f"{prefix}-ops", 2, module=name, top=ROWS))
    parts.append(_of_view(tables, "fusions", f"{prefix}-fusions", 2, module=name, top=ROWS))
    parts += _largest_fusion(tables, name, prefix)
    parts.append(_of_view(tables, "memory", f"{prefix}-memory", 2, module=name, top=ROWS))
    if row["platform"] == "tpu":
        parts += [_of_view(tables, view, f"{prefix}-{view}", 2, module=name, top=ROWS) for view in ("roofline", "mxu")]
    return parts


def _of_trace(tables: Tables) -> list[Section]:
    profile = _of_view(tables, "profile", "profile", 1, top=ROWS)
    by_op = replace(_of_view(tables, "profile", "profile-ops", 2, by="op", top=ROWS), title="Time by op")
    return [profile, by_op, *(_of_view(tables, view, view, 1, top=ROWS) for view in ("steps", "collectives"))]


def _largest_fusion(tables: Tables, module: str, prefix: str) -> list[Section]:
    groups = fusion_groups(rows_of(tables, "fusions", module))
    if groups.empty:
        return []
    name = str(groups["fusion"].iloc[0])
    section = _of_view(tables, "fusions", f"{prefix}-fusion", 2, module=module, fusion=name)
    return [replace(section, title=f"The largest fusion, {name}", question="What is inside it?")]


def _of_view(tables: Tables, view: str, anchor: str, level: int, **values: Any) -> Section:
    """A view's blocks without its heading and the commands that lead on: what they show is in the report too."""
    chosen = view_named(view)
    blocks = [block for block in chosen.build(tables, **values) if not _is_navigation(block)]
    return Section(anchor, chosen.title, chosen.question, level, tuple(blocks))


def _is_navigation(block: Block) -> bool:
    return isinstance(block, Heading) or (
        isinstance(block, Note) and block.kind in ("info", "warning") and bool(block.command)
    )


_LOGGED = re.compile(
    r"(?:^|/)(?:plugins/profile/[^/]+/|\d{4}(?:_\d\d){5}_)(?P<host>[^/]+?)\.(?:xplane\.pb|trace\.json(?:\.gz)?)$"
)
"""How profilers name a trace: after the machine, in a log directory or after the time it was made."""


def _traced_machines(tables: Tables) -> set[str]:
    """The names of the machines that traces were made on."""
    named = {match["host"] for path in tables.traces if (match := _LOGGED.search(path))}
    return named.union(*(tables[name]["host"].dropna() for name in ("steps", "op_times") if tables.traces))


def _redacted(report: Report, machines: set[str]) -> Report:
    """All texts at once, so that a name met in one section is unnamed in all."""
    heads: list[Block] = [Note(report.title), Note(report.subtitle)]
    heads += [Heading(section.title, section.question) for section in report.sections]
    blocks = redacted([*heads, *(block for section in report.sections for block in section.blocks)], hosts=machines)
    texts, rest = blocks[: len(heads)], iter(blocks[len(heads) :])
    sections = []
    for section, head in zip(report.sections, texts[2:], strict=True):
        assert isinstance(head, Heading)
        shown = tuple(next(rest) for _ in section.blocks)
        sections.append(replace(section, title=head.text, question=head.question, blocks=shown))
    first, second = (note.text for note in texts[:2] if isinstance(note, Note))
    return Report(first, second, tuple(sections))
