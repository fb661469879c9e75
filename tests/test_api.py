"""Captures from Python, in the calling process."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hlotrace
from hlotrace.bundle import read_manifest
from hlotrace.errors import CaptureError

jax = pytest.importorskip("jax")
jnp = jax.numpy


def step(params: dict[str, object], x: object) -> dict[str, object]:
    return jax.tree.map(lambda w: w - 0.1 * (x.T @ (x @ w)), params)


@pytest.fixture
def arguments() -> tuple[dict[str, object], object]:
    return {"w": jnp.ones((16, 16))}, jnp.ones((8, 16))


def test_importing_hlotrace_imports_nothing_heavy() -> None:
    code = (
        "import sys, hlotrace; hlotrace.record; hlotrace.capture; "
        "print([m for m in ('jax', 'numpy', 'pandas', 'pyarrow', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_function_is_captured_with_its_arguments(tmp_path: Path, arguments: tuple[dict[str, object], object]) -> None:
    path = hlotrace.capture(step, *arguments, out=tmp_path / "bundle", steps=2)
    assert path == tmp_path / "bundle"
    manifest = read_manifest(path)
    assert manifest.status == "complete"
    assert [argument.path for argument in manifest.programs[0].arguments] == ["params['w']", "x"]
    assert manifest.profile_steps == 2
    assert list((path / "programs" / manifest.programs[0].module).glob("*after_optimizations.txt"))


def test_donated_arguments_are_left_to_the_caller(tmp_path: Path, arguments: tuple[dict[str, object], object]) -> None:
    params, x = arguments
    hlotrace.capture(jax.jit(step, donate_argnums=0), params, x, out=tmp_path / "bundle", steps=1)
    assert float(params["w"].sum()) == 256  # type: ignore[attr-defined]
    assert read_manifest(tmp_path / "bundle").programs[0].arguments[0].donated


def test_a_recorded_block_holds_what_was_compiled_before_too(
    tmp_path: Path, arguments: tuple[dict[str, object], object]
) -> None:
    compiled = jax.jit(step)
    compiled(*arguments)
    with hlotrace.record(tmp_path / "bundle", steps=0):
        compiled(*arguments)
        compiled(*arguments)
    (program,) = read_manifest(tmp_path / "bundle").programs
    assert program.function == "step"
    assert program.calls == 2


def test_a_block_that_raises_keeps_what_was_compiled_as_partial(
    tmp_path: Path, arguments: tuple[dict[str, object], object]
) -> None:
    def broken() -> None:
        with hlotrace.record(tmp_path / "bundle", steps=0):
            jax.jit(step)(*arguments)
            raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        broken()
    assert read_manifest(tmp_path / "bundle").status == "partial"


def test_a_block_that_compiles_nothing_is_an_error(tmp_path: Path) -> None:
    def idle() -> None:
        with hlotrace.record(tmp_path / "bundle"):
            pass

    with pytest.raises(CaptureError, match="nothing was compiled"):
        idle()
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_is_not_overwritten_unless_forced(tmp_path: Path, arguments: tuple[dict[str, object], object]) -> None:
    hlotrace.capture(step, *arguments, out=tmp_path / "bundle", steps=0)
    with pytest.raises(CaptureError, match="there is a bundle already"):
        hlotrace.capture(step, *arguments, out=tmp_path / "bundle", steps=0)
    hlotrace.capture(step, *arguments, out=tmp_path / "bundle", steps=0, force=True)


def test_a_disk_that_is_full_is_told_after_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def record() -> None:
        with hlotrace.record(tmp_path / "bundle", steps=0):
            assert float(jax.jit(lambda x: x * 2)(1.0)) == 2.0

    monkeypatch.setattr("hlotrace.capture.session.require_room", full)
    with pytest.raises(CaptureError, match=r"^no space left in "):
        record()
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_target_is_refused_at_once() -> None:
    with pytest.raises(CaptureError, match="no target is named 'v5x'"):
        hlotrace.capture(step, target="v5x")


@pytest.mark.tpu_compiler
def test_a_target_compiles_in_a_live_process_and_leaves_it_as_it_was(
    tmp_path: Path, arguments: tuple[dict[str, object], object]
) -> None:
    pytest.importorskip("libtpu")
    before = dict(os.environ), jax.config.jax_platforms, jax.devices()
    compiled = jax.jit(step)
    expected = compiled(*arguments)["w"]
    hlotrace.capture(compiled, *arguments, target=["v5e:2x2", "tpu7x"], out=tmp_path / "arrays")
    manifest = read_manifest(tmp_path / "arrays")
    assert [program.device_kind for program in manifest.programs] == ["TPU v5 lite", "TPU7x"]
    shapes = {"w": jax.ShapeDtypeStruct((32, 32), jnp.bfloat16)}, jax.ShapeDtypeStruct((8, 32), jnp.bfloat16)
    hlotrace.capture(compiled, *shapes, target="v6e-8", out=tmp_path / "structs")
    assert read_manifest(tmp_path / "structs").programs[0].arguments[0].dtype == "bfloat16"
    assert (dict(os.environ), jax.config.jax_platforms, jax.devices()) == before
    assert jnp.array_equal(compiled(*arguments)["w"], expected)


_BEFORE_A_BACKEND = """
import sys, jax, jax.numpy as jnp, hlotrace
hlotrace.capture(lambda x: x * 2, jax.ShapeDtypeStruct((8,), jnp.float32), target="v5e:2x2", out=sys.argv[1])
print([device.platform for device in jax.devices()], jax.jit(lambda x: x + 1)(1.0), jax.config.jax_platforms)
"""


@pytest.mark.tpu_compiler
def test_a_target_leaves_no_backend_where_there_was_none(tmp_path: Path) -> None:
    pytest.importorskip("libtpu")
    command = [sys.executable, "-c", _BEFORE_A_BACKEND, str(tmp_path / "bundle")]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
    done = subprocess.run(command, env=environment, check=True, timeout=240, stdout=subprocess.PIPE, text=True)
    assert done.stdout == "['cpu'] 2.0 cpu\n"


_ON_EIGHT_DEVICES = """
import sys, jax, jax.numpy as jnp, hlotrace
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("data",))
x = jax.device_put(jnp.ones((8, 128)), NamedSharding(mesh, P("data")))
hlotrace.capture(lambda x: x * 2, x, target="v5e", out=sys.argv[1])
"""


@pytest.mark.tpu_compiler
def test_a_bare_generation_is_as_large_as_the_devices_of_the_arguments(tmp_path: Path) -> None:
    pytest.importorskip("libtpu")
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    command = [sys.executable, "-c", _ON_EIGHT_DEVICES, str(tmp_path / "bundle")]
    subprocess.run(command, env={**os.environ, **flags}, check=True, timeout=240)
    manifest = read_manifest(tmp_path / "bundle")
    assert [target.target for target in manifest.targets] == ["v5e:2x4"]
    assert manifest.programs[0].mesh == {"data": 8}
