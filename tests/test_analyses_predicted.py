from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.analyses import predicted
from hlotrace.analyses.modules import chosen_module
from hlotrace.analyses.overlap import Schedule
from hlotrace.devices import chip_by_name


def tables(synthetic, instructions, predictions, computations=None):
    rows = {
        "instructions": [synthetic.instruction_row("after_codegen", **row) for row in instructions],
        "computations": computations or [{"computation": "main", "role": "entry", "stage": "after_codegen"}],
        "predictions": [synthetic.prediction_row(**row) for row in predictions],
    }
    return synthetic.SyntheticTables(rows)


def instruction(name, opcode, operands=(), computation="main", **values):
    launched = not opcode.endswith("-done") and opcode not in ("while", "parameter", "get-tuple-element")
    known = {"is_launch": launched, "operands": list(operands), **values}
    return {"computation": computation, "instruction": name, "opcode": opcode, **known}


def time(name, kind, ns, computation="main", **values):
    return {"instruction": name, "kind": kind, "predicted_ns": ns, "computation": computation, **values}


def span(found):
    return Schedule(found["instructions"], found["computations"]).span(found["predictions"])


COPY = [
    instruction("s", "copy-start"),
    instruction("f", "fusion"),
    instruction("d", "copy-done", ["s"]),
    instruction("g", "fusion", ["d"]),
]


@pytest.mark.parametrize(("copy", "scheduled"), [(5, 30), (10, 30), (25, 45), (100, 120)])
def test_a_copy_hides_behind_what_runs_until_its_second_half(synthetic, copy, scheduled):
    found = span(
        tables(
            synthetic,
            COPY,
            [time("s", "async copy", copy), time("f", "matmul fusion", 10), time("g", "loop fusion", 20)],
        )
    )
    assert (found.all_hidden, found.scheduled, found.none_hidden) == (max(30, copy), scheduled, 30 + copy)


def test_transfers_of_a_class_go_one_after_the_other_and_those_of_two_side_by_side(synthetic):
    rows = [
        instruction("s", "copy-start"),
        instruction("t", "copy-start"),
        instruction("c", "all-gather-start"),
        instruction("d", "copy-done", ["s"]),
        instruction("e", "copy-done", ["t"]),
        instruction("h", "all-gather-done", ["c"]),
    ]
    times = [time("s", "async copy", 10), time("t", "async copy", 10), time("c", "collective", 15)]
    found = span(tables(synthetic, rows, times))
    assert (found.scheduled, found.none_hidden) == (20, 35)


def test_a_synchronous_collective_is_waited_for(synthetic):
    found = span(tables(synthetic, [instruction("c", "all-reduce")], [time("c", "collective", 15)]))
    assert (found.all_hidden, found.scheduled, found.none_hidden) == (15, 15, 15)


def test_a_collective_that_fusions_start_and_end_is_found_through_what_carries_it(synthetic):
    rows = [
        instruction("start", "fusion"),
        instruction("e", "get-tuple-element", ["start"]),
        instruction("carry", "fusion", ["e"]),
        instruction("end", "fusion", ["carry#1"], is_launch=False),
    ]
    times = [time("start", "collective", 30), time("carry", "matmul fusion", 20)]
    found = span(tables(synthetic, rows, times))
    assert (found.synchronous, found.scheduled) == (20, 30)


def loop(synthetic, trips):
    rows = [
        instruction("w", "while", called=["cond", "body"]),
        instruction("f", "fusion", computation="body"),
        instruction("less", "parameter", computation="cond"),
    ]
    computations = [
        {"computation": "main", "role": "entry"},
        {"computation": "body", "role": "while_body", "trip_count": trips},
        {"computation": "cond", "role": "while_condition"},
    ]
    return tables(synthetic, rows, [time("f", "loop fusion", 7, "body")], computations)


def test_a_loop_takes_its_body_as_often_as_it_trips_and_unknown_trips_give_no_time(synthetic):
    assert span(loop(synthetic, 6)).scheduled == 42
    assert span(loop(synthetic, None)) is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["sync", "copy", "gather"]), st.integers(0, 1000), st.integers(0, 5)), max_size=12
    )
)
def test_as_scheduled_is_between_all_hidden_and_none_hidden(synthetic, launches):
    rows, times, open_ended = [], [], []
    for number, (kind, ns, wait) in enumerate(launches):
        name = f"x{number}"
        opcode = {"sync": "fusion", "copy": "copy-start", "gather": "all-gather-start"}[kind]
        rows.append(instruction(name, opcode))
        label = {"sync": "loop fusion", "copy": "async copy", "gather": "collective"}[kind]
        times.append(time(name, label, ns))
        if kind != "sync":
            open_ended.append(name)
        while open_ended and wait == 0:
            started = open_ended.pop(0)
            rows.append(instruction(f"{started}.done", "copy-done", [started]))
            break
    rows += [instruction(f"{name}.done", "copy-done", [name]) for name in open_ended]
    if not rows:
        return
    found = span(tables(synthetic, rows, times))
    assert found.all_hidden <= found.scheduled <= found.none_hidden


def prediction(synthetic, **changes):
    rows = synthetic.layer_rows()
    rows["predictions"] = [
        {**row, **changes.get(row["instruction"].replace(".", "_").replace("-", "_"), {})}
        for row in rows["predictions"]
    ]
    found = synthetic.SyntheticTables(rows)
    row = chosen_module(found["modules"])
    return predicted.predict(found["instructions"], found["computations"], found["predictions"], row)


def test_a_program_is_predicted_with_its_range_and_what_it_leaves_out(synthetic):
    found = prediction(synthetic)
    assert (found.ns, found.low_ns, found.high_ns) == (820_000, 615_364, 960_000)
    assert found.compilers_share == pytest.approx(800 / 820)
    assert found.uncalibrated_share == pytest.approx(20 / 820)
    assert found.without == (("Pallas call", 1),)
    assert found.mfu is None
    assert found.has_kernels


KERNEL = {"class": "loop fusion", "basis": "floor", "predicted_ns": 0, "low_ns": 0, "high_ns": 0}


def test_one_mfu_only_when_the_compiler_told_most_of_the_time(synthetic):
    found = prediction(synthetic, custom_call_1=KERNEL)
    assert found.mfu == found.hfu == pytest.approx((5_076 + 2) / 820_000)
    longer = {"predicted_ns": 300_000, "high_ns": 300_000}
    assert prediction(synthetic, custom_call_1=KERNEL, multiply_1=longer).mfu is None


def test_an_mfu_of_given_flops_takes_kernels_too(synthetic):
    found = prediction(synthetic)
    assert found.mfu_of(197_000_000, chip_by_name("v5e")) == pytest.approx(1_000 / 820_000)
    assert found.mfu_of(1, None) is None
    longer = {"predicted_ns": 300_000, "high_ns": 300_000}
    assert prediction(synthetic, multiply_1=longer).mfu_of(1, chip_by_name("v5e")) is None


def test_rematerialised_products_are_in_the_hfu_alone(synthetic):
    rows = synthetic.layer_rows()
    again = synthetic.instruction_row("after_codegen", "f1", "dot.1.remat2", "dot", operands=["param_0", "param_0"])
    named = synthetic.instruction_row(
        "after_codegen", "f1", "dot.7", "dot", op_name="jit(f)/checkpoint/rematted_computation/dot_general"
    )
    rows["instructions"] += [again, named]
    rows["predictions"] = [{**row, **(KERNEL if row["class"] == "Pallas call" else {})} for row in rows["predictions"]]
    found = synthetic.SyntheticTables(rows)
    row = chosen_module(found["modules"])
    made = predicted.predict(found["instructions"], found["computations"], found["predictions"], row)
    assert made.model_share == pytest.approx(1 / 3)
    assert made.mfu == pytest.approx(made.hfu / 3)


def test_no_prediction_without_a_chip_or_any_time(synthetic):
    nothing = {"predicted_ns": None, "low_ns": None, "high_ns": None}
    assert prediction(synthetic, fusion_1=nothing, multiply_1=nothing) is None
    tables = synthetic.SyntheticTables(synthetic.cpu_rows())
    row = chosen_module(tables["modules"])
    assert predicted.predict(tables["instructions"], tables["computations"], tables["predictions"], row) is None


def test_ratios_to_the_floor_go_by_the_compilers_own_time(synthetic):
    frame = synthetic.SyntheticTables(synthetic.layer_rows())["predictions"]
    made = predicted.with_totals(frame, chip_by_name("v5e")).set_index("instruction")
    assert made.loc["fusion.1", "ratio"] == pytest.approx(800_000 / 15_364)
    assert made.loc["multiply.1", "ratio"] == pytest.approx(20_000 / 15_364)
    assert list(predicted.unusual(made.reset_index())["instruction"]) == ["fusion.1"]
    assert made["intensity"].isna().tolist() == [False, False, True]
