"""Tables of the app: AG Grid's community edition over frames, one unit a column, rows that choose what they show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import dash_ag_grid as dag
from dash import dcc, html

from hlotrace.app.wiring import data
from hlotrace.app.words import meaning
from hlotrace.render.palette import BUFFER_COLOURS, CATEGORY_COLOURS, colour
from hlotrace.units import Scale, column_scale, is_missing

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.views.blocks import ShownColumn

ROW_HEIGHT = 24
HEADER_HEIGHT = 36

LEAST_PATH = 150

PATHS = ("path", "places")
"""The emphases of a source: its column takes what is left of the width."""

KEEP_START = ("shape", "members", "product", "padded")
"""Of these the beginning tells more than the end."""

ORIGIN_WORDS = {
    "measured": "measured by a clock or counter",
    "compiler": "the compiler's own figure",
    "predicted": "predicted by our model",
}

_THEME = {
    "backgroundColor": "var(--surface)",
    "foregroundColor": "var(--text)",
    "headerBackgroundColor": "var(--header)",
    "headerTextColor": "var(--muted)",
    "borderColor": "var(--line)",
    "rowHoverColor": "var(--hover)",
    "selectedRowBackgroundColor": "var(--chosen)",
    "accentColor": "var(--accent)",
    "menuBackgroundColor": "var(--raised)",
    "inputBackgroundColor": "var(--surface)",
    "browserColorScheme": "inherit",
    "fontFamily": "inherit",
    "fontSize": 12,
    "headerFontSize": 11.5,
    "headerFontWeight": 600,
    "spacing": 4,
    "rowHeight": ROW_HEIGHT,
    "headerHeight": HEADER_HEIGHT,
    "cellHorizontalPadding": 8,
    "wrapperBorderRadius": 3,
    "columnBorder": False,
}


def data_grid(
    name: str,
    frame: pd.DataFrame,
    columns: Sequence[ShownColumn],
    ids: Sequence[str],
    *,
    file: str,
    title: str | list[Any] = "",
) -> html.Div:
    """A grid that holds all its rows: sorts, filters, resizes and exports in the browser.

    Args:
        ids: one a row, unique; a selection such as `op:fusion.1` makes the row choose it.
        file: the name of the CSV file that its export writes.
    """
    scales = column_scales(frame, columns)
    return framed(
        name,
        dag.AgGrid(
            id=name,
            columnDefs=[definition(column, frame, scales[column.name]) for column in columns],
            rowData=row_data(frame, columns, ids),
            **_shared(),
        ),
        [*_title(title), html.Span(f"{len(frame):,} rows", className="count")],
        [_quick(name), _export(name, file)],
    )


def endless_grid(
    name: str,
    frame: pd.DataFrame,
    columns: Sequence[ShownColumn],
    largest_first: str | None,
    tools: Sequence[Any],
    title: str,
) -> html.Div:
    """A grid whose rows come from the server as they are scrolled to.

    Args:
        frame: all rows, which give the columns their units.
        largest_first: the column by which the rows are sorted until a header is clicked; None leaves their order.
    """
    scales = column_scales(frame, columns)
    shared = _shared()
    shared["dashGridOptions"] |= {
        "rowBuffer": 20,
        "cacheBlockSize": 100,
        "maxBlocksInCache": 20,
        "infiniteInitialRowCount": 1,
        "blockLoadDebounceMillis": 30,
        # A request stands in one property of the component: a second one at the same time would replace it.
        "maxConcurrentDatasourceRequests": 1,
    }
    definitions = [definition(column, frame, scales[column.name]) for column in columns]
    for made in definitions:
        made |= {"initialSort": "desc"} if made["field"] == largest_first else {}
    grid = dag.AgGrid(
        id=name,
        rowModelType="infinite",
        columnDefs=definitions,
        **shared,
    )
    return framed(name, grid, _title(title), tools)


def first_columns(columns: Iterable[ShownColumn], names: Sequence[str]) -> list[ShownColumn]:
    """The columns, those of these names in front and in their order."""
    return sorted(columns, key=lambda column: names.index(column.name) if column.name in names else len(names))


def framed(name: str, grid: dag.AgGrid, title: Sequence[Any], tools: Sequence[Any]) -> html.Div:
    """A grid under its title and tools."""
    bar = html.Div([html.Div(list(title), className="grid-title"), *tools], className="grid-bar")
    return html.Div([bar, grid], className="grid", **data(grid=name))


def _title(title: str | list[Any]) -> list[Any]:
    """Each of its words as an element: the first gives way where there is no room."""
    parts = [title] if isinstance(title, str) else title
    return [html.Span(part, title=part) if isinstance(part, str) else part for part in parts]


def _shared() -> dict[str, Any]:
    return {
        "className": "ag",
        "style": {"height": None, "width": None},
        "getRowId": "hlotraceRowId(params.data)",
        "defaultColDef": {"sortable": True, "resizable": True, "filter": True, "minWidth": 50, "wrapHeaderText": True},
        "dashGridOptions": {
            "theme": {"function": f"themeQuartz.withParams({json.dumps(_THEME)})"},
            "rowHeight": ROW_HEIGHT,
            "headerHeight": HEADER_HEIGHT,
            "enableCellTextSelection": True,
            "ensureDomOrder": True,
            "enableBrowserTooltips": True,
            "suppressCellFocus": False,
            "animateRows": False,
            "suppressColumnMoveAnimation": True,
            "suppressScrollOnNewData": True,
            "localeText": {"noRowsToShow": "Nothing here"},
            "multiSortKey": "ctrl",
        },
    }


def _quick(name: str) -> html.Div:
    return html.Div(
        dcc.Input(type="text", placeholder="Filter rows", className="quick", debounce=False, id=f"{name}-quick"),
        className="quick-box",
        **data(quick=name),
    )


def _export(name: str, file: str) -> html.Button:
    return html.Button(
        "CSV",
        title="Save these rows as CSV",
        className="tool",
        **data(export=name, file=file),
    )


def column_scales(frame: pd.DataFrame, columns: Iterable[ShownColumn]) -> dict[str, Scale]:
    """One unit a column, chosen by its largest value."""
    return {
        column.name: column_scale(frame[column.name].tolist() if column.unit else (), column.unit) for column in columns
    }


def definition(column: ShownColumn, frame: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """AG Grid's definition of a column: unit in the header, origin in its tooltip and mark, numbers to the right."""
    if column.unit is None:
        return _text_definition(column, frame[column.name])
    suffix = f" ({scale.suffix})" if scale.suffix else ""
    made: dict[str, Any] = {
        "field": column.name,
        "headerName": f"{column.label}{suffix}",
        "headerTooltip": f"{meaning(column.label) or column.label}: {ORIGIN_WORDS[column.origin]}",
        "headerClass": f"ag-right-aligned-header from-{column.origin}",
        "cellClass": "number ag-right-aligned-cell",
        "filter": "agNumberColumnFilter",
        "filterParams": {
            "numberParser": {"function": f"hlotraceParse(params, {scale.divisor!r})"},
            "numberFormatter": {"function": f"hlotraceFormat(params, {scale.divisor!r})"},
        },
        "sortingOrder": ["desc", "asc", None],
        "valueFormatter": {"function": f"hlotraceNumber(params.value, {scale.divisor!r}, {scale.decimals})"},
        "width": max(
            _header_width(column.label + suffix) + (0 if column.origin == "compiler" else 12),
            _digits_width(frame[column.name], scale),
        ),
    }
    if column.emphasis == "bar":
        largest = max((float(value) for value in frame[column.name] if not is_missing(value)), default=0.0)
        made["cellStyle"] = {"function": f"hlotraceBar(params.value, {largest!r})"}
    return made


def _text_definition(column: ShownColumn, values: pd.Series) -> dict[str, Any]:
    made: dict[str, Any] = {
        "field": column.name,
        "headerName": column.label,
        "headerTooltip": meaning(column.label) or column.label,
        "tooltipField": column.detail or column.name,
        "cellClass": column.emphasis,
        "filter": "agTextColumnFilter",
        "valueFormatter": {"function": "hlotraceText(params.value)"},
        "width": _width(column, values),
    }
    if _keeps_end(column):
        made |= {"cellRenderer": "HlotraceTail", "cellClass": f"{column.emphasis} tail"}
    if column.emphasis in PATHS:
        made |= {"flex": 1, "minWidth": min(LEAST_PATH, made["width"])}
    if column.name in ("category", "role"):
        made["cellStyle"] = {"function": "hlotraceSwatch(params.value)"}
        made["tooltipValueGetter"] = {"function": "hlotraceMeaning(params.value)"}
    return made


def _keeps_end(column: ShownColumn) -> bool:
    """Whether its texts, where they are cut, lose their beginning."""
    return column.emphasis == "path" or (column.emphasis == "code" and column.name not in KEEP_START)


def _header_width(words: str) -> int:
    """As wide as the longest word, or half of a long header, needs: it may take two lines."""
    longest = max((len(word) for word in words.split()), default=0)
    return int(max(longest, len(words) * 0.62) * 7 + 22)


def _digits_width(values: pd.Series, scale: Scale) -> int:
    """As wide as the largest number needs."""
    known = [abs(float(value)) for value in values if not is_missing(value)]
    return int(len(scale.format(max(known, default=0.0))) * 7 + 24)


def _width(column: ShownColumn, values: pd.Series) -> int:
    """As wide as nearly all of the texts need, within limits."""
    lengths = values.dropna().astype("string").str.len()
    needed = float(lengths.quantile(0.95, interpolation="higher")) if len(lengths) else 0.0
    character = 7.0 if column.emphasis == "code" else 6.8
    widest = 300 if column.emphasis in PATHS else 150 if _keeps_end(column) else 220
    return int(max(_header_width(column.label), min(widest, needed * character + 30)))


def row_data(frame: pd.DataFrame, columns: Sequence[ShownColumn], ids: Sequence[str]) -> list[dict[str, Any]]:
    """The rows as a browser gets them: the shown columns, what tooltips say, and `id`."""
    names = list(dict.fromkeys(name for column in columns for name in (column.name, column.detail) if name))
    values = [[plain(value) for value in frame[name].tolist()] for name in names]
    rows = zip(*values, strict=True) if names else ()
    return [{"id": identity, **dict(zip(names, row, strict=True))} for identity, row in zip(ids, rows, strict=True)]


def plain(value: Any) -> Any:
    """A cell as JSON has it: null where nothing is known, a list as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) or hasattr(value, "tolist"):
        return ", ".join(str(item) for item in value)
    return None if is_missing(value) else value


def unique(ids: Iterable[str]) -> list[str]:
    """The ids, those that came before with a tab and a number behind them: AG Grid wants no two alike."""
    seen: dict[str, int] = {}
    made = []
    for identity in ids:
        count = seen.get(identity, 0)
        seen[identity] = count + 1
        made.append(f"{identity}\t{count}" if count else identity)
    return made


def row_ids(frame: pd.DataFrame, selects: str) -> list[str]:
    """What each row chooses, by what the grid says its rows are (see `Grid.selects`); else a bare number."""
    column, kind = {
        "instruction": ("instruction", "op"),
        "fusion": ("fusion", "op"),
        "buffer": ("value", "buffer"),
        "module": ("module", "module"),
    }.get(selects, ("", ""))
    if column in frame.columns:
        return unique(f"{kind}:{name}" for name in frame[column].tolist())
    return [str(index) for index in range(len(frame))]


def swatches() -> dict[str, str]:
    """CSS colours by category, for the mark in front of a category's name."""
    return {name: colour(name) for name in (*BUFFER_COLOURS, *CATEGORY_COLOURS)}
