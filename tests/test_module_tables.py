from __future__ import annotations

from pathlib import Path

import pytest

from hlotrace.hlo.tables import module_tables
from hlotrace.parsers.hlo_proto import read_module
from hlotrace.parsers.hlo_text import read_modules
from hlotrace.tables import COMPUTATIONS, FUSIONS, INSTRUCTIONS

DATA = Path(__file__).parent / "data"


def tables(text: str, *, platform: str = "tpu", schedule=None):
    hlo = next(read_modules(text))
    return module_tables(hlo, module="m", stage="after_optimizations", platform=platform, schedule=schedule)


def rows(text: str, **options) -> dict[str, dict]:
    return {row["instruction"]: row for row in tables(text, **options)["instructions"].to_pylist()}


PROGRAM = """HloModule m, is_scheduled=true

FileNames
1 "/home/a/model.py"
2 "/home/a/lib.py"

FunctionNames
1 "main"
2 "helper"

FileLocations
1 {file_name_id=1 function_name_id=1 line=30 end_line=30 column=1 end_column=9}
2 {file_name_id=2 function_name_id=2 line=7 end_line=7 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

fused {
  a = bf16[9,256]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT b = bf16[9,256]{1,0:T(8,128)(2,1)S(1)} negate(a)
}

ENTRY main {
  p = bf16[9,256]{1,0:T(8,128)(2,1)} parameter(0), metadata={op_name="x[\\'w\\']"}
  two = s32[] constant(2)
  f = bf16[9,256]{1,0:T(8,128)(2,1)S(1)} fusion(p), kind=kLoop, calls=fused, metadata={op_name="jit(f)/neg" stack_frame_id=2}, backend_config={"window_config":{"estimated_cycles":"1921"}}
  k = f32[4]{0} custom-call(p), custom_call_target="tpu_custom_call", metadata={op_name="old" source_file="/home/a/old.py" source_line=3}
  ROOT t = (bf16[9,256]{1,0:T(8,128)(2,1)S(1)}, f32[4]{0}) tuple(f, k)
}
"""  # noqa: E501


def test_tables_have_exactly_the_declared_columns_and_types():
    made = tables(PROGRAM)
    for declared in (COMPUTATIONS, INSTRUCTIONS, FUSIONS):
        assert made[declared.name].schema == declared.arrow_schema()
        made[declared.name].validate(full=True)


def test_shape_layout_space_and_bytes_of_an_array_are_said_and_of_a_tuple_its_sum():
    found = rows(PROGRAM)
    f, t = found["f"], found["t"]
    assert (f["dtype"], f["dims"], f["layout"]) == ("bf16", [9, 256], "1,0:T(8,128)(2,1)S(1)")
    assert (f["memory_space"], f["memory_space_name"]) == (1, "VMEM")
    assert (f["bytes"], f["logical_bytes"]) == (16 * 256 * 2, 9 * 256 * 2)
    assert [t[name] for name in ("dtype", "dims", "layout", "memory_space", "memory_space_name")] == [None] * 5
    assert t["bytes"] == f["bytes"] + 16
    assert t["shape"] == "(bf16[9,256]{1,0:T(8,128)(2,1)S(1)}, f32[4]{0})"
    assert rows(PROGRAM, platform="cpu")["p"]["memory_space_name"] == "host memory"


def test_operands_calls_kinds_targets_and_literals_are_named():
    found = rows(PROGRAM)
    assert found["t"]["operands"] == ["f", "k"]
    assert found["p"]["operands"] == []
    assert (found["f"]["called"], found["f"]["fusion_kind"]) == (["fused"], "kLoop")
    assert found["k"]["custom_call_target"] == "tpu_custom_call"
    assert found["f"]["custom_call_target"] is None
    assert (found["two"]["literal"], found["p"]["parameter_number"], found["f"]["parameter_number"]) == ("2", 0, None)
    assert [name for name, row in found.items() if row["is_root"]] == ["b", "t"]


def test_an_element_of_a_tuple_as_operand_keeps_its_number_and_its_shape():
    text = """HloModule m
ENTRY main {
  p = (f32[1024]{0}, f32[8]{0}) parameter(0)
  ROOT r = f32[8]{0} negate(p#1)
}
"""
    row = rows(text)["r"]
    assert row["operands"] == ["p#1"]
    assert row["hbm_read_bytes"] == 32


def test_sources_come_from_frames_innermost_first_and_from_older_metadata():
    found = rows(PROGRAM)
    assert (found["f"]["source_file"], found["f"]["source_line"]) == ("/home/a/lib.py", 7)
    assert found["f"]["source_stack"] == ["/home/a/lib.py:7 helper", "/home/a/model.py:30 main"]
    assert (found["k"]["source_file"], found["k"]["source_line"], found["k"]["source_stack"]) == (
        "/home/a/old.py",
        3,
        None,
    )
    assert (found["p"]["source_file"], found["p"]["source_line"]) == (None, None)


def _with_config(config: str) -> str:
    return f"HloModule m\nENTRY main {{\n  ROOT p = f32[4] parameter(0), backend_config={config}\n}}\n"


@pytest.mark.parametrize(
    ("config", "model", "bundles"),
    [
        ('{"window_config":{"estimated_cycles":"1921","x":[]}}', 1921, None),
        ('{"window_config":{"estimated_cycles":1921}}', 1921, None),
        ('{"window_config":{"estimated_cycles":"9223372036854775807"}}', None, None),
        ('{"outer":{"inner":{"window_config":{"estimated_cycles":"5"}}}}', 5, None),
        ('{"bundle_analysis_data":{"estimated_cycles":"700"}}', None, 700),
        (
            '{"window_config":{"estimated_cycles":"5"},"bundle_analysis_data":{"a":{"b":1},"estimated_cycles":"7"}}',
            5,
            7,
        ),
        ('{"bundle_analysis_data":{"estimated_cycles":"7"},"window_config":{"estimated_cycles":"5"}}', 5, 7),
        ('{"window_config":{"estimated_cycles":""}}', None, None),
        ('{"other":{"estimated_microseconds":"5"}}', None, None),
    ],
)
def test_cycles_are_read_from_the_backend_config(config, model, bundles):
    row = rows(_with_config(config))["p"]
    assert (row["estimated_cycles"], row["bundle_cycles"]) == (model, bundles)


def test_the_schedule_is_the_modules_own_unless_a_list_is_given():
    assert [rows(PROGRAM)[name]["schedule_index"] for name in ("p", "f", "t", "a")] == [0, 2, 4, None]
    listed = rows(PROGRAM, schedule=["p", "hidden", "two", "f", "k", "t"])
    assert [listed[name]["schedule_index"] for name in ("p", "f", "t", "a")] == [0, 3, 5, None]
    unscheduled = rows(PROGRAM.replace(", is_scheduled=true", ""))
    assert {row["schedule_index"] for row in unscheduled.values()} == {None}


LAUNCHES = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
fused { d = f32[8] parameter(0)
  e = f32[8] negate(d)
  ROOT f = f32[8] abs(e)
}
helper { g = f32[8] parameter(0)
  ROOT h = f32[8] sine(g)
}
gathering { a1 = f32[8] parameter(0)
  b1 = f32[16] all-gather(a1), dimensions={0}
  ROOT c1 = (f32[8], f32[16], u32[]) custom-call(b1), custom_call_target="AsyncCollectiveStart"
}
gathered { a2 = f32[8] parameter(0)
  b2 = f32[16] parameter(1)
  c2 = u32[] parameter(2)
  ROOT d2 = f32[16] custom-call(a2, b2, c2), custom_call_target="AsyncCollectiveDone"
}
body { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  w = f32[8] fusion(v), kind=kLoop, calls=fused
  ROOT t = (s32[], f32[8]) tuple(n, w)
}
cond { u = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  k = s32[] constant(6)
  ROOT l = pred[] compare(j, k), direction=LT
}
ENTRY main { p = f32[8] parameter(0)
  zero = s32[] constant(0)
  fzero = f32[] constant(0)
  cs = (f32[8]{0:S(1)}, f32[8], u32[]) copy-start(p)
  cd = f32[8]{0:S(1)} copy-done(cs)
  x = f32[8] call(cd), to_apply=helper
  y = (s32[], f32[8]) tuple(zero, x)
  z = (s32[], f32[8]) while(y), condition=cond, body=body
  o = f32[8] get-tuple-element(z), index=1
  q = f32[2,4] bitcast(o)
  g0 = (f32[8], f32[16], u32[]) fusion(o), kind=kCustom, calls=gathering
  g1 = f32[8] get-tuple-element(g0), index=0
  g2 = f32[16] get-tuple-element(g0), index=1
  g3 = u32[] get-tuple-element(g0), index=2
  g4 = f32[16] fusion(g1, g2, g3), kind=kCustom, calls=gathered
  ROOT r = f32[] reduce(g4, fzero), dimensions={0}, to_apply=add
}
"""


def test_launches_are_what_a_device_is_asked_to_start():
    found = rows(LAUNCHES)
    launched = {name: row["execution_count"] for name, row in found.items() if row["is_launch"]}
    # No parameters, constants, tuples, bitcasts; no second halves; what is entered instead of the call and the loop.
    assert launched == {"n": 6, "w": 6, "h": 1, "cs": 1, "g0": 1, "r": 1}


def test_an_opcode_that_nobody_knows_is_kept_as_it_is():
    row = rows("HloModule m\nENTRY main {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] some-new-opcode(p)\n}\n")["r"]
    assert (row["opcode"], row["category"], row["flops"], row["bytes"]) == ("some-new-opcode", "other", 0, 16)


@pytest.mark.parametrize("folder", ["scan-cpu", "scan-v5e"])
def test_text_and_proto_of_a_real_program_give_the_same_figures(folder):
    text = next((DATA / folder).glob("*after_optimizations.txt")).read_text()
    proto = next((DATA / folder).glob("*after_optimizations.hlo.pb"))
    platform = "cpu" if folder.endswith("cpu") else "tpu"
    options = {"module": "m", "stage": "after_optimizations", "platform": platform}
    ours = module_tables(next(read_modules(text)), **options)
    others = module_tables(read_module(proto.read_bytes(), place=str(proto))[0], **options)
    figures = [
        "instruction", "opcode", "category", "is_launch", "shape", "bytes", "logical_bytes", "operands", "called",
        "flops", "execution_count", "hbm_read_bytes", "hbm_write_bytes", "schedule_index", "op_name", "source_stack",
    ]  # fmt: skip
    by_name = [table["instructions"].select(figures).sort_by("instruction").to_pylist() for table in (ours, others)]
    assert by_name[0] == by_name[1]
    assert len(by_name[0]) > 50
    fusions = [
        table["fusions"].sort_by("fusion").drop_columns(["estimated_cycles"]).to_pylist() for table in (ours, others)
    ]
    assert fusions[0] == fusions[1]


def test_other_peoples_modules_all_give_valid_tables(shared_data):
    count = 0
    for path in sorted((shared_data / "xla-hlo").rglob("*.hlo"))[:60]:
        for hlo in read_modules(path.read_text(), place=str(path)):
            for table in module_tables(hlo, module="m", stage="s", platform="gpu").values():
                table.validate(full=True)
            count += 1
    assert count > 40
