"""The capture's child process: scripts run as Python runs them, and every program they compile is caught."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hlotrace
from hlotrace.capture.spec import CaptureSpec, ChildResult, Event, TargetSpec

if TYPE_CHECKING:
    from hlotrace.bundle import Program

pytest.importorskip("jax")

CHILD = Path(hlotrace.__file__).parent / "capture" / "_child.py"
SCRIPTS = Path(__file__).parent / "scripts"
V5E = TargetSpec("v5e:2x2", "v5e:2x2", "v5e:2x2", "TPU v5 lite", 4)
V5E_16 = TargetSpec("v5e:4x4", "v5e:4x4", "v5e:4x4", "TPU v5 lite", 16)
V5E_SLICES = TargetSpec("2xv5e:2x2", "2xv5e:2x2", "v5e:2x2", "TPU v5 lite", 8, num_slices=2)
V5P = TargetSpec("v5p:2x2x1", "v5p:2x2x1", "v5p:2x2x1", "TPU v5", 4)

needs_compiler = pytest.mark.tpu_compiler


@dataclass
class Captured:
    result: ChildResult
    stdout: str
    stderr: str
    returncode: int
    staging: Path
    events: list[Event]

    def program(self, function: str, index: int = 0) -> Program:
        found = [program for program in self.result.programs if program.function == function]
        assert found, (function, [program.function for program in self.result.programs])
        return found[index]

    def files(self, program: Program) -> list[str]:
        return [path.name for path in (self.staging / "programs" / program.module).iterdir()]


def run_child(
    staging: Path, script: str | None = None, *, env: dict[str, str] | None = None, **spec: object
) -> Captured:
    staging.mkdir(parents=True, exist_ok=True)
    path = None if script is None else os.path.relpath(SCRIPTS / script, SCRIPTS.parent)
    reader, writer = os.pipe()
    given = CaptureSpec(staging=str(staging), script=path, cwd=str(SCRIPTS.parent), progress_fd=writer, **spec)  # type: ignore[arg-type]
    (staging / "spec.json").write_text(given.to_json())
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environment |= {"JAX_PLATFORMS": "cpu"} | (env or {})
    run = subprocess.run(
        [sys.executable, str(CHILD), str(staging / "spec.json")],
        env=environment,
        pass_fds=[writer],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
        capture_output=True,
        text=True,
        timeout=500,
    )
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        events = [Event.from_line(line) for line in pipe]
    result = ChildResult.read(staging)
    assert result is not None, run.stderr
    return Captured(result, run.stdout, run.stderr, run.returncode, staging, events)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Captured]:
    """Captures by their arguments, each made once."""
    made: dict[str, Captured] = {}

    def make(script: str | None = None, **spec: object) -> Captured:
        key = repr((script, spec))
        if key not in made:
            made[key] = run_child(tmp_path_factory.mktemp("capture"), script, **spec)
        return made[key]

    return make


@pytest.fixture(params=["native", pytest.param("v5e", marks=needs_compiler)])
def jit_uses(request: pytest.FixtureRequest, capture: Callable[..., Captured]) -> Captured:
    captured: Captured = capture("jit_uses.py", target=V5E if request.param == "v5e" else None)
    assert captured.returncode == 0, captured.stderr
    return captured


@pytest.fixture(params=["native", pytest.param("v5e", marks=needs_compiler)])
def jit_long_names(request: pytest.FixtureRequest, capture: Callable[..., Captured]) -> Captured:
    captured: Captured = capture("long_names.py", target=V5E if request.param == "v5e" else None)
    assert captured.returncode == 0, captured.stderr
    return captured


# -- as Python runs it


def test_a_script_sees_what_python_would_show_it(capture: Callable[..., Captured]) -> None:
    captured = capture("as_python_does.py", argv=["--size", "3"])
    lines = captured.stdout.splitlines()
    assert "argv ['--size', '3']" in lines
    assert "name __main__ as_python_does.py True" in lines
    assert "path scripts False" in lines
    assert "cwd tests" in lines
    assert "environment []" in lines
    assert "sum 4.0" in lines


def test_the_exit_code_output_and_atexit_functions_are_the_scripts_own(capture: Callable[..., Captured]) -> None:
    captured = capture("as_python_does.py", argv=["--size", "3"])
    assert captured.returncode == captured.result.exit_code == 3
    assert captured.result.finished
    assert captured.stdout.endswith("atexit ran\n")
    assert captured.stderr == "an error message\n"


def test_a_script_that_raises_prints_its_own_traceback(capture: Callable[..., Captured]) -> None:
    captured = capture("raises.py")
    assert captured.returncode == captured.result.exit_code == 1
    assert captured.result.script_error == "ValueError: the learning rate is missing"
    assert captured.stderr.startswith("Traceback (most recent call last):\n")
    assert len(re.findall("  File ", captured.stderr)) == 2
    assert "hlotrace" not in captured.stderr.replace(str(SCRIPTS), "")
    assert captured.program("first").calls == 1


def test_an_interrupted_script_leaves_the_programs_that_were_finished(capture: Callable[..., Captured]) -> None:
    captured = capture("interrupted.py")
    assert captured.returncode == captured.result.exit_code == 128 + signal.SIGINT
    assert not captured.result.finished
    assert captured.stderr.rstrip().endswith("KeyboardInterrupt")
    assert "_child.py" not in captured.stderr
    assert [program.calls for program in captured.result.programs] == [1]


def test_flags_that_a_script_sets_late_are_kept_and_do_not_lose_its_dumps(capture: Callable[..., Captured]) -> None:
    captured = capture("own_flags.py", env={"XLA_FLAGS": "--xla_force_host_platform_device_count=2"})
    assert "flags --xla_cpu_enable_fast_math=false\n" in captured.stdout
    assert captured.result.environment["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false"
    (program,) = captured.result.programs
    assert any(name.endswith("after_optimizations.txt") for name in captured.files(program))


def test_progress_tells_each_stage_with_its_seconds(capture: Callable[..., Captured]) -> None:
    events = capture("raises.py").events
    assert [(event.stage, event.function) for event in events] == [
        ("trace", "first"),
        ("trace", "first"),
        ("lower", "jit_first"),
        ("lower", "jit_first"),
        ("compile", "jit_first@cpu"),
        ("compile", "jit_first@cpu"),
    ]
    assert [event.seconds is None for event in events] == [True, False] * 3


# -- what is caught


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("plain", "def plain"),
        ("static", "def static"),
        ("scaled", "def scaled"),
        ("decorated", "def decorated"),
        ("donated", "def donated"),
        ("Model.static_self", "def static_self"),
        ("Model.bound", "def bound"),
        ("outer.<locals>.inner", "def inner"),
        ("calls_jitted", "def calls_jitted"),
        ("ahead_of_time", "def ahead_of_time"),
        ("traced_first", "def traced_first"),
        ("called_back", "def called_back"),
        ("with_keys", "def with_keys"),
        ("body", "def body"),
        ("asks_for_shardings", "def asks_for_shardings"),
        ("sharded_map", "def sharded_map"),
        ("mapped", "def mapped"),
        ("explicit_axes", "def explicit_axes"),
    ],
)
def test_every_use_of_jit_is_caught_with_the_place_that_defined_it(
    jit_uses: Captured, function: str, line: str
) -> None:
    place = jit_uses.program(function).defined_at
    assert place is not None
    path, _, number = place.rpartition(":")
    assert Path(path) == SCRIPTS / "jit_uses.py"
    assert line in (SCRIPTS / "jit_uses.py").read_text().splitlines()[int(number) - 1]


def test_each_program_has_a_folder_of_its_own_with_its_dumps_alone(jit_uses: Captured) -> None:
    modules = [program.module for program in jit_uses.result.programs]
    assert len(modules) == len(set(modules))
    assert sorted(modules) == sorted(path.name for path in (jit_uses.staging / "programs").iterdir())
    for program in jit_uses.result.programs:
        names = [name.split(".")[1] for name in jit_uses.files(program) if name.endswith("before_optimizations.txt")]
        assert names == [program.name]


def test_arguments_have_pytree_paths_shapes_and_types(jit_uses: Captured) -> None:
    arguments = jit_uses.program("decorated").arguments
    assert [(argument.path, argument.shape, argument.dtype) for argument in arguments] == [
        ("params['layers'][0]['wq']", [8, 8], "float32"),
        ("params['scale']", [], "float32"),
        ("x", [8, 8], "float32"),
    ]
    assert [argument.weak_type for argument in arguments] == [False, True, False]


def test_arguments_of_pmap_have_the_paths_of_the_users_function(jit_uses: Captured) -> None:
    assert [argument.path for argument in jit_uses.program("mapped").arguments] == ["weights['w']", "a"]


def test_static_values_are_kept_by_name(jit_uses: Captured) -> None:
    assert jit_uses.program("static", 0).static_arguments == {"n": "3"}
    assert jit_uses.program("static", 1).static_arguments == {"n": "4", "mode": "'bb'"}
    assert jit_uses.program("scaled").static_arguments == {"scale": "3.0"}
    assert jit_uses.program("Model.static_self").static_arguments == {"self": "<__main__.Model object>"}


def test_donated_arguments_are_marked(jit_uses: Captured) -> None:
    arguments = jit_uses.program("donated").arguments
    assert {argument.path: argument.donated for argument in arguments} == {
        "state['a']": True,
        "state['b'][0]": True,
        "gradient['a']": False,
        "gradient['b'][0]": False,
    }
    assert [output.path for output in jit_uses.program("donated").outputs] == ["result['a']", "result['b'][0]"]


def test_calls_are_counted_and_times_measured_apart(jit_uses: Captured) -> None:
    plain = jit_uses.program("plain")
    assert plain.calls == 4
    for program in (plain, jit_uses.program("decorated"), jit_uses.program("mapped")):
        assert min(program.trace_ns or 0, program.lower_ns or 0, program.compile_ns or 0) > 0
    assert jit_uses.program("traced_first").calls == 0


def test_signatures_of_one_function_are_programs_of_their_own(jit_uses: Captured) -> None:
    plains = [program for program in jit_uses.result.programs if program.function == "plain" and program.trace_ns]
    shapes = [program.arguments[0].shape for program in plains]
    assert shapes == [[8, 8], [1], [2], [3]]
    stem = plains[0].module
    assert [program.module for program in plains][1:] == [f"{stem}.{n}" for n in (2, 3, 4)]


def test_the_same_program_compiled_again_is_one_program(jit_uses: Captured) -> None:
    again = [
        program for program in jit_uses.result.programs if program.arguments and program.arguments[0].path == "again"
    ]
    assert [program.calls for program in again] == [3]
    assert [note for note in jit_uses.result.notes if again[0].module in note and "3 times" in note]


def test_a_library_function_is_a_program_when_the_user_jits_it(jit_uses: Captured) -> None:
    assert jit_uses.program("softmax").name == "jit_softmax"


def test_eager_primitives_and_helpers_are_counted_not_captured(jit_uses: Captured) -> None:
    others = {other.name: other for other in jit_uses.result.other_compiles}
    assert others["jit_broadcast_in_dim"].kind == "eager"
    assert others["jit_broadcast_in_dim"].count >= 2
    assert others["jit__reduce_sum"].kind == "helper"
    assert not {program.name for program in jit_uses.result.programs} & set(others)


def test_gradients_made_outside_jit_are_caught(jit_uses: Captured) -> None:
    derived = [p for p in jit_uses.result.programs if p.function == "decorated" and p.trace_ns is None]
    assert len(derived) == 2


def test_memory_and_cost_analysis_are_the_compilers(jit_uses: Captured) -> None:
    program = jit_uses.program("ahead_of_time")
    assert program.memory_analysis is not None
    assert program.memory_analysis["argument_size_in_bytes"] >= 256
    assert program.cost_analysis is not None
    assert program.cost_analysis["flops"] >= 1024


def test_child_json_is_json_without_nan(jit_uses: Captured) -> None:
    text = (jit_uses.staging / "child.json").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_a_capture_keeps_no_array_alive_that_the_script_let_go(capture: Callable[..., Captured]) -> None:
    captured = capture("frees.py")
    assert len(captured.result.programs) == 4
    assert "alive 0\n" in captured.stdout


# -- libraries


@pytest.fixture
def libraries(capture: Callable[..., Captured]) -> Captured:
    for name in ("equinox", "flax", "optax"):
        pytest.importorskip(name)
    captured: Captured = capture("libraries.py")
    assert captured.returncode == 0, captured.stderr
    return captured


def test_equinox_arguments_are_named_as_the_user_knows_them(libraries: Captured) -> None:
    program = libraries.program("equinox_step")
    paths = [argument.path for argument in program.arguments]
    assert paths[:4] == ["model.linear.weight", "model.linear.bias", "model.scale", "opt_state[0].count"]
    assert paths[-1] == "x"
    assert program.static_arguments == {"steps": "2"}
    assert "result[0].linear.weight" in [output.path for output in program.outputs]


def test_nnx_arguments_are_named_as_the_user_knows_them(libraries: Captured) -> None:
    program = libraries.program("nnx_step")
    paths = [argument.path for argument in program.arguments]
    assert paths[:2] == ["net.blocks[0].bias", "net.blocks[0].kernel"]
    assert "net.inputs.kernel" in paths
    assert "optimizer.opt_state[0].mu.inputs.kernel" in paths
    assert program.calls == 2
    assert "result.inputs.kernel" in [output.path for output in libraries.program("create").outputs]


def test_a_linen_model_is_found_behind_flaxs_own_function(libraries: Captured) -> None:
    program = next(program for program in libraries.result.programs if program.name == "jit_init")
    assert program.function == "Linen.__call__"
    assert program.defined_at is not None
    assert "libraries.py" in program.defined_at


def test_only_the_users_functions_are_programs(libraries: Captured) -> None:
    names = {program.name for program in libraries.result.programs}
    assert names == {"jit_equinox_step", "jit_create", "jit_nnx_step", "jit_init"}
    assert sum(other.count for other in libraries.result.other_compiles) >= 10


def test_functions_with_long_names_are_kept_with_all_their_dumps(jit_long_names: Captured) -> None:
    short, *long = jit_long_names.result.programs
    assert [len(program.function) for program in long] == [150, 200, 250, 300]
    for program in long:
        kinds = [
            sorted(name.rpartition(".jit_")[2].partition(each.name[4:])[2] for name in jit_long_names.files(each))
            for each in (short, program)
        ]
        assert kinds[0] == kinds[1]
        assert program.module == f"{program.name}@{program.target.replace(':', '_')}"


# -- other kinds of program


@pytest.fixture(params=["native", pytest.param("v5e", marks=needs_compiler)])
def other_kinds(request: pytest.FixtureRequest, capture: Callable[..., Captured]) -> Captured:
    env = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    captured: Captured = capture("other_kinds.py", target=V5E if request.param == "v5e" else None, env=env)
    assert captured.returncode == 0, captured.stderr
    return captured


@needs_compiler
def test_a_program_for_a_topology_of_the_scripts_own_is_labelled_with_it(other_kinds: Captured) -> None:
    program = other_kinds.program("ahead")
    assert (program.target, program.device_kind, program.device_count) == ("v6e:2x2", "TPU v6 lite", 4)
    assert program.module == "jit_ahead@v6e_2x2"
    assert program.calls == 0
    assert "ahead 32768\n" in other_kinds.stdout


@needs_compiler
def test_host_memory_is_told_with_the_sharding(other_kinds: Captured) -> None:
    program = other_kinds.program("offloads")
    expected = "P('x') in pinned_host" if program.device_count > 1 else "in pinned_host"
    assert program.arguments[0].sharding == program.outputs[0].sharding == expected
    assert "offloads pinned_host\n" in other_kinds.stdout


@needs_compiler
def test_mutable_arrays_and_backends_by_name_are_caught(other_kinds: Captured) -> None:
    assert [argument.path for argument in other_kinds.program("mutates").arguments] == ["ref", "value"]
    assert [output.path for output in other_kinds.program("mutates").outputs] == ["result"]
    assert "by name (3,)\n" in other_kinds.stdout


# -- entry functions


def test_an_entry_functions_program_is_compiled_and_run_once(capture: Callable[..., Captured]) -> None:
    captured = capture(entry="scripts/entry_points.py:make")
    program = captured.program("step")
    assert captured.returncode == 0
    assert [argument.path for argument in program.arguments] == ["params['w']", "x"]
    assert program.calls == 1


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("scripts/entry_points.py:mak", "no function is named 'mak'. Known: make, step, makes_nothing."),
        ("scripts/entry_points.py:makes_nothing", "expected the function to return (fn, args), found NoneType."),
        ("scripts/nowhere.py:make", "there is no such file."),
        ("no_such_module:make", "there is no module no_such_module."),
        ("entry_points", "expected module:function."),
    ],
)
def test_a_wrong_entry_is_told_in_one_line(capture: Callable[..., Captured], entry: str, message: str) -> None:
    captured = capture(entry=entry)
    assert captured.returncode == 2
    assert captured.result.error is not None
    assert captured.result.error.startswith(f"entry {entry}: {message}")
    assert captured.stderr == ""


# -- compile-only


@needs_compiler
def test_a_script_is_told_the_target_and_its_meshes_are_ordered_as_the_targets(
    capture: Callable[..., Captured],
) -> None:
    lines = capture("two_by_two.py", target=V5E).stdout.splitlines()
    assert "told tpu tpu TPU v5 lite (1, 0, 0) 4" in lines
    assert "order [0, 1, 3, 2] [0, 1, 3, 2]" in lines
    assert "step P(None, 'model') (256, 128) 0.0" in lines
    assert "order [0, 1, 2, 3] [0, 2, 1, 3]" in capture("two_by_two.py", target=V5P).stdout.splitlines()


@needs_compiler
@pytest.mark.parametrize("target", [V5E, V5P])
def test_programs_are_compiled_for_the_target_alone(capture: Callable[..., Captured], target: TargetSpec) -> None:
    captured = capture("two_by_two.py", target=target)
    assert captured.returncode == 0, captured.stderr
    for program in captured.result.programs:
        assert (program.target, program.platform, program.device_kind) == (target.target, "tpu", target.device_kind)
        assert program.device_count == 4
    names = captured.files(captured.program("step"))
    assert any(name.endswith("after_codegen.txt") for name in names)
    arguments = next(name for name in names if name.endswith("target_arguments.txt"))
    text = (captured.staging / "programs" / captured.program("step").module / arguments).read_text()
    assert ('variant: "lite"' in text) == (target is V5E)


@needs_compiler
def test_shardings_and_meshes_of_a_target_program_are_kept(capture: Callable[..., Captured]) -> None:
    program = capture("two_by_two.py", target=V5E).program("step")
    assert program.mesh == {"data": 2, "model": 2}
    assert [(a.path, a.sharding, a.donated) for a in program.arguments] == [
        ("w", "P(None, 'model')", True),
        ("x", "P('data', None)", False),
    ]
    assert [output.sharding for output in program.outputs] == ["P(None, 'model')", "P()"]


@needs_compiler
def test_the_order_of_a_meshs_devices_reaches_the_compiler(capture: Callable[..., Captured]) -> None:
    captured = capture("two_by_two.py", target=V5E)

    def assignment(function: str) -> str:
        program = captured.program(function)
        name = next(name for name in captured.files(program) if name.endswith("hlo_module_config.txt"))
        return (captured.staging / "programs" / program.module / name).read_text()

    assert assignment("in_order") != assignment("in_plain_order")


@needs_compiler
def test_libtpus_noise_goes_to_its_log(capture: Callable[..., Captured]) -> None:
    captured = capture("two_by_two.py", target=V5E)
    assert captured.stderr == ""
    assert [path.name for path in (captured.staging / "logs").iterdir()] == ["libtpu.log"]
    assert "hostname" in (captured.staging / "logs" / "libtpu.log").read_text(errors="replace")


@needs_compiler
def test_a_model_far_larger_than_memory_is_captured_in_little_memory(capture: Callable[..., Captured]) -> None:
    pytest.importorskip("optax")
    captured = capture("heavy.py", target=V5E_16)
    assert captured.returncode == 0, captured.stderr
    assert "total 0.0\n" in captured.stdout
    peak = re.search(r"peak (\d+) MiB", captured.stdout)
    assert peak is not None
    assert int(peak[1]) < 3000
    argument = captured.program("total").arguments[0]
    assert (argument.path, argument.shape) == ("params['called']", [1 << 20, 4096])
    assert argument.sharding == "P('fsdp')"


@needs_compiler
def test_slices_are_told_apart_and_joined_by_a_hybrid_mesh(capture: Callable[..., Captured]) -> None:
    captured = capture("slices.py", target=V5E_SLICES)
    assert captured.returncode == 0, captured.stderr
    assert "slices [0, 0, 0, 0, 1, 1, 1, 1]" in captured.stdout
    assert "mesh [0, 1, 3, 2, 4, 5, 7, 6]" in captured.stdout
    program = captured.program("across")
    assert (program.module, program.device_count) == ("jit_across@2xv5e_2x2", 8)


@needs_compiler
def test_the_users_flags_for_xla_and_libtpu_are_kept_and_their_own_dumps_too(
    tmp_path: Path, capture: Callable[..., Captured]
) -> None:
    env = {"XLA_FLAGS": f"--xla_dump_to={tmp_path}", "LIBTPU_INIT_ARGS": "--xla_tpu_scoped_vmem_limit_kib=12345"}
    captured = capture("raises.py", target=V5E, env=env)
    program = captured.program("first")
    flags = next(name for name in captured.files(program) if name.endswith("tpu_comp_env.txt"))
    assert "12345" in (captured.staging / "programs" / program.module / flags).read_text()
    assert set(captured.files(program)) <= {path.name for path in tmp_path.iterdir()}
    assert captured.result.environment == {"JAX_PLATFORMS": "cpu"} | env


@needs_compiler
def test_kernels_are_lowered_for_the_target_wherever_they_are_called(capture: Callable[..., Captured]) -> None:
    captured = capture("kernels.py", target=V5E)
    assert "in a program (256, 128)" in captured.stdout
    assert "eager (256, 128)" in captured.stdout
    assert "library (1, 2, 256, 128)" in captured.stdout
    for function in ("adds", "add_kernel", "flash_attention"):
        program = captured.program(function)
        assert program.target == "v5e:2x2"
        assert program.failure is None


@needs_compiler
def test_running_out_of_hbm_is_an_answer_and_the_script_goes_on(capture: Callable[..., Captured]) -> None:
    captured = capture("kernels.py", target=V5E)
    program = captured.program("too_large")
    assert program.failure is not None
    assert program.failure.kind == "out_of_memory"
    assert program.failure.available_bytes == int(15.75 * 2**30)
    assert program.failure.needed_bytes is not None
    assert program.failure.needed_bytes > program.failure.available_bytes
    assert program.failure.memory_space == "hbm"
    assert any("buffer-assignment" in name for name in captured.files(program))
    assert "too large (4294967296,)" in captured.stdout


@needs_compiler
def test_an_ahead_of_time_compile_that_runs_out_of_hbm_raises_as_it_would_on_the_target(
    capture: Callable[..., Captured],
) -> None:
    assert "ahead of time JaxRuntimeError" in capture("kernels.py", target=V5E).stdout


@needs_compiler
def test_a_lowering_that_fails_is_kept_and_is_the_scripts_own_error(capture: Callable[..., Captured]) -> None:
    captured = capture("kernels.py", target=V5E)
    failure = captured.program("ill_blocked").failure
    assert failure is not None
    assert failure.kind == "lowering"
    assert captured.result.script_error is not None
    assert failure.message.startswith(captured.result.script_error.removesuffix("…"))
    assert captured.returncode == 1


@needs_compiler
def test_with_run_programs_really_run_on_the_cpu_beside_the_compile(capture: Callable[..., Captured]) -> None:
    captured = capture("as_python_does.py", target=V5E, run=True)
    assert "sum 4.0" in captured.stdout
    (program,) = captured.result.programs
    assert (program.target, program.calls) == ("v5e:2x2", 1)


@needs_compiler
@pytest.mark.parametrize("run", [False, True])
def test_what_a_script_is_told_and_compiles_is_the_same_whether_it_runs_or_not(
    capture: Callable[..., Captured], run: bool
) -> None:
    captured = capture("asks_platform.py", target=V5E, run=run)
    assert captured.returncode == 0, captured.stderr
    assert captured.stdout.startswith("told tpu tpu TPU v5 lite\n")
    assert f"branches {512.0 if run else 0.0}\n" in captured.stdout
    branches, kernel = captured.program("branches"), captured.program("doubles")
    assert branches.cost_analysis is not None
    assert branches.cost_analysis["flops"] >= 2 * 8 * 8 * 128
    assert "kernel 0.0\n" in captured.stdout
    assert (kernel.target, kernel.failure, kernel.calls) == ("v5e:2x2", None, 1)
    unable = [note for note in captured.result.notes if note.startswith("doubles (") and "gives zeros" in note]
    assert len(unable) == run
    assert unable == [event.detail for event in captured.events if event.stage == "note"]


@needs_compiler
@pytest.mark.parametrize("run", [False, True])
def test_what_a_script_puts_on_the_host_cpu_stays_there_and_is_counted_apart(
    capture: Callable[..., Captured], run: bool
) -> None:
    captured = capture("on_host.py", target=V5E, run=run)
    assert captured.returncode == 0, captured.stderr
    assert "devices cpu cpu True 4 tpu\n" in captured.stdout
    assert "small [2.0, 2.0]\n" in captured.stdout
    assert captured.stdout.count("on the host\n") == 5
    assert [program.function for program in captured.result.programs] == ["layer"]
    others = {other.name: other for other in captured.result.other_compiles if other.kind == "host"}
    functions = {"default_device", "by_string", "follows_data", "by_backend", "on_a_mesh"}
    assert set(others) == {f"jit_{function}" for function in functions}
    place = others["jit_follows_data"].defined_at
    assert place is not None
    assert re.search(r"scripts/on_host\.py:\d+$", place)
    assert sum("stays on the host CPU" in event.detail for event in captured.events) == 5


@needs_compiler
@pytest.mark.parametrize("size", ["8", "32"])
def test_a_pmap_over_more_devices_says_how_many(capture: Callable[..., Captured], size: str) -> None:
    captured = capture("counts_devices.py", target=V5E, argv=["pmap", size])
    assert [event.detail for event in captured.events if event.stage == "needs_devices"] == [size]


@needs_compiler
def test_a_script_that_checks_its_devices_is_told_to_name_a_topology(capture: Callable[..., Captured]) -> None:
    captured = capture("counts_devices.py", target=V5E, argv=["assert"])
    (told,) = [event.detail for event in captured.events if event.stage == "note"]
    assert told.endswith("than the 4 of v5e:2x2: name a topology that has it, such as --target v5e:4x4")
    assert captured.result.notes == [told]


@needs_compiler
def test_a_script_that_wants_more_devices_says_how_many(capture: Callable[..., Captured]) -> None:
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    captured = capture("raises.py", target=V5E, env=flags)
    assert [event.detail for event in captured.events if event.stage == "needs_devices"] == ["8"]
