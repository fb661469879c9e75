from __future__ import annotations

import pandas as pd
import pytest

from hlotrace.analyses.op_counts import GROUPINGS, op_counts, scope_of


def counts(tables, by="opcode", after="after_codegen", depth=0):
    table = op_counts(tables["instructions"], tables["computations"], after=after, by=by, depth=depth)
    return table.set_index(by)


def layer(synthetic, **changes):
    rows = synthetic.layer_rows()
    for table, change in changes.items():
        rows[table] = change(rows[table])
    return synthetic.SyntheticTables(rows)


def test_counts_stand_side_by_side_with_the_fused_ones_told_apart(synthetic):
    dot = counts(layer(synthetic)).loc["dot"]
    assert (dot["before"], dot["after"], dot["after_fused"]) == (2, 1, 1)
    assert (dot["launches_before"], dot["launches_after"]) == (2, 0)
    fusion = counts(layer(synthetic)).loc["fusion"]
    assert (fusion["before"], fusion["after"], fusion["launches_after"]) == (0, 1, 1)


def test_parameters_of_fusions_and_bodies_of_reducers_are_no_ops(synthetic):
    def with_reducer(rows):
        return [*rows, synthetic.instruction_row("after_codegen", "region", "add.9", "add", is_launch=False)]

    def as_reducer(rows):
        return [*rows, {**rows[0], "stage": "after_codegen", "computation": "region", "role": "reducer"}]

    plain = counts(layer(synthetic))
    reduced = counts(layer(synthetic, instructions=with_reducer, computations=as_reducer))
    assert plain.loc["parameter", "after"] == 1
    assert reduced.loc["add", "after"] == plain.loc["add", "after"]


def test_a_launch_in_a_loop_counts_once_a_trip(synthetic):
    def looped(rows):
        return [{**row, "execution_count": 12} if row["instruction"] == "multiply.1" else row for row in rows]

    multiply = counts(layer(synthetic, instructions=looped)).loc["multiply"]
    assert (multiply["launches_after"], multiply["after"]) == (12, 1)
    assert multiply["cycles_total"] == 12 * 300_000


def test_an_unknown_trip_count_makes_launches_unknown_and_leaves_the_counts(synthetic):
    def unknown(rows):
        return [{**row, "execution_count": None} if row["instruction"] == "multiply.1" else row for row in rows]

    table = counts(layer(synthetic, instructions=unknown))
    assert table.loc["multiply", "launches_after"] is pd.NA
    assert table.loc["multiply", "after"] == 1
    assert table.loc["fusion", "launches_after"] == 1


def test_a_stage_that_is_missing_is_unknown_and_not_zero(synthetic):
    def only_after(rows):
        return [row for row in rows if row["stage"] == "after_codegen"]

    table = counts(layer(synthetic, instructions=only_after))
    assert table["before"].isna().all()
    assert table["launches_before"].isna().all()
    assert table["after"].notna().all()
    alone = counts(synthetic.SyntheticTables(synthetic.unscheduled_rows()), after="before_optimizations")
    assert alone["after"].isna().all()
    assert alone["before"].sum() == 5


def test_each_grouping_counts_every_op_once(synthetic):
    tables = layer(synthetic)
    totals = {by: (counts(tables, by)["before"].sum(), counts(tables, by)["after"].sum()) for by in GROUPINGS}
    assert set(totals.values()) == {(5, 7)}


def test_ops_without_metadata_have_no_source_and_no_scope(synthetic):
    def bare(rows):
        return [{**row, "op_name": None, "user_file": None, "user_line": None} for row in rows]

    for by in ("source", "scope"):
        table = counts(layer(synthetic, instructions=bare), by)
        assert table.index.isna().all()
        assert len(table) == 1


@pytest.mark.parametrize(
    ("op_name", "depth", "scope"),
    [
        (
            "jit(step)/transpose(jvp(Model))/layers_0/attn/dot_general",
            0,
            "jit(step)/transpose(jvp(Model))/layers_0/attn",
        ),
        ("jit(step)/transpose(jvp(Model))/layers_0/attn/dot_general", 2, "jit(step)/transpose(jvp(Model))"),
        ("jit(step)/jvp(a/b)/mul", 0, "jit(step)/jvp(a/b)"),
        ("params['layers'][0]['w/q']", 0, "params['layers'][0]['w/q']"),
        ("broadcast.9", 0, "broadcast.9"),
        ("", 3, ""),
        ("a)/b", 0, "a)"),
    ],
)
def test_a_scope_is_the_op_name_without_its_last_part(op_name, depth, scope):
    assert scope_of(op_name, depth) == scope


def test_bare_primitives_and_arguments_have_no_scope(synthetic):
    def named(rows):
        return [{**row, "op_name": "x" if row["opcode"] == "parameter" else "mul"} for row in rows]

    assert counts(layer(synthetic, instructions=named), "scope").index.isna().all()


def called_twice(synthetic):
    before = "before_optimizations"

    def row(computation, instruction, opcode, op_name, **values):
        return synthetic.instruction_row(before, computation, instruction, opcode, op_name=op_name, **values)

    instructions = [
        row("mlp", "dot.1", "dot", "up/dot_general", execution_count=2),
        row("mlp", "call.3", "call", "act/jit(relu)", called=["relu"], execution_count=2),
        row("relu", "multiply.1", "multiply", "mul", execution_count=2),
        row("main", "call.1", "call", "jit(f)/block0/jit(mlp)", called=["mlp"]),
        row("main", "call.2", "call", "jit(f)/block1/jit(mlp)", called=["mlp"]),
        row("main", "add.1", "add", "jit(f)/block1/add"),
    ]
    callers = {"main": ("entry", None, 1), "relu": ("called", "call.3", 2), "mlp": ("called", "call.1", 2)}
    computations = [
        {"module": "jit_layer", "stage": before, "computation": name, "role": role, "caller": caller,
         "execution_count": count}
        for name, (role, caller, count) in callers.items()
    ]  # fmt: skip
    return synthetic.SyntheticTables({"instructions": instructions, "computations": computations})


def test_scopes_in_called_functions_begin_at_the_entry_once_for_each_place_that_calls(synthetic):
    table = counts(called_twice(synthetic), "scope", after="before_optimizations")
    launches = table["launches_before"].to_dict()
    for block in ("block0", "block1"):
        assert launches[f"jit(f)/{block}/jit(mlp)/up"] == 1
        assert launches[f"jit(f)/{block}/jit(mlp)/act/jit(relu)"] == 1
    assert launches["jit(f)/block1"] == 1
    assert table["launches_before"].sum() == 5
