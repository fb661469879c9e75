"""The parent of a capture: what it refuses, what it passes through, and what is left when things go wrong."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hlotrace.bundle import read_manifest
from hlotrace.capture.run import Captured, CaptureOptions, run_capture
from hlotrace.errors import CaptureError

# Stands for a Python with jax: answers the parent's question, and as a child does what its script's name says.
FAKE_PYTHON = """#!{python}
import json, os, signal, sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from hlotrace import bundle
from hlotrace.capture.spec import CaptureSpec, ChildResult, Event

if sys.argv[1] == "-c":
    print(json.dumps({{"python": "3.12.0", "packages": {packages!r}}}))
    sys.exit()

spec = CaptureSpec.from_json(Path(sys.argv[2]).read_text())
staging = Path(spec.staging)
target = spec.target.target if spec.target else "cpu"

def say(stage, **fields):
    os.write(spec.progress_fd, Event(stage, target=target, **fields).to_line())

def compiled(name):
    module = name + "@" + target.replace(":", "_")
    (staging / "programs" / module).mkdir(parents=True)
    (staging / "programs" / module / "module_0001.x.after_optimizations.txt").write_text("HloModule x")
    programs.append(bundle.Program(module, name, name, None, target, "cpu", "cpu", 1))
    left()

def left(**fields):
    others = [bundle.OtherCompile("jit_iota", "eager", 2)]
    ChildResult(programs=programs, other_compiles=others, default_backend="cpu", **fields).write(staging)

programs = []
what = Path(spec.script).stem
if what != "nothing":
    compiled("jit_first")
if what == "segfault":
    (staging / "programs" / "jit_cut_off@cpu").mkdir()
    say("compile", function="jit_second@cpu")
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGSEGV)
if what == "leaves":
    os._exit(9)
if what == "killed_at_once":
    os.kill(os.getpid(), signal.SIGKILL)
if what == "waits":
    say("compile", function="jit_second@cpu")
    print("waiting", flush=True)
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        left(exit_code=130)
        sys.exit(130)
if what == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("waiting", flush=True)
    time.sleep(60)
if what == "wants_16" and spec.target.device_count < 16:
    say("needs_devices", detail="16")
    time.sleep(0.5)
    left(finished=True, exit_code=1, script_error="ValueError: too few devices")
    sys.exit(1)
if what == "grandchild":
    import subprocess
    subprocess.Popen(["sleep", "30"], close_fds=False, pass_fds=(spec.progress_fd,))
left(finished=True, exit_code=0)
"""


@pytest.fixture
def fake_python(tmp_path: Path) -> str:
    return _fake_python(tmp_path / "fake-python", {"jax": "0.12.0", "libtpu": "0.0.50"})


def _fake_python(path: Path, packages: dict[str, str]) -> str:
    root = str(Path(__file__).parent.parent)
    path.write_text(FAKE_PYTHON.format(python=sys.executable, root=root, packages=packages))
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text("import jax\nprint(float(jax.jit(lambda x: x + 1)(1.0)))\n")
    return path


def _message(options: CaptureOptions) -> str:
    with pytest.raises(CaptureError) as caught:
        run_capture(replace(options, quiet=True))
    assert caught.value.exit_code == 2
    message = str(caught.value)
    assert "\n" not in message
    return message


def _fake_capture(what: str, fake_python: str, out: Path, **options: object) -> Captured:
    path = out.with_name(f"{what}.py")
    path.touch()
    return run_capture(CaptureOptions(script=path, python=fake_python, out=out, **options))  # type: ignore[arg-type]


def _hidden(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name.startswith(".")]


# -- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (CaptureOptions(script=Path("nowhere.py")), "nowhere.py: no such file. Give the path of a Python file."),
        (
            CaptureOptions(script=Path("/tmp")),
            "/tmp: this is a directory, not a Python file. Give the path of a Python file.",
        ),
        (CaptureOptions(), "expected a script or --entry module:function, one of the two."),
        (
            CaptureOptions(script=Path("a.py"), entry="a:f"),
            "expected a script or --entry module:function, one of the two.",
        ),
        (
            CaptureOptions(entry="f"),
            "--entry f: expected module:function or file.py:function. It names a function that returns (fn, args).",
        ),
        (CaptureOptions(script=Path(__file__), steps=-1), "--steps -1: expected a number of steps, 0 or more."),
        (CaptureOptions(script=Path(__file__), run=True), "--run: without --target the programs are run anyway."),
        (
            CaptureOptions(script=Path(__file__), python="/nowhere/python"),
            "--python /nowhere/python: no such interpreter. Give the path of a python.",
        ),
    ],
)
def test_what_cannot_be_captured_is_refused_in_one_line(options: CaptureOptions, message: str) -> None:
    assert _message(options) == message


def test_an_unknown_target_is_refused_before_anything_is_looked_at() -> None:
    message = _message(CaptureOptions(script=Path("nowhere.py"), targets=("v5x:2x2",)))
    assert message.startswith("no target is named 'v5x:2x2'. Known: v5e:2x2, ")


def test_what_is_no_python_is_refused(tmp_path: Path, script: Path) -> None:
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho oh no >&2; exit 3\n")
    other.chmod(0o755)
    assert (
        _message(CaptureOptions(script=script, python=str(other))) == f"{other}: expected a Python interpreter: oh no."
    )


def test_a_python_that_is_too_old_is_refused(tmp_path: Path, script: Path) -> None:
    other = tmp_path / "python3.8"
    other.write_text("""#!/bin/sh\necho '{"python": "3.8.10", "packages": {}}'\n""")
    other.chmod(0o755)
    assert _message(CaptureOptions(script=script, python=str(other))) == (
        f"{other}: expected Python 3.11 or newer, found 3.8.10."
    )


def test_a_python_without_jax_is_refused_with_the_command_that_installs_it(tmp_path: Path, script: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    assert _message(CaptureOptions(script=script, python=str(python))) == (
        f"{python}: jax is not installed there. Install it: {python} -m pip install 'jax'."
    )


def test_a_target_without_libtpu_is_refused_with_the_command_that_installs_it(
    tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    python = _fake_python(tmp_path / "python", {"jax": "0.12.0"})
    assert _message(CaptureOptions(script=script, python=python, targets=("v5e",))) == (
        f"{python}: libtpu, the TPU compiler, is not installed there. "
        f"Install it: {python} -m pip install 'jax[tpu]==0.12.0'."
    )


def test_a_bundle_is_not_overwritten_and_force_replaces_it(fake_python: str, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    _fake_capture("whole", fake_python, out)
    (out / "mark").touch()
    message = _message(CaptureOptions(script=tmp_path / "whole.py", python=fake_python, out=out))
    assert message == f"{out}: there is a bundle already. Replace it with --force, or give another place with -o."
    assert (out / "mark").exists()
    _fake_capture("whole", fake_python, out, force=True)
    assert not (out / "mark").exists()
    assert _hidden(tmp_path) == []


def test_force_keeps_the_old_bundle_when_the_new_capture_fails(fake_python: str, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    _fake_capture("whole", fake_python, out)
    with pytest.raises(CaptureError, match="nothing was compiled"):
        _fake_capture("nothing", fake_python, out, force=True)
    assert read_manifest(out).status == "complete"
    assert _hidden(tmp_path) == []


def test_what_is_no_bundle_is_left_alone_even_with_force(fake_python: str, tmp_path: Path) -> None:
    out = tmp_path / "precious"
    out.mkdir()
    (out / "thesis.tex").touch()
    for force in (False, True):
        with pytest.raises(CaptureError, match=r"what is there is no bundle, and is left alone"):
            _fake_capture("whole", fake_python, out, force=force)
    assert (out / "thesis.tex").exists()


def test_an_empty_directory_becomes_the_bundle(fake_python: str, tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    assert _fake_capture("whole", fake_python, tmp_path / "bundle").path == tmp_path / "bundle"


def test_a_place_that_cannot_be_written_is_told(fake_python: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "whole.py").touch()
    out = tmp_path / "file" / "bundle"
    message = _message(CaptureOptions(script=tmp_path / "whole.py", python=fake_python, out=out))
    assert message == f"{out}: {tmp_path / 'file'} is no directory. Give another place with -o."


# -- how children end


def test_a_compiler_that_crashes_is_told_in_one_line_and_what_was_finished_is_kept(
    fake_python: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    captured = _fake_capture("segfault", fake_python, tmp_path / "bundle")
    line = next(line for line in capfd.readouterr().err.splitlines() if "SIGSEGV" in line)
    assert line.endswith("while compiling jit_second for cpu")
    assert captured.exit_code == 128 + signal.SIGSEGV
    manifest = read_manifest(captured.path)
    assert manifest.status == "partial"
    assert [program.name for program in manifest.programs] == ["jit_first"]
    assert [path.name for path in (captured.path / "programs").iterdir()] == ["jit_first@cpu"]
    assert any("SIGSEGV" in note for note in manifest.notes)


def test_a_child_killed_for_memory_is_told(fake_python: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    captured = _fake_capture("killed_at_once", fake_python, tmp_path / "bundle")
    assert "was killed (SIGKILL), which the kernel does when memory runs out" in capfd.readouterr().err
    assert captured.exit_code == 137


def test_a_script_that_ends_itself_in_the_middle_leaves_what_was_finished(
    fake_python: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    captured = _fake_capture("leaves", fake_python, tmp_path / "bundle")
    assert "ended with exit code 9 in its middle" in capfd.readouterr().err
    assert captured.exit_code == 9
    assert captured.manifest.status == "partial"


def test_nothing_compiled_is_an_error_that_says_what_was(fake_python: str, tmp_path: Path) -> None:
    with pytest.raises(
        CaptureError, match=r"nothing was compiled but 2 eager operations .*Call a function under jax.jit"
    ):
        _fake_capture("nothing", fake_python, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()
    assert _hidden(tmp_path) == []


def test_a_bare_generation_is_tried_again_with_as_many_devices_as_the_script_wants(
    fake_python: str, tmp_path: Path
) -> None:
    captured = _fake_capture("wants_16", fake_python, tmp_path / "bundle", targets=("v5e", "v5p"))
    manifest = read_manifest(captured.path)
    assert captured.exit_code == 0
    assert manifest.status == "complete"
    assert [target.target for target in manifest.targets] == ["v5e:4x4", "v5p:2x2x4"]
    assert [program.target for program in manifest.programs] == ["v5e:4x4", "v5p:2x2x4"]
    assert "the smallest that holds the 16 devices" in manifest.targets[0].reason
    assert sorted(path.name for path in (captured.path / "programs").iterdir()) == [
        "jit_first@v5e_4x4",
        "jit_first@v5p_2x2x4",
    ]
    assert manifest.other_compiles[0].count == 2


def test_a_topology_that_is_too_small_is_told_with_what_would_do(
    fake_python: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    captured = _fake_capture("wants_16", fake_python, tmp_path / "bundle", targets=("v5e:2x2",))
    assert captured.exit_code == 1
    assert "wants 16 devices, and v5e:2x2 has 4. Ask for a larger slice, or for --target v5e" in capfd.readouterr().err
    assert read_manifest(captured.path).status == "partial"


def test_one_topology_by_two_names_is_captured_once(fake_python: str, tmp_path: Path) -> None:
    captured = _fake_capture("whole", fake_python, tmp_path / "bundle", targets=("v5e-16", "v5e:4x4"))
    assert [target.target for target in captured.manifest.targets] == ["v5e:4x4"]


def test_a_process_that_the_script_leaves_behind_does_not_hold_the_capture_up(fake_python: str, tmp_path: Path) -> None:
    start = time.monotonic()
    _fake_capture("grandchild", fake_python, tmp_path / "bundle")
    assert time.monotonic() - start < 20


# -- interrupts


def _start(arguments: list[str], tmp_path: Path, **popen: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "hlotrace", "capture", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=popen.pop("stdin", subprocess.DEVNULL),  # type: ignore[arg-type]
        text=True,
        **popen,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_was_finished_as_partial(number: int, fake_python: str, tmp_path: Path) -> None:
    (tmp_path / "waits.py").touch()
    running = _start(["waits.py", "--python", fake_python, "-o", "bundle"], tmp_path)
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    running.send_signal(number)
    _, stderr = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "interrupted; what is finished is kept" in stderr
    manifest = read_manifest(tmp_path / "bundle")
    assert manifest.status == "partial"
    assert [program.name for program in manifest.programs] == ["jit_first"]


def test_a_second_interrupt_stops_a_child_that_does_not_listen(fake_python: str, tmp_path: Path) -> None:
    (tmp_path / "deaf.py").touch()
    running = _start(["deaf.py", "--python", fake_python, "-o", "bundle"], tmp_path)
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    running.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert running.poll() is None
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode == 130
    assert read_manifest(tmp_path / "bundle").status == "partial"


def test_on_a_terminal_there_is_one_live_line_and_ctrl_c_reaches_the_script(fake_python: str, tmp_path: Path) -> None:
    (tmp_path / "waits.py").touch()
    command = [sys.executable, "-m", "hlotrace", "capture", "waits.py", "--python", fake_python, "-o", "bundle"]
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, command)
    seen = b""
    while b"compiling jit_second for cpu  1." not in seen:
        seen += os.read(terminal, 1 << 12)
    assert b"\r\x1b[Khlotrace: compiling jit_second for cpu  0." in seen
    os.write(terminal, b"\x03")
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 1 << 12):
            seen += part
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert b"interrupted; what is finished is kept" in seen
    assert read_manifest(tmp_path / "bundle").status == "partial"


# -- real scripts


def _capture(tmp_path: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hlotrace", "capture", *arguments],
        cwd=tmp_path,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_output_input_arguments_and_exit_code_pass_through(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import sys, jax\n"
        "print('out', sys.stdin.read(), sys.argv, __name__)\n"
        "print('err', file=sys.stderr)\n"
        "jax.jit(lambda x: x + 1)(1.0)\n"
        "sys.exit(7)\n"
    )
    done = _capture(tmp_path, "model.py", "--steps", "0", "--", "--lr", "3", stdin="typed")
    assert done.stdout.splitlines()[0] == "out typed ['model.py', '--lr', '3'] __main__"
    assert "err\n" in done.stderr
    assert done.returncode == 7
    manifest = read_manifest(tmp_path / "model.hlotrace")
    assert manifest.status == "complete"
    assert manifest.exit_code == 7
    assert manifest.argv == ["model.py", "--lr", "3"]
    assert {"hlotrace", "python", "jax", "jaxlib"} <= set(manifest.versions)
    assert not list(tmp_path.glob("model.hlotrace/*.json.part"))
    kept = sorted(path.name for path in (tmp_path / "model.hlotrace").iterdir() if not path.name.startswith("."))
    assert kept == ["manifest.json", "programs"]


def test_a_script_that_raises_shows_its_own_traceback_and_then_our_line(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import jax\njax.jit(lambda x: x + 1)(1.0)\nraise ValueError('bad data')\n")
    done = _capture(tmp_path, "model.py", "--steps", "0", "-o", "bundle")
    lines = done.stderr.splitlines()
    assert "hlotrace: model.py raised ValueError: bad data" in lines
    assert lines.index("ValueError: bad data") < lines.index("hlotrace: model.py raised ValueError: bad data")
    assert "hlotrace/capture" not in done.stderr
    assert done.returncode == 1
    assert read_manifest(tmp_path / "bundle").status == "partial"


def test_a_script_that_raises_before_it_compiles_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("1 / 0\n")
    done = _capture(tmp_path, "model.py", "-o", "bundle")
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "hlotrace: model.py raised ZeroDivisionError: division by zero; "
        "nothing was compiled before that, and nothing is kept."
    )
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == [tmp_path / "model.py"]


def test_an_entry_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "entries.py").write_text("def make(): ...\n")
    done = _capture(tmp_path, "--entry", "entries:mke", "-o", "bundle")
    assert done.stderr.splitlines() == ["hlotrace: entry entries:mke: no function is named 'mke'. Known: make."]
    assert done.returncode == 2


def test_a_script_that_compiles_nothing_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import jax.numpy as jnp\njnp.ones(3) + 1\n")
    done = _capture(tmp_path, "model.py", "-o", "bundle")
    assert "model.py: nothing was compiled but" in done.stderr.splitlines()[-1]
    assert done.returncode == 2
    assert not (tmp_path / "bundle").exists()


def test_an_entry_function_is_captured(tmp_path: Path) -> None:
    (tmp_path / "entries.py").write_text(
        "import jax\ndef make():\n    return (lambda x: x * 2), (jax.ShapeDtypeStruct((4,), 'float32'),)\n"
    )
    done = _capture(tmp_path, "--entry", "entries:make", "--steps", "0", "-o", "bundle")
    assert done.returncode == 0, done.stderr
    manifest = read_manifest(tmp_path / "bundle")
    assert manifest.entry == "entries:make"
    assert manifest.programs[0].arguments[0].shape == [4]


def test_two_captures_at_once_work_side_by_side(tmp_path: Path, script: Path) -> None:
    results: list[subprocess.CompletedProcess[str]] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(_capture(tmp_path, str(script), "-o", f"bundle{n}")))
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.returncode for done in results] == [0, 0], [done.stderr for done in results]
    for n in range(2):
        manifest = read_manifest(tmp_path / f"bundle{n}")
        assert len(manifest.programs) == 1
        assert manifest.profile_steps == 3


def test_two_captures_for_one_place_do_not_overwrite_each_other(fake_python: str, tmp_path: Path) -> None:
    (tmp_path / "waits.py").touch()
    running = _start(["waits.py", "--python", fake_python, "-o", "bundle"], tmp_path)
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    _fake_capture("whole", fake_python, tmp_path / "bundle")
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=30)
    assert "something was put there while this capture ran. This bundle is " in stderr
    assert read_manifest(tmp_path / "bundle").status == "complete"
    (kept,) = tmp_path.glob("bundle.*.kept")
    assert read_manifest(kept).status == "partial"


@pytest.mark.tpu_compiler
def test_a_capture_for_two_targets_runs_the_script_for_each(tmp_path: Path) -> None:
    pytest.importorskip("libtpu")
    (tmp_path / "model.py").write_text(
        "import jax\nprint(jax.devices()[0].device_kind, len(jax.devices()))\njax.jit(lambda x: x + 1)(1.0)\n"
    )
    before = dict(os.environ)
    done = _capture(tmp_path, "model.py", "--target", "v5e", "--target", "v4-8", "-o", "bundle")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["TPU v5 lite 4", "TPU v4 4"]
    manifest = read_manifest(tmp_path / "bundle")
    assert [program.device_kind for program in manifest.programs] == ["TPU v5 lite", "TPU v4"]
    assert [target.target for target in manifest.targets] == ["v5e:2x2", "v4:2x2x1:megacore"]
    assert dict(os.environ) == before
    assert json.loads((tmp_path / "bundle" / "manifest.json").read_text())["format_version"] == 1


@pytest.mark.skipif(
    not os.environ.get("HLOTRACE_OTHER_PYTHON"), reason="HLOTRACE_OTHER_PYTHON names no other interpreter"
)
def test_another_environments_interpreter_captures_with_its_own_jax(tmp_path: Path, script: Path) -> None:
    other = os.environ["HLOTRACE_OTHER_PYTHON"]
    version = subprocess.run(
        [other, "-c", "import jax; print(jax.__version__)"], capture_output=True, text=True, check=True
    ).stdout.strip()
    done = _capture(tmp_path, str(script), "--python", other, "-o", "bundle")
    assert done.returncode == 0, done.stderr
    assert read_manifest(tmp_path / "bundle").versions["jax"] == version
