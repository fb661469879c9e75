from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.hlo.fusions import Members, ranked_texts
from hlotrace.hlo.tables import module_tables
from hlotrace.parsers.hlo_text import read_modules


def fusions(text: str, platform: str = "tpu") -> dict[str, dict]:
    table = module_tables(next(read_modules(text)), module="m", stage="s", platform=platform)["fusions"]
    return {row["fusion"]: row for row in table.to_pylist()}


def made_of(*members: str, result: str = "f32[1024]", before: str = "", operands: str = "p, q") -> dict:
    body = "\n  ".join(("a = f32[1024] parameter(0)", "b = f32[1024] parameter(1)", *members))
    return fusions(
        f"HloModule m\n{before}\nfused {{\n  {body}\n}}\nENTRY main {{\n  p = f32[1024] parameter(0)\n"
        f"  q = f32[1024] parameter(1)\n  ROOT r = {result} fusion({operands}), kind=kLoop, calls=fused\n}}\n"
    )["r"]


KIB4 = 4096


def test_members_are_counted_without_what_computes_nothing():
    row = made_of(
        "c = f32[] constant(2)",
        "d = f32[1024] broadcast(c), dimensions={}",
        "e = f32[1024] multiply(a, d)",
        "f = f32[32,32] bitcast(e)",
        "g = f32[1024] bitcast(f)",
        "h = f32[1024] multiply(g, b)",
        "ROOT i = f32[1024] add(h, e)",
    )
    assert row["member_count"] == 4
    assert row["member_opcodes"] == ["multiply x2", "broadcast x1", "add x1"]
    assert row["launches_saved"] == 3
    assert (row["kind"], row["category"], row["root_opcode"]) == ("kLoop", "loop fusion", "add")
    assert (row["computation"], row["caller_computation"]) == ("fused", "main")


def test_bytes_kept_out_of_memory_are_each_inner_value_written_once_and_read_by_each_user():
    row = made_of("c = f32[1024] negate(a)", "d = f32[1024] abs(c)", "ROOT e = f32[1024] add(c, d)")
    # c: written, read by d and e; d: written, read by e; e is the result.
    assert row["internal_bytes"] == (1 + 2) * KIB4 + (1 + 1) * KIB4
    assert (row["operand_bytes"], row["output_bytes"]) == (2 * KIB4, KIB4)


def test_a_user_that_takes_a_value_twice_reads_it_once():
    assert made_of("c = f32[1024] negate(a)", "ROOT e = f32[1024] multiply(c, c)")["internal_bytes"] == 2 * KIB4


def test_a_bitcast_does_not_hide_who_uses_a_value():
    row = made_of(
        "c = f32[1024] negate(a)", "d = f32[32,32] bitcast(c)", "ROOT e = f32[32,32] abs(d)", result="f32[32,32]"
    )
    assert row["internal_bytes"] == 2 * KIB4


def test_a_result_that_others_inside_use_saves_their_reads_only():
    both = "(f32[1024], f32[1024])"
    row = made_of("c = f32[1024] negate(a)", "d = f32[1024] abs(c)", f"ROOT t = {both} tuple(c, d)", result=both)
    assert row["internal_bytes"] == KIB4
    assert row["root_opcode"] == "tuple"


def test_one_member_saves_nothing():
    row = made_of("ROOT c = f32[1024] add(a, b)")
    assert (row["member_count"], row["launches_saved"], row["internal_bytes"]) == (1, 0, 0)


def test_an_operand_that_is_given_twice_counts_once():
    assert made_of("ROOT c = f32[1024] add(a, b)", operands="p, p")["operand_bytes"] == KIB4


NESTED = "inner {\n  x = f32[1024] parameter(0)\n  y = f32[1024] abs(x)\n  ROOT z = f32[1024] negate(y)\n}\n"


def test_members_of_nested_fusions_are_members_and_the_nested_fusion_is_none():
    row = made_of(
        "c = f32[1024] sine(a)",
        "d = f32[1024] fusion(c), kind=kLoop, calls=inner",
        "ROOT e = f32[1024] add(d, b)",
        before=NESTED,
    )
    assert row["member_opcodes"] == ["sine x1", "abs x1", "negate x1", "add x1"]
    # c is read by abs inside, abs by negate, negate by add outside.
    assert row["internal_bytes"] == 3 * 2 * KIB4
    assert row["member_count"] == 4


def test_elements_of_a_nested_fusion_with_two_results_are_followed():
    inner = (
        "inner {\n  x = f32[1024] parameter(0)\n  y = f32[1024] abs(x)\n  z = f32[1024] negate(x)\n"
        "  ROOT t = (f32[1024], f32[1024]) tuple(y, z)\n}\n"
    )
    row = made_of(
        "d = (f32[1024], f32[1024]) fusion(a), kind=kLoop, calls=inner",
        "e = f32[1024] get-tuple-element(d), index=1",
        "ROOT f = f32[1024] add(e, b)",
        before=inner,
    )
    # z is read by add; y is read by nobody.
    assert row["internal_bytes"] == 2 * KIB4 + KIB4


def test_only_fusions_outside_of_fusions_are_listed_those_in_loops_too():
    text = (
        "HloModule m\n"
        + NESTED
        + """
body { s = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[1024] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  f = f32[1024] fusion(v), kind=kLoop, calls=inner
  ROOT t = (s32[], f32[1024]) tuple(n, f)
}
cond { u = (s32[], f32[1024]) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  k = s32[] constant(6)
  ROOT l = pred[] compare(j, k), direction=LT
}
ENTRY main { p = f32[1024] parameter(0)
  zero = s32[] constant(0)
  w = (s32[], f32[1024]) tuple(zero, p)
  ROOT r = (s32[], f32[1024]) while(w), condition=cond, body=body
}
"""
    )
    found = fusions(text)
    assert list(found) == ["f"]
    assert (found["f"]["execution_count"], found["f"]["caller_computation"]) == (6, "body")
    assert found["f"]["flops"] == 2048


TABLES = """
FileNames
1 "/home/a/model.py"
2 "/home/a/norm.py"

FunctionNames
1 "layer"
2 "rms"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=7 end_line=7 column=1 end_column=2}
3 {file_name_id=2 function_name_id=2 line=7 end_line=7 column=8 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=2}

"""
OLD = 'metadata={op_name="jit(f)/old" source_file="/home/a/old.py" source_line=3}'


def test_names_and_source_lines_of_all_members_come_from_both_forms_of_metadata_each_once():
    text = f"""HloModule m
{TABLES}
fused {{
  a = f32[1024] parameter(0)
  c = f32[1024] negate(a), metadata={{op_name="jit(f)/neg" stack_frame_id=2}}
  d = f32[1024] abs(c), metadata={{op_name="jit(f)/abs" stack_frame_id=3}}
  e = f32[1024] sine(d), {OLD}
  g = f32[1024] cosine(e)
  ROOT h = f32[1024] negate(g), metadata={{op_name="jit(f)/neg" stack_frame_id=1}}
}}
ENTRY main {{
  p = f32[1024] parameter(0)
  ROOT r = f32[1024] fusion(p), kind=kLoop, calls=fused
}}
"""
    row = fusions(text)["r"]
    assert row["op_names"] == ["jit(f)/neg", "jit(f)/abs", "jit(f)/old"]
    assert row["source_lines"] == ["/home/a/model.py:10", "/home/a/norm.py:7", "/home/a/old.py:3"]


def test_its_own_line_comes_first_then_the_members_by_how_many_have_each():
    def at(line: int) -> str:
        return f'metadata={{source_file="/home/a/f.py" source_line={line}}}'

    text = f"""HloModule m
fused {{
  a = f32[1024] parameter(0)
  b = f32[1024] negate(a), {at(1)}
  c = f32[1024] abs(b), {at(2)}
  d = f32[1024] sine(c), {at(3)}
  e = f32[1024] cosine(d), {at(2)}
  ROOT f = f32[1024] negate(e), {at(3)}
}}
ENTRY main {{
  p = f32[1024] parameter(0)
  own = f32[1024] fusion(p), kind=kLoop, calls=fused, {at(9)}
  ROOT roots = f32[1024] fusion(own), kind=kLoop, calls=fused
}}
"""
    found = fusions(text)
    assert found["own"]["source_lines"] == [f"/home/a/f.py:{line}" for line in (9, 2, 3, 1)]
    assert found["roots"]["source_lines"] == [f"/home/a/f.py:{line}" for line in (3, 2, 1)]


def test_a_module_without_fusions_has_an_empty_table():
    assert fusions("HloModule m\nENTRY main {\n  ROOT p = f32[4] parameter(0)\n}\n") == {}


@pytest.mark.parametrize("folder", ["scan-cpu", "scan-v5e"])
def test_in_a_real_program_fusions_agree_with_their_instructions(folder, request):
    files = sorted((request.path.parent / "data" / folder).glob("*after_optimizations.txt"))
    text = files[0].read_text()
    tables = module_tables(next(read_modules(text)), module="m", stage="s", platform="tpu")
    instructions = tables["instructions"].to_pandas().set_index("instruction")
    frame = tables["fusions"].to_pandas()
    assert len(frame) >= 3
    for row in frame.itertuples():
        members = instructions[instructions["computation"] == row.computation]
        assert row.flops == instructions.loc[row.fusion, "flops"]
        assert row.category == instructions.loc[row.fusion, "category"]
        assert (
            row.member_count
            >= (
                ~members["opcode"].isin(["parameter", "constant", "tuple", "get-tuple-element", "bitcast", "fusion"])
            ).sum()
        )


@given(
    st.lists(st.lists(st.integers(-1, 4), max_size=8), min_size=1, max_size=5),
    st.lists(st.integers(-1, 4), min_size=5, max_size=5),
)
def test_ranked_texts_are_those_of_counting_by_hand(groups, first):
    codes = [code for group in groups for code in group]
    which = [number for number, group in enumerate(groups) for _ in group]
    numbers = np.arange(len(groups), dtype=np.int32)
    found = Members(numbers, numbers, np.array(which, np.int32), np.arange(len(codes), dtype=np.int32), numbers)
    own = np.array(first[: len(groups)], np.int32)
    made = ranked_texts(found, np.array(codes, np.int32), pa.array(list("abcde")), own).to_pylist()
    for group, code, texts in zip(groups, own.tolist(), made, strict=True):
        known = [member for member in group if member >= 0]
        others = sorted({*known} - {code}, key=lambda member: (-known.count(member), known.index(member)))
        assert texts == ["abcde"[member] for member in [code, *others] if member >= 0]
