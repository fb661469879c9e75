"""Parts of the capture's child that need no compile."""

from __future__ import annotations

import functools
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from hlotrace.bundle import OtherCompile, Program
from hlotrace.capture import provenance
from hlotrace.capture.failures import compile_failure
from hlotrace.capture.session import Session
from hlotrace.capture.shortage import devices_asserted, devices_wanted
from hlotrace.capture.spec import CaptureSpec, ChildResult, Event, TargetSpec
from hlotrace.errors import CaptureError

GIB = 2**30

# -- what failed compiles say


OLD_HBM = """RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (38.15G) \
exceeds available HBM (15.75G)."""
NEW_HBM = """RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO \
temporaries (22.00G) exceeds available HBM (15.75G). HLO module: jit_f.
See https://openxla.org/xla/errors/error_1000 for more details."""
OLDER_HBM = """RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. \
Used 20.95G of 15.48G hbm. Exceeded hbm capacity by 5.48G."""
VMEM = """RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for custom-call. \
Scoped allocation with size 24.00M and limit 16.00M exceeded scoped vmem limit by 8.00M."""


@pytest.mark.parametrize(
    ("message", "needed", "available", "space"),
    [
        (OLD_HBM, 38.15 * GIB, 15.75 * GIB, "hbm"),
        (NEW_HBM, 22 * GIB, 15.75 * GIB, "hbm"),
        (OLDER_HBM, 20.95 * GIB, 15.48 * GIB, "hbm"),
        (VMEM, 24 * 2**20, 16 * 2**20, "vmem"),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes.", 2**32, None, None),
        ("RESOURCE_EXHAUSTED: Out of memory allocating 1073741824 bytes.", GIB, None, None),
    ],
)
def test_an_out_of_memory_message_gives_its_figures(
    message: str, needed: float, available: float | None, space: str | None
) -> None:
    failure = compile_failure(message)
    assert failure.kind == "out_of_memory"
    assert failure.needed_bytes == round(needed)
    assert failure.available_bytes == (None if available is None else round(available))
    assert failure.memory_space == space
    assert failure.message == message


def test_any_other_message_is_a_failed_compile() -> None:
    failure = compile_failure("UNIMPLEMENTED: dynamic reshape of 3 G elements")
    assert (failure.kind, failure.needed_bytes) == ("compile", None)


@pytest.mark.parametrize(
    ("message", "count", "wanted"),
    [
        ("Number of devices 4 must be >= the product of mesh_shape (4, 2)", 4, 8),
        ("Number of devices 4 must equal the product of mesh_shape [16]", 4, 16),
        ("cannot reshape array of size 4 into shape (2,8)", 4, 16),
        ("cannot reshape array of size 4 into shape (8,)", 4, 8),
        ("cannot reshape array of size 6 into shape (8,)", 4, None),
        ("cannot reshape array of size 4 into shape (3,)", 4, None),
        ("compiling computation that requires 8 logical devices, but only 4 XLA devices are available", 4, 8),
        ("shapes do not match", 4, None),
    ],
)
def test_an_exception_tells_how_many_devices_were_wanted(message: str, count: int, wanted: int | None) -> None:
    assert devices_wanted(ValueError(message), count) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("assert devices() == 16", 16),
        ("raise ValueError('needs 8 devices')", 8),
        ("raise RuntimeError('not enough devices')", 0),
        ("assert devices() == 2", 0),
        ("raise ValueError('16 heads')", None),
        ("devices(unknown)", None),
    ],
)
def test_a_scripts_own_check_tells_how_many_devices_it_may_want(
    tmp_path: Path, source: str, wanted: int | None
) -> None:
    script = tmp_path / "script.py"
    script.write_text(source)
    with pytest.raises((AssertionError, ValueError, RuntimeError, NameError)) as caught:
        exec(compile(source, str(script), "exec"), {"devices": lambda: 4})
    assert devices_asserted(caught.value, 4) == wanted


# -- who wrote a function


class Layer:
    def __call__(self, x: int) -> int:
        return x

    def method(self, x: int) -> int:
        return x


def written_here(x: int) -> int:
    return x


@functools.lru_cache
def cached_here(x: int) -> int:
    return x


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (written_here, "written_here"),
        (functools.partial(functools.partial(written_here, 1)), "written_here"),
        (cached_here, "cached_here"),
        (Layer(), "Layer.__call__"),
        (Layer().method, "Layer.method"),
    ],
)
def test_a_users_function_is_found_below_what_wraps_it(function: Any, name: str) -> None:
    definition = provenance.of_function(function)
    assert definition is not None
    assert definition.function == name
    assert definition.place is not None
    path, _, line = definition.place.rpartition(":")
    assert path == __file__
    assert "def " in Path(path).read_text().splitlines()[int(line) - 1]


@pytest.mark.parametrize("function", [textwrap.dedent, len, functools.partial(textwrap.fill, "a"), int])
def test_a_function_of_python_itself_is_not_the_users(function: Any) -> None:
    assert provenance.of_function(function) is None


@pytest.mark.parametrize(
    ("filename", "library"),
    [
        ("/env/lib/python3.11/site-packages/jax/_src/nn/functions.py", True),
        ("/env/lib/python3.11/site-packages/optax/_src/base.py", True),
        ("/env/lib/python3.11/site-packages/einops.py", True),
        ("/env/lib/python3.11/site-packages/MaxText/train.py", False),
        ("/usr/lib/python3/dist-packages/axlearn/trainer.py", False),
        ("/home/me/jax/model.py", False),
        ("<string>", False),
        ("<frozen importlib._bootstrap>", True),
        (provenance.__file__, True),
    ],
)
def test_libraries_are_told_by_the_package_they_are_installed_as(filename: str, library: bool) -> None:
    assert provenance.is_library(filename) is library


# -- the contract with the parent


def test_a_spec_and_events_survive_json() -> None:
    target = TargetSpec(
        "2xv6e", "2xv6e:2x2", "v6e:2x2", "TPU v6 lite", 8, num_slices=2, topology_options={"wrap": [True]}
    )
    spec = CaptureSpec(
        staging="/tmp/s", entry="a:b", argv=["--é"], cwd="/", target=target, run=True, steps=2, passes=True
    )
    assert CaptureSpec.from_json(spec.to_json()) == spec
    event = Event("compile", "jit_f@cpu", "cpu", 1.5, "two\nlines")
    assert event.to_line().count(b"\n") == 1
    assert Event.from_line(event.to_line()) == event


def test_a_result_survives_its_file_and_is_replaced_in_one_step(tmp_path: Path) -> None:
    program = Program("jit_f@cpu", "jit_f", "f", "a.py:1", "cpu", "cpu", "cpu", 1, mesh={"x": 2}, calls=3)
    result = ChildResult(finished=True, programs=[program], other_compiles=[OtherCompile("jit_add", "eager", 2)])
    assert ChildResult.read(tmp_path) is None
    result.write(tmp_path)
    assert ChildResult.read(tmp_path) == result
    assert [path.name for path in tmp_path.iterdir()] == ["child.json"]


def test_module_names_are_unique_and_fit_a_folder(tmp_path: Path) -> None:
    session = Session(CaptureSpec(staging=str(tmp_path)))
    names = [session.start_program(name, "2xv5e:4x4").module for name in ("jit_f", "jit_f", "jit_<lambda>/x", "jit_f")]
    assert names == ["jit_f@2xv5e_4x4", "jit_f@2xv5e_4x4.2", "jit__lambda__x@2xv5e_4x4", "jit_f@2xv5e_4x4.3"]
    assert sorted(path.name for path in (tmp_path / "programs").iterdir()) == sorted(names)


@pytest.mark.parametrize("letter", ["f", "é", "層"])
def test_a_long_module_name_fits_a_folder_and_differs_from_one_that_starts_alike(tmp_path: Path, letter: str) -> None:
    session = Session(CaptureSpec(staging=str(tmp_path)))
    names = {session.start_program(f"jit_{letter * 300}{end}", "v5e:2x2").module for end in "ab"}
    assert {path.name for path in (tmp_path / "programs").iterdir()} == names
    assert len(names) == 2
    assert all(len(name.encode()) < 140 and name.startswith(f"jit_{letter}") for name in names)


def test_the_child_imports_the_standard_library_only() -> None:
    import subprocess

    modules = "_child calls describe entry failures guess install launch listener offline origins paths placement"
    modules += " provenance seams session shortage signatures spec standins tickets topology watch zeros"
    code = "import sys\n" + "".join(f"import hlotrace.capture.{name}\n" for name in modules.split())
    code += "print(sorted({m.partition('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in eval(run.stdout) if not name.startswith(("__", "_"))}
    assert loaded <= {"hlotrace", "sitecustomize", "usercustomize"}


def test_a_script_that_waits_for_a_value_is_told_that_none_will_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hlotrace.capture import patience

    monkeypatch.setattr(patience, "_SECONDS", 0.0)
    events: list[Event] = []
    session = Session(CaptureSpec(staging=str(tmp_path)))
    monkeypatch.setattr(session, "say", events.append)
    record = session.start_program("jit_step", "v5e:2x2")
    call = patience.Patience(session, record, lambda *args: ["zeros", *args])
    for _ in range(1500):
        record.calls += 1
        assert call(1) == ["zeros", 1]
    assert [event.stage for event in events] == ["note"]
    assert "called 1000 times" in events[0].detail


# -- seams


def test_a_jax_without_a_seam_is_told_by_its_name() -> None:
    pytest.importorskip("jax")
    from hlotrace.capture.seams import Seams

    seams = Seams()
    with pytest.raises(CaptureError, match=r"jax\._src\.pjit\._no_such_thing in jax \d.*--python EXE"):
        seams.replace("jax._src.pjit", "_no_such_thing", lambda original: original)
    with pytest.raises(CaptureError, match=r"_resolve_and_lower without colour"):
        seams.replace("jax._src.pjit", "_resolve_and_lower", lambda original: original, "args", "colour")
    seams.replace("jax._src.pjit", "_no_such_thing", lambda original: original, optional=True)


def test_seams_are_put_back() -> None:
    pytest.importorskip("jax")
    import jax._src.pjit as module

    from hlotrace.capture.seams import Seams

    before = module._resolve_and_lower
    seams = Seams()
    seams.replace(
        "jax._src.pjit", "_resolve_and_lower", lambda original: lambda *args, **kwargs: original(*args, **kwargs)
    )
    assert module._resolve_and_lower is not before
    seams.restore()
    assert module._resolve_and_lower is before


def test_zeros_are_arrays_that_cost_no_memory() -> None:
    jax = pytest.importorskip("jax")
    import resource

    from hlotrace.capture.zeros import zeros_like

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sharding = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    arrays = [zeros_like(jax.core.ShapedArray((1 << 20, 4096), "float32"), sharding, committed=True) for _ in range(8)]
    assert float(arrays[0][-1, -1]) == 0
    assert sum(array.nbytes for array in arrays) == 8 * 2**34
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 2**30
    keys = zeros_like(jax.core.ShapedArray((3,), jax.random.key(0).dtype), sharding, committed=False)
    assert keys.shape == (3,)
    assert jax.random.key_data(keys).sum() == 0
