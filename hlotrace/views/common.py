"""What several views share: reading one module's rows, commands to run next, problems at the end."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hlotrace.analyses.modules import chosen_module
from hlotrace.tables import to_frame
from hlotrace.views.blocks import Block, Heading, Note, ShownColumn

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.views.view import Tables


def rows_of(tables: Tables, name: str, module: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The rows of one module in a table; only `columns` where they are given, which saves most of the time."""
    return to_frame(tables.select(module).arrow(name, columns))


def opening(tables: Tables, module: str | None, question: str) -> tuple[dict[str, Any], list[Block]]:
    """The module that a view is about, and the blocks that say so."""
    modules = tables["modules"]
    row = chosen_module(modules, module)
    blocks: list[Block] = [Heading(title(row), question)]
    if module is None and len(modules) > 1:
        text = f"The largest of {len(modules)} modules."
        blocks.append(Note(text, command=command(tables, "modules")))
    return row, blocks


def title(module: dict[str, Any]) -> str:
    """A module as headings name it: `jit_layer on v5e:2x2`."""
    where = module["target"] or module["device_kind"] or module["platform"]
    name, unique = str(module["name"]), str(module["module"])
    if not where:
        return unique
    # `jit_f@v5e_2x2` says no more than `jit_f on v5e:2x2`; a second of the same name does.
    number = unique.removeprefix(f"{name}@{re.sub(r'[^A-Za-z0-9._-]', '_', where)}")
    plain = name if number == "" else f"{name} ({unique})" if unique != name else name
    return f"{plain} on {where}"


def command(tables: Tables, view: str, module: str | None = None, **options: object) -> str:
    """The command line that shows a view of what is open."""
    words = ["hlotrace", "show", tables.path, view]
    if module is not None:
        words += ["--module", module]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)


def module_option(tables: Tables, module: dict[str, Any]) -> str | None:
    """The module to name in a command; None where it is the one that commands take by themselves."""
    return None if chosen_module(tables["modules"])["module"] == module["module"] else str(module["module"])


def problems_tail(tables: Tables) -> list[Note]:
    """One line that counts the problems, when there are some."""
    count = len(tables["problems"])
    if not count:
        return []
    what = "1 problem was" if count == 1 else f"{count:,} problems were"
    return [Note(f"{what} met in reading this.", "warning", command(tables, "problems"))]


def cut(frame: pd.DataFrame, top: int | None) -> pd.DataFrame:
    """The first `top` rows; all of them for 0."""
    return frame.head(top) if top else frame


def telling(frame: pd.DataFrame, columns: Sequence[ShownColumn]) -> tuple[ShownColumn, ...]:
    """The columns that say something here: not those that are all unknown, nor runs where everything runs once."""
    known = (column for column in columns if frame[column.name].notna().any())
    return tuple(c for c in known if c.name != "execution_count" or (frame[c.name].fillna(0) != 1).any())


def with_source(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with `source`, as `file:line`; null where the compiler recorded none."""
    return frame.assign(source=frame["source_file"] + ":" + frame["source_line"].astype("string"))
