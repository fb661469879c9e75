"""The command line: what each command prints, and the one line of each mistake."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hlotrace import __version__, _console, cli, native
from hlotrace.tables import ALL_TABLES
from hlotrace.views.registry import VIEWS

DATA = Path(__file__).parent / "data"
V5E = str(DATA / "scan-v5e")
Run = Callable[..., "Done"]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    cache = tmp_path_factory.mktemp("cache")
    return {"HLOTRACE_CACHE_DIR": str(cache), "COLUMNS": "100", "PYTHONIOENCODING": "utf-8", "HLOTRACE_DEBUG": ""}


@pytest.fixture
def run(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process."""

    def start(*words: object, **more: str) -> Done:
        for name, value in (environment | more).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["hlotrace", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert isinstance(caught.value.code, int)
        return Done(caught.value.code, *capsys.readouterr())

    return start


@pytest.fixture
def process(environment: dict[str, str]) -> Run:
    """Run the command line in a process of its own."""

    def start(*words: object, **more: str) -> Done:
        command = [sys.executable, "-m", "hlotrace", *map(str, words)]
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", env=os.environ | environment | more, timeout=300
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return start


def mistake(done: Done) -> str:
    """The one line on stderr of a command that ended with 2 and printed nothing else."""
    assert (done.returncode, done.stdout) == (2, ""), done
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("hlotrace: ")
    return lines[0].removeprefix("hlotrace: ")


# What answers at once


def test_the_version(process: Run) -> None:
    done = process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"hlotrace {__version__}\n", "")


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_alone_it_prints_help(process: Run, words: tuple[str, ...]) -> None:
    done = process(*words)
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("show", "report", "view", "capture"))


@pytest.mark.parametrize("command", ["show", "report", "view", "capture"])
def test_every_command_has_help(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: hlotrace {command} [OPTIONS]")


def test_help_and_version_import_nothing_heavy() -> None:
    code = (
        "import sys\nfrom hlotrace import cli\nsys.argv[1:] = ['show', '--help']\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        "print(sorted(set(sys.modules) & {'pandas', 'pyarrow', 'numpy', 'numba', 'rich', 'dash', 'fsspec', 'jax'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_show_declares_every_parameter_of_every_view() -> None:
    command = next(item for item in cli.app.registered_commands if item.callback is cli.show)
    assert command.callback is not None
    declared = set(command.callback.__annotations__)
    assert {parameter.name for view in VIEWS for parameter in view.parameters} <= declared


# show


@pytest.mark.parametrize("view", [view.name for view in VIEWS])
@pytest.mark.parametrize("form", cli.FORMATS)
def test_every_view_prints_in_every_format(run: Run, view: str, form: str) -> None:
    done = run("show", V5E, view, "--format", form)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n")
    assert "\x1b" not in done.stdout


def test_the_summary_is_the_default_and_at_most_forty_lines(run: Run) -> None:
    done = run("show", V5E)
    assert done.stdout == run("show", V5E, "summary").stdout
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= 100 for line in lines if "$ " not in line)


def test_json_is_a_list_of_records_with_the_tables_column_names(run: Run) -> None:
    rows = json.loads(run("show", V5E, "fusions", "--format", "json", "--top", 0).stdout)
    assert rows
    assert set(ALL_TABLES["fusions"].column_names) <= set(rows[0])
    assert all(isinstance(row["output_bytes"], int) for row in rows)
    assert all(isinstance(row["member_opcodes"], list) for row in rows)


def test_csv_has_the_same_rows_as_json(run: Run) -> None:
    rows = json.loads(run("show", V5E, "ops", "--format", "json").stdout)
    table = list(csv.DictReader(io.StringIO(run("show", V5E, "ops", "--format", "csv").stdout)))
    assert [row["category"] for row in table] == [row["category"] for row in rows]
    assert [row["before"] or None for row in table] == [
        None if row["before"] is None else str(row["before"]) for row in rows
    ]


def test_top_cuts_and_zero_shows_all(run: Run) -> None:
    def rows(top: int) -> int:
        return len(json.loads(run("show", V5E, "ops", "--by", "opcode", "--top", top, "--format", "json").stdout))

    assert rows(3) == 3
    assert rows(0) > 10


def test_no_color_and_pipes_give_plain_text(run: Run) -> None:
    assert "\x1b" not in run("show", V5E, NO_COLOR="1").stdout


def test_a_terminal_that_knows_only_ascii_gets_an_answer(process: Run) -> None:
    done = process("show", V5E, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_narrow_terminal_gets_narrow_lines(run: Run) -> None:
    lines = run("show", V5E, "fusions", COLUMNS="60").stdout.splitlines()
    assert all(len(line) <= 60 for line in lines if "$ " not in line)


# Mistakes in show


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("show",), "Missing argument 'PATH'. See: hlotrace show --help"),
        (("shwo",), "No such command 'shwo'. Did you mean 'show'. See: hlotrace --help"),
        (
            ("show", V5E, "memroy"),
            "no view is named 'memroy'. Known: memory, summary, ops, fusions, roofline, mxu, chips, modules, problems.",
        ),
        (("show", V5E, "--format", "xml"), "--format: no format is named 'xml'. Known: md, table, json, csv."),
        (("show", V5E, "--top", "-1"), "--top -1: expected a number of rows, or 0 for all."),
        (
            ("show", V5E, "memory", "--by", "scope"),
            "--by: the view memory has no such option. It takes: --module, --memory-space, --at, --top.",
        ),
        (
            ("show", V5E, "ops", "--by", "opcod"),
            "no value of --by is named 'opcod'. Known: opcode, scope, category, source.",
        ),
        (("show", V5E, "--module", "jit_modle"), "--module: no module is named 'jit_modle'. Known: jit_model."),
        (("show", "nowhere/at/all"), "nowhere/at/all: no such file or directory."),
        (("view",), "nothing to view. Give a PATH, or --sample NAME."),
    ],
)
def test_a_mistake_is_one_line(run: Run, words: tuple[str, ...], line: str) -> None:
    assert mistake(run(*words)) == line


def test_a_number_that_is_none_is_one_line(run: Run) -> None:
    assert "--top" in mistake(run("show", V5E, "--top", "many"))


def test_a_file_that_is_not_hlo_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.hlo.pb").write_bytes(b"")
    assert "expected HLO, found an empty file (0 bytes)" in mistake(run("show", tmp_path / "empty.hlo.pb"))


def test_a_path_with_odd_characters_is_named_as_it_is(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a [bold]é b.hlo"
    path.write_text("HloModule m\n\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n", encoding="utf-8")
    assert run("show", path).returncode == 0
    assert "[bold]é c.hlo" in mistake(run("show", tmp_path / "[bold]é c.hlo"))


def test_debug_shows_the_traceback_and_the_line(process: Run) -> None:
    done = process("--debug", "show", "nowhere")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("hlotrace: nowhere: no such file")


def test_a_bug_is_one_line_that_asks_for_a_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("missing")

    monkeypatch.setenv("HLOTRACE_DEBUG", "")
    monkeypatch.setattr("hlotrace.load.load", broken)
    monkeypatch.setattr(sys, "argv", ["hlotrace", "show", V5E])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == _console.BUG
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("hlotrace: a bug in hlotrace: KeyError: 'missing' at ")
    assert "Please report it" in lines[0]


def test_a_reader_that_leaves_early_ends_it_quietly(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "hlotrace", "show", V5E, "ops", "--top", "0", "--format", "json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, _console.BROKEN_PIPE)


def test_progress_shows_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _console.reading() is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(_console, "PATIENCE", -1.0)
    monkeypatch.setattr(native, "before_compiling", [])
    show = _console.reading()
    assert show is not None
    show(1, 2)
    assert "reading modules: 1 of 2" in capsys.readouterr().err
    (tell_of_compiling,) = native.before_compiling
    tell_of_compiling()
    assert "once" in capsys.readouterr().err
    show(2, 2)
    assert "reading" not in capsys.readouterr().err


# report


def test_a_report_is_one_file(run: Run, tmp_path: Path) -> None:
    for name in ("report.html", "report.md"):
        done = run("report", V5E, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert "jit_model" in (tmp_path / name).read_text(encoding="utf-8").replace("\\_", "_")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("report.pdf", "report.pdf: expected a name that ends in .html or .htm or .md."),
        (
            "no/such/folder/report.html",
            "no/such/folder/report.html: cannot write the report: No such file or directory.",
        ),
    ],
)
def test_a_report_that_cannot_be_written_is_one_line(run: Run, name: str, line: str) -> None:
    assert mistake(run("report", V5E, "-o", name)) == line


# view


def test_view_serves_on_this_machine_until_it_is_interrupted(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "hlotrace", "view", V5E, "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | environment, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("http://127.0.0.1:")
            port = int(line.split(":")[2].split("/")[0])
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert connection.recv(64).startswith(b"HTTP/1.")
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0


def test_a_port_that_is_taken_is_one_line(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} cannot be used" in mistake(run("view", V5E, "--port", port))


def test_paths_that_end_alike_get_names_that_differ() -> None:
    assert cli._distinct_names(["a/x", "b/x"]) == ["a/x", "b/x"]
    assert cli._distinct_names(["a/x", "b/y/"]) == ["x", "y"]
    assert len(set(cli._distinct_names(["x", "x"]))) == 2


# capture


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("capture",), "expected a script or --entry module:function"),
        (("capture", "nowhere.py"), "nowhere.py: no such file"),
        (("capture", "x.py", "--lr", "3"), "A script's own arguments come after --."),
    ],
)
def test_a_mistake_in_capture_is_one_line(run: Run, words: tuple[str, ...], part: str) -> None:
    assert part in mistake(run(*words))


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupted)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == _console.INTERRUPTED
    assert capsys.readouterr() == ("", "")
