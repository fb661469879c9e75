"""The profiler's trace of a native capture: so many steps, marked, of the main program, and no compile among them."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from hlotrace.bundle import Manifest, read_manifest
from hlotrace.load import load

pytest.importorskip("jax")

LOOP = """
import jax, jax.numpy as jnp
@jax.jit
def helper(x):
    return x + 1
@jax.jit
def train_step(w, x):
    return w - 0.01 * x.T @ jnp.tanh(x @ w)
w, x = jnp.ones((64, 64)), jnp.ones((32, 64))
for _ in range(5):
    helper(x)
for step in range(8):
    w = train_step(w, x)
    if step == 3:
        jnp.cumsum(w)  # an eager compile, in the middle of what would have been traced
"""

ONCE = """
from functools import partial
import jax, jax.numpy as jnp
@partial(jax.jit, donate_argnums=0)
def update(state, x):
    return {"w": state["w"] + x @ state["w"]}, x.sum()
def main():
    update({"w": jnp.ones((64, 64))}, jnp.ones((64, 64)))
main()
"""

WITH_CALLBACK = """
import jax
@jax.jit
def noisy(x):
    jax.debug.print("called {}", x)
    return x * 2
noisy(1.0)
"""

PROFILES_ITSELF = """
import glob, sys, jax, jax.numpy as jnp
step = jax.jit(lambda x: jnp.sin(x) @ x)
x = jnp.ones((64, 64))
for _ in range(3):
    x = step(x)
with jax.profiler.trace(sys.argv[1]):
    step(x).block_until_ready()
assert glob.glob(sys.argv[1] + "/plugins/profile/*/*.xplane.pb")
"""


@dataclass
class Traced:
    manifest: Manifest
    path: Path
    stdout: str
    stderr: str

    def events(self) -> dict[str, list[tuple[float, dict[str, object]]]]:
        """Start and stats of every event, by name."""
        from jax.profiler import ProfileData

        (file,) = self.path.glob("profile/plugins/profile/*/*.xplane.pb")
        found: dict[str, list[tuple[float, dict[str, object]]]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the binding's own types
            for plane in ProfileData.from_file(str(file)).planes:
                for line in plane.lines:
                    for event in line.events:
                        found.setdefault(event.name, []).append((event.start_ns, dict(event.stats)))
        return found

    def steps(self) -> list[object]:
        return [stats["step_num"] for _, stats in sorted(self.events().get("step", []), key=lambda event: event[0])]


def capture(tmp_path: Path, text: str, *arguments: str) -> Traced:
    (tmp_path / "model.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "hlotrace", "capture", "model.py", "-o", "bundle", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Traced(read_manifest(tmp_path / "bundle"), tmp_path / "bundle", done.stdout, done.stderr)


def test_a_training_loop_is_traced_for_as_many_steps_as_asked_with_no_compile_among_them(tmp_path: Path) -> None:
    traced = capture(tmp_path, LOOP, "--steps", "3")
    assert traced.manifest.profile_steps == 3
    assert traced.steps() == [0, 1, 2]
    assert "the profile has 3 steps of jit_train_step@cpu" in traced.manifest.notes
    names = traced.events()
    assert not [name for name in names if "compile" in name.lower()], sorted(names)
    assert not list(traced.path.glob("profile.*"))
    assert {program.function: program.calls for program in traced.manifest.programs} == {"helper": 5, "train_step": 8}


def test_a_bundles_trace_gives_op_times_of_its_programs_instructions(tmp_path: Path) -> None:
    tables = load(capture(tmp_path, LOOP, "--steps", "3").path)
    steps = tables["steps"]
    assert list(steps[steps["device"] == "CPU:0"]["step"]) == [0, 1, 2]
    times = tables["op_times"]
    times = times[times["module"] == "jit_train_step@cpu"]
    launched = tables.select("jit_train_step@cpu")["instructions"]
    launched = launched[(launched["stage"] == "after_optimizations") & launched["is_launch"]]
    assert set(times["instruction"]) <= set(launched["instruction"])
    assert set(times["occurrences"]) == {3}
    assert times["op_name"].str.contains("train_step").all()
    assert "matmul" in set(times["category"])


def test_what_is_called_once_is_run_again_after_the_script_and_the_manifest_says_so(tmp_path: Path) -> None:
    traced = capture(tmp_path, ONCE, "--steps", "4")
    assert traced.steps() == [0, 1, 2, 3]
    assert traced.manifest.programs[0].calls == 1
    (note,) = [note for note in traced.manifest.notes if "run 4 times more" in note]
    assert note.startswith("jit_update@cpu was called once by the script;")


def test_a_program_that_calls_back_into_python_is_not_run_again(tmp_path: Path) -> None:
    traced = capture(tmp_path, WITH_CALLBACK)
    assert traced.stdout.count("called 1.0") == 1
    assert traced.manifest.profile_steps is None
    assert any("not run again for the profile: it calls back into Python" in note for note in traced.manifest.notes)


def test_a_script_that_profiles_itself_gets_its_own_profile(tmp_path: Path) -> None:
    traced = capture(tmp_path, PROFILES_ITSELF, "--steps", "5", "--", str(tmp_path / "its-own"))
    assert any("the script profiles itself" in note for note in traced.manifest.notes)


def test_no_steps_make_no_profile(tmp_path: Path) -> None:
    traced = capture(tmp_path, ONCE, "--steps", "0")
    assert traced.manifest.profile_steps is None
    assert not (traced.path / "profile").exists()
