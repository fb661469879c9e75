"""The user's own line of an instruction: the innermost frame outside of libraries."""

from __future__ import annotations

import dataclasses
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.hlo.module import Frames, HloModule
from hlotrace.hlo.sources import is_library, sources
from hlotrace.parsers import hlo_text

LIBRARY = "/venv/lib/python3.11/site-packages/flax/nnx/nn/linear.py"
STARTUP = "<frozen runpy>"
FILES = ("/home/a/train.py", LIBRARY, STARTUP, "/home/a/model.py")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (LIBRARY, True),
        ("/usr/lib/python3/dist-packages/numpy/core.py", True),
        ("/usr/lib/python3.12/threading.py", True),
        ("/opt/conda/lib64/python3.13/functools.py", True),
        ("C:\\Python\\Lib\\site-packages\\flax\\core.py", True),
        ("site-packages/flax/nnx/nn/linear.py", True),
        ("lib/python3.11/runpy.py", True),
        (STARTUP, True),
        ("/home/a/train.py", False),
        ("/home/a/python3.11/train.py", False),
        ("/home/a/my-site-packages/train.py", False),
        ("<stdin>", False),
        ("<ipython-input-3-0a1b>", False),
        ("train.py", False),
        ("", False),
    ],
)
def test_what_is_installed_and_what_comes_with_python_is_a_library(file: str, expected: bool) -> None:
    assert is_library(file) is expected


def test_this_environments_own_packages_and_library_are_libraries() -> None:
    for name in ("purelib", "stdlib"):
        assert is_library(str(Path(sysconfig.get_path(name)) / "module.py"))


def module(frames: Frames, of_instruction: list[int]) -> HloModule:
    """A module of parameters that come from the given frames."""
    lines = [f"  p{n} = f32[4] parameter({n})" for n in range(len(of_instruction))]
    hlo = next(hlo_text.read_modules("HloModule m\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"))
    return dataclasses.replace(hlo, stack_frame=np.array(of_instruction, np.int32), frames=frames)


def frames_of(stack: list[tuple[int, int]]) -> Frames:
    """Frames over locations that stand for FILES in turn, one line further each."""
    locations = [(1 + at % len(FILES), 1, 10 + at, 10 + at, 1, 2) for at in range(2 * len(FILES))]
    return Frames(FILES, ("f",), np.array(locations, np.int64), np.array(stack, np.int64).reshape(-1, 2))


def of_place(location: int) -> tuple[str, int]:
    return FILES[(location - 1) % len(FILES)], 9 + location


def test_the_users_line_is_the_innermost_outside_of_libraries_else_the_innermost() -> None:
    frames = frames_of([(1, 0), (2, 1), (6, 2), (4, 0), (8, 4), (3, 0), (2, 6)])
    found = sources(module(frames, [3, 1, 5, 7, 0, 9]))
    users = list(zip(found.user_file.to_pylist(), found.user_line.to_pylist(), strict=True))
    innermost = list(zip(found.file.to_pylist(), found.line.to_pylist(), strict=True))
    assert users == [of_place(1), of_place(1), of_place(8), of_place(2), (None, None), (None, None)]
    assert innermost == [of_place(6), of_place(1), of_place(8), of_place(2), (None, None), (None, None)]
    places = [None if at < 0 else found.places[at].as_py() for at in found.place.tolist()]
    assert places == [None if file is None else f"{file}:{line}" for file, line in users]


def brute_force(stack: list[tuple[int, int]], frame: int) -> int:
    """The location of the user's line of a frame, by walking up."""
    at, seen = frame, set()
    while 0 < at <= len(stack) and at not in seen:
        seen.add(at)
        location, parent = stack[at - 1]
        if not is_library(FILES[(location - 1) % len(FILES)]):
            return location
        at = parent
    return stack[frame - 1][0]


@given(st.lists(st.tuples(st.integers(1, 2 * len(FILES)), st.integers(0, 12)), min_size=1, max_size=12))
def test_any_frames_give_what_walking_up_gives(stack: list[tuple[int, int]]) -> None:
    stack = [(location, parent if parent <= len(stack) else 0) for location, parent in stack]
    found = sources(module(frames_of(stack), list(range(1, len(stack) + 1))))
    expected = [of_place(brute_force(stack, frame)) for frame in range(1, len(stack) + 1)]
    assert list(zip(found.user_file.to_pylist(), found.user_line.to_pylist(), strict=True)) == expected


def test_without_frames_the_users_line_is_what_was_recorded() -> None:
    metadata = f'metadata={{source_file="{LIBRARY}" source_line=4}}'
    text = f"HloModule m\nENTRY e {{\n ROOT p = f32[] parameter(0), {metadata}\n}}\n"
    row = hlo_text.parse(text)["instructions"].iloc[0]
    assert (row["user_file"], row["user_line"]) == (row["source_file"], row["source_line"]) == (LIBRARY, 4)


def test_layers_of_a_flax_model_are_told_apart() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    nnx = pytest.importorskip("flax.nnx", reason="flax is not installed")

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.up, self.down = nnx.Linear(4, 8, rngs=rngs), nnx.Linear(8, 4, rngs=rngs)

        def __call__(self, x):
            y = self.up(x)
            return self.down(y)

    up = Model.__call__.__code__.co_firstlineno + 1
    graph, state = nnx.split(Model(nnx.Rngs(0)))
    step = jax.jit(lambda state, x: nnx.merge(graph, state)(x))
    lowered = step.lower(state, jax.numpy.ones((2, 4)))
    (compiled,) = lowered.compile().runtime_executable().hlo_modules()
    instructions = hlo_text.parse(compiled.to_string())["instructions"]
    dots = instructions[instructions["opcode"] == "dot"]
    assert dots["source_file"].str.endswith("linear.py").all()
    assert dots["source_line"].nunique() == 1
    assert set(dots["user_file"]) == {__file__}
    assert sorted(dots["user_line"]) == [up, up + 1]
