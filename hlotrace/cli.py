"""The command line: one subcommand a verb, one line for every error.

Each command imports what it needs when it runs, so that `--help` and `--version` answer at once.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

from hlotrace import __version__
from hlotrace._console import guarded, reading, write
from hlotrace.errors import CaptureError, HlotraceError, unknown_name
from hlotrace.units import format_bytes

DATA_FORMATS = ("json", "csv")
"""What programs read: all rows, unless a number is given."""
FORMATS = ("table", *DATA_FORMATS, "md")
PIPED_WIDTH = 100
DEFAULT_CHIPS = "v4,v5e,v5p,v6e,tpu7x"

app = typer.Typer(
    name="hlotrace",
    help="See what XLA made of a model: capture it, read its HLO dumps, find where launches, time and memory go.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"hlotrace {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if debug:
        os.environ["HLOTRACE_DEBUG"] = "1"
    if context.invoked_subcommand is None:
        print(context.get_help())


PathArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="A bundle, an XLA dump directory, a profiler's log directory, one HLO file (text or .hlo.pb), one trace "
        "(.xplane.pb, .trace.json.gz), an archive of them (.tar.gz, .zip), or a remote path (gs://, s3://).",
    ),
]


@app.command()
def show(
    path: PathArgument,
    view: Annotated[
        str,
        typer.Argument(
            metavar="VIEW",
            help="summary, ops, fusions, memory, roofline, mxu, chips, profile, steps, collectives, modules "
            "or problems.",
        ),
    ] = "summary",
    module: Annotated[str | None, typer.Option(help="The module to look at; the largest when not given.")] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP",
            help="ops: opcode, category, source or scope; profile: program, category, op, fusion, source or scope.",
        ),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(help="ops, profile --by scope: levels of a scope that make one group.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="FILE:LINE", help="ops: those that come from a line, such as train.py:39, by any frame."),
    ] = None,
    fusion: Annotated[str | None, typer.Option(help="fusions: one fusion, with its members.")] = None,
    memory_space: Annotated[
        str | None, typer.Option(metavar="SPACE", help="memory: a memory space by name or number, such as vmem or 1.")
    ] = None,
    at: Annotated[int | None, typer.Option(help="memory: a schedule position; the peak when not given.")] = None,
    model_flops: Annotated[
        int | None, typer.Option(metavar="N", help="roofline: FLOPs of one run on one device, for the MFU.")
    ] = None,
    top: Annotated[int | None, typer.Option(help="How many rows to show; 0 shows all, as json and csv do.")] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="table, json (a list of records), csv or md.")
    ] = "table",
) -> None:
    """Print one view of a capture: the summary, or the view that is named."""
    from hlotrace.views.registry import view_named

    if form not in FORMATS:
        raise unknown_name("format", form, FORMATS, place="--format")
    if top is not None and top < 0:
        raise HlotraceError("expected a number of rows, or 0 for all", place=f"--top {top}")
    chosen = view_named(view)
    given = {
        "module": module,
        "by": by,
        "depth": depth,
        "source": source,
        "fusion": fusion,
        "memory_space": memory_space,
        "at": at,
        "model_flops": model_flops,
        "top": top,
    }
    values = {name: value for name, value in given.items() if value is not None}
    known = {parameter.name: parameter.option for parameter in chosen.parameters}
    if form in DATA_FORMATS and "top" in known:
        values.setdefault("top", 0)
    for name in values:
        if name not in known:
            raise HlotraceError(
                f"the view {chosen.name} has no such option",
                place=f"--{name.replace('_', '-')}",
                remedy=f"It takes: {', '.join(f'--{option}' for option in known.values())}.",
            )
    write(_drawn(path, chosen.name, values, form))


def _drawn(
    path: str, view: str, values: dict[str, str | int], form: str, stream: TextIO | None = None, *, stays: bool = True
) -> str:
    """A view of a path as text; of one that does not stay without the commands that would open it again."""
    from hlotrace.load import load
    from hlotrace.views.blocks import Note
    from hlotrace.views.registry import view_named

    blocks = view_named(view).build(load(path, progress=reading()), **values)
    if not stays:
        blocks = [block for block in blocks if not (isinstance(block, Note) and block.command)]
    if form == "json":
        from hlotrace.render.records import to_json

        return to_json(blocks)
    if form == "csv":
        from hlotrace.render.records import to_csv
        from hlotrace.tables import ALL_TABLES

        return to_csv(blocks, ALL_TABLES[view].arrow_schema().names if view in ALL_TABLES else ())
    if form == "md":
        from hlotrace.render import markdown

        return markdown.render(blocks)
    from hlotrace.render.text import draw

    return draw(
        blocks, width=shutil.get_terminal_size((PIPED_WIDTH, 24)).columns, color=_wants_color(stream or sys.stdout)
    )


@app.command()
def report(
    path: PathArgument,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="The file to write: .html, or .md for an issue comment.")
    ] = Path("report.html"),
    module: Annotated[str | None, typer.Option(help="One module; the largest few when not given.")] = None,
    redact: Annotated[
        bool, typer.Option("--redact/--no-redact", help="Take home directories, user and host names out.")
    ] = True,
) -> None:
    """Write everything into one file that opens without a network: HTML, or Markdown for an issue."""
    from hlotrace.load import load
    from hlotrace.render.report import write_report

    write_report(load(path, progress=reading()), out, module=module, redact=redact)
    write(f"{out}  {format_bytes(out.stat().st_size)}\n")


@app.command()
def view(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help="What `show` takes, one or several.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port on 127.0.0.1; 8050, or a free one, when not given.")
    ] = None,
    sample: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Open a sample that comes with hlotrace; repeatable.")
    ] = None,
) -> None:
    """Open the app in this machine's browser; nothing leaves the machine."""
    from hlotrace.sample_dumps import path_of

    opened = [*(paths or []), *(str(path_of(name)) for name in sample or [])]
    if not opened:
        raise HlotraceError("nothing to view", remedy="Give a PATH, or --sample NAME.")
    from hlotrace.load import load

    tables = {name: load(path, progress=reading()) for name, path in zip(_distinct_names(opened), opened, strict=True)}
    from hlotrace.app.factory import create_app
    from hlotrace.app.server import serve

    serve(create_app(tables), port, announce=lambda url: print(f"{url}  (Ctrl-C ends it)", flush=True))


def _distinct_names(paths: list[str]) -> list[str]:
    """The last part of each path, with more of it in front where two end alike."""
    parts = [[part for part in path.replace("\\", "/").split("/") if part] or [path] for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


@app.command()
def capture(
    model: Annotated[str | None, typer.Argument(metavar="MODEL.py", help="Any script, run unchanged.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARGS", help="The script's own arguments, after --.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Where the bundle goes; NAME.hlotrace when not given."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET",
            help="Compile for a TPU that need not be here, such as v5e, v5e:2x2, v6e-8 or 2xv6e:4x4; repeatable.",
        ),
    ] = None,
    entry: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Instead of MODEL.py: a function that returns (fn, args)."),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps in the profiler's trace; 0 makes no trace.")] = 3,
    passes: Annotated[bool, typer.Option("--passes", help="Dump the module after every pass too.")] = False,
    run: Annotated[bool, typer.Option("--run", help="With --target: run on fake CPU devices as well.")] = False,
    python: Annotated[
        str | None, typer.Option(metavar="EXE", help="Capture with this interpreter and its jax.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a bundle that is there.")] = False,
) -> None:
    """Run a script and keep what XLA makes of every program it compiles."""
    from hlotrace.capture.run import CaptureOptions, run_capture

    words = list(arguments or [])
    if entry is not None and model is not None:
        words, model = _arguments_of_entry([model, *words]), None
    options = CaptureOptions(
        script=Path(model) if model is not None else None,
        arguments=tuple(words),
        entry=entry,
        out=out,
        targets=tuple(target or []),
        steps=steps,
        passes=passes,
        run=run,
        python=python,
        force=force,
    )
    captured = run_capture(options)
    count = len(captured.manifest.programs)
    print(f"hlotrace: {count} program{'s' if count != 1 else ''} in {captured.path}", file=sys.stderr)
    if not captured.interrupted:
        _summarise(captured.path)
    raise typer.Exit(captured.exit_code)


def _arguments_of_entry(words: list[str]) -> list[str]:
    """What follows `--entry`, unless it is a script that the user meant."""
    after = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    if words != after and (words[0].endswith(".py") or Path(words[0]).is_file()):
        raise CaptureError(
            "give this script or --entry, one of the two", place=words[0], remedy="The entry's arguments come after --."
        )
    return words


@app.command()
def chips(
    model: Annotated[str | None, typer.Argument(metavar="MODEL.py", help="Any script, run unchanged.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARGS", help="The script's own arguments, after --.")
    ] = None,
    targets: Annotated[
        str, typer.Option(metavar="T,T,…", help="What to compile for: words as `capture --target` takes them.")
    ] = DEFAULT_CHIPS,
    entry: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Instead of MODEL.py: a function that returns (fn, args)."),
    ] = None,
    module: Annotated[str | None, typer.Option(help="The program to compare; the largest when not given.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Keep the bundle there, for `show`, `view`, `report`."),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="table, json (a record a chip), csv or md.")
    ] = "table",
    python: Annotated[
        str | None, typer.Option(metavar="EXE", help="Capture with this interpreter and its jax.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a bundle that is there.")] = False,
) -> None:
    """Compile a script for several TPUs that need not be here, and compare them: fit, time, use of the chip.

    Ends with 1 when one of the targets has no executable; its row says why.
    """
    from hlotrace.capture.run import CaptureOptions, run_capture

    if form not in FORMATS:
        raise unknown_name("format", form, FORMATS, place="--format")
    words = tuple(word for word in (part.strip() for part in targets.split(",")) if word)
    if not words:
        raise HlotraceError("expected targets separated by commas, such as v5e,v6e", place="--targets")
    rest = list(arguments or [])
    if entry is not None and model is not None:
        rest, model = _arguments_of_entry([model, *rest]), None
    with tempfile.TemporaryDirectory(prefix="hlotrace-chips-") as scratch:
        options = CaptureOptions(
            script=Path(model) if model is not None else None,
            arguments=tuple(rest),
            entry=entry,
            out=out or Path(scratch) / "chips",
            targets=words,
            python=python,
            force=force,
            every_target=True,
            output_to_stderr=True,
        )
        captured = run_capture(options)
        values: dict[str, str | int] = {"module": module} if module else {}
        write(_drawn(_short(captured.path), "chips", values, form, stays=out is not None))
    where = captured.path if out is not None else "the bundle is not kept; -o DIR keeps it for show, view and report"
    print(f"hlotrace: {where}", file=sys.stderr)
    lacking = any(program.failure for program in captured.manifest.programs)
    lacking |= any(target.error for target in captured.manifest.targets)
    raise typer.Exit(captured.exit_code or int(lacking))


def _summarise(path: Path) -> None:
    """The summary of a fresh bundle, on stderr: the script's own output has stdout to itself.

    The bundle is whole, so that nothing that goes wrong here may change the exit code, which is the script's.
    """
    try:
        text = _drawn(_short(path), "summary", {}, "table", sys.stderr)
    except Exception as error:
        reason = str(error).partition("\n")[0]
        print(f"hlotrace: no summary: {reason} `hlotrace show {_short(path)}` says more.", file=sys.stderr)
    else:
        print(f"\n{text}", end="", file=sys.stderr)


def _short(path: Path) -> str:
    """A path as people would type it: relative when it is below the current directory."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _wants_color(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def main() -> NoReturn:
    """Run the command line and exit: 0, 2 a mistake to mend, 70 a bug of ours."""
    sys.exit(guarded(lambda: app(standalone_mode=False, prog_name="hlotrace")))
