"""`hlotrace chips` and its view: a row a target, whatever became of the program there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hlotrace.bundle import Failure, Program, Target
from hlotrace.errors import HlotraceError
from hlotrace.render import records, text
from hlotrace.views.registry import view_named

GIB = 1 << 30
RECORD = {
    *("target", "fits", "hbm_peak_bytes", "hbm_capacity_bytes", "predicted_ns", "low_ns", "high_ns", "floor_ns"),
    *("bound_by", "mfu", "vmem_peak_bytes", "compile_ns", "error"),
}


def target(name, error=None):
    return Target(name.partition(":")[0], name, "tpu", None, 4, error=error)


def tables(synthetic):
    """The layer on v5e, too large for v4, not lowered for v6e, and not reached on tpu7x."""
    rows = synthetic.layer_rows()
    message = "RESOURCE_EXHAUSTED: Ran out of memory\nand a long table"
    small = Failure("out_of_memory", message, 20 * GIB, 15 * GIB, "hbm")
    absent = Failure("lowering", "NotImplementedError: no such primitive")
    made = synthetic.manifest(
        targets=[target("v4:2x2x1"), target("v5e:2x2"), target("v6e:2x2"), target("tpu7x:2x2x1", "it was killed")]
    )
    failed = {"v4:2x2x1": small, "v6e:2x2": absent}
    for name, failure in failed.items():
        module = f"jit_layer@{name}"
        row = synthetic.module_row(module, target=name, device_kind=None, error=failure.message, hbm_needed_bytes=None)
        rows["modules"].append({**row, "compile_ns": None})
        made.programs.append(Program(module, "jit_layer", "layer", None, name, "tpu", None, 1, failure=failure))
    return synthetic.SyntheticTables(rows, manifest=made)


def test_every_target_has_its_row_with_what_is_known(synthetic):
    rows = records.records(view_named("chips").build(tables(synthetic)))
    assert set(rows[0]) >= RECORD
    assert [row["target"] for row in rows] == ["v4:2x2x1", "v5e:2x2", "v6e:2x2", "tpu7x:2x2x1"]
    assert [row["fits"] for row in rows] == [False, True, None, None]
    assert [row["predicted_ns"] for row in rows] == [None, 820_000, None, None]
    fitting = rows[1]
    assert (fitting["low_ns"], fitting["high_ns"], fitting["floor_ns"]) == (615_364, 960_000, 46_092)
    assert (fitting["bound_by"], fitting["mfu"], fitting["vmem_peak_bytes"]) == ("HBM bandwidth", None, 2 << 20)
    assert (rows[0]["hbm_needed_bytes"], rows[0]["hbm_capacity_bytes"]) == (20 * GIB, 15 * GIB)
    assert rows[2]["error"] == "NotImplementedError: no such primitive"
    assert rows[3]["error"] == "it was killed"


def test_the_table_says_by_how_much_it_does_not_fit_and_why_there_is_no_executable(synthetic):
    drawn = text.draw(view_named("chips").build(tables(synthetic)), width=140)
    assert "! v4:2x2x1: does not fit by 5.00 GiB: it needs 20.00 GiB, there are 15.00 GiB" in drawn
    assert "! tpu7x:2x2x1: it was killed" in drawn
    assert "and a long table" not in drawn


def test_a_program_is_chosen_by_name_for_all_targets(synthetic):
    assert len(records.records(view_named("chips").build(tables(synthetic), module="jit_layer"))) == 4
    with pytest.raises(HlotraceError, match="no module is named"):
        view_named("chips").build(tables(synthetic), module="jit_nothing")


@pytest.mark.tpu_compiler
def test_without_a_place_the_bundle_is_gone_and_no_command_names_it(tpu_compiler, tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text("import jax, jax.numpy as jnp\njax.jit(lambda x: x @ x)(jnp.ones((512, 512)))\n")
    done = chips(str(script), "--targets", "v5e")
    assert done.returncode == 0, done.stderr
    assert "v5e:2x2" in done.stdout
    assert "$ hlotrace" not in done.stdout
    assert "-o DIR keeps it" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model.py"]


def chips(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hlotrace", "chips", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("nowhere.py",), "nowhere.py: no such file. Give the path of a Python file."),
        (("nowhere.py", "--targets", "v9"), "no target is named 'v9'."),
        (("nowhere.py", "--targets", ","), "--targets: expected targets separated by commas, such as v5e,v6e."),
        (("nowhere.py", "--format", "yaml"), "--format: no format is named 'yaml'."),
    ],
)
def test_a_mistake_is_one_line(words, line):
    done = chips(*words)
    assert done.returncode == 2
    assert line in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


SCRIPT = """
import jax, jax.numpy as jnp

print("written by the script")
if jax.devices()[0].device_kind == "TPU v6 lite":
    raise RuntimeError("not on this one")
size = 100_000 if jax.devices()[0].device_kind == "TPU v5 lite" else 1024
y = jax.jit(lambda x: x @ x)(jnp.ones((size, size), jnp.bfloat16))
"""


@pytest.mark.tpu_compiler
def test_chips_go_on_after_one_that_is_too_small_and_one_where_the_script_fails(tpu_compiler, tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(SCRIPT)
    done = chips(str(script), "--targets", "v5e,v6e,tpu7x", "--format", "json", "-o", str(tmp_path / "bundle"))
    small, failed, fits = json.loads(done.stdout)
    assert done.returncode == 1
    assert (small["target"], small["fits"], small["predicted_ns"]) == ("v5e:2x2", False, None)
    assert small["hbm_needed_bytes"] > small["hbm_capacity_bytes"]
    assert "not on this one" in failed["error"]
    assert fits["fits"]
    assert fits["floor_ns"] <= fits["low_ns"] <= fits["predicted_ns"] <= fits["high_ns"]
    assert (tmp_path / "bundle" / "manifest.json").is_file()
    assert done.stderr.count("written by the script") == 3
