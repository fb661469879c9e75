"""Graphs are laid out inside their size, whatever their nodes are called, by a Graphviz that comes with a wheel."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.render.graph_layout import LONGEST_LINE, place
from hlotrace.units import end_of
from hlotrace.views.blocks import Graph

HOSTILE = ('"]; evil [label="', "<b>x</b>", "a\\", "n0", "%{}", "é→")


def graph_of(edges, extra=()):
    ids = dict.fromkeys([*(name for edge in edges for name in edge), *extra])
    return Graph("g", {name: (name, "member") for name in ids}, tuple((a, b, "4 B", True) for a, b in edges))


def test_nodes_stand_above_those_that_use_them_and_within_the_size_to_a_point():
    placed = place(graph_of([("a", "b"), ("b", "c"), ("a", "c")]))
    at = {node.id: node for node in placed.nodes}
    assert at["a"].y < at["b"].y < at["c"].y
    for node in placed.nodes:
        assert -1 <= node.x - node.width / 2 <= node.x + node.width / 2 <= placed.width + 1
        assert -1 <= node.y - node.height / 2 <= node.y + node.height / 2 <= placed.height + 1


def test_an_edge_begins_at_its_source_and_ends_at_its_target():
    placed = place(graph_of([("a", "b")]))
    at = {node.id: node for node in placed.nodes}
    (edge,) = placed.edges
    assert abs(edge.path[0][1] - (at["a"].y + at["a"].height / 2)) < 2
    assert abs(edge.path[-1][1] - (at["b"].y - at["b"].height / 2)) < 2
    assert (len(edge.path) - 1) % 3 == 0
    assert edge.path[0][1] < edge.label_at[1] < edge.path[-1][1]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_kept_as_they_are_and_mean_nothing_to_graphviz(name):
    placed = place(graph_of([(name, "b")]))
    assert [node.id for node in placed.nodes] == [name, "b"]
    assert placed.nodes[0].lines == (name,)
    assert (placed.edges[0].source, placed.edges[0].target) == (name, "b")


def test_two_edges_between_the_same_nodes_are_two():
    graph = Graph("g", {"a": ("a", "input"), "b": ("b", "member")}, (("a", "b", "1", True), ("a", "b", "2", False)))
    placed = place(graph)
    assert [(edge.label, edge.in_memory) for edge in placed.edges] == [("1", True), ("2", False)]
    assert placed.edges[0].path != placed.edges[1].path


def test_a_graph_of_nothing_has_no_size_and_an_edge_to_nothing_is_left_out():
    assert place(Graph("g")).nodes == ()
    assert place(Graph("g", {"a": ("a", "member")}, (("a", "gone", "", True),))).edges == ()


def test_a_node_that_uses_itself_is_laid_out():
    assert len(place(graph_of([("a", "a")])).edges) == 1


@given(st.text(), st.integers(2, 60))
def test_a_text_that_is_cut_keeps_its_end(text, longest):
    made = end_of(text, longest)
    assert len(made) <= longest
    assert made == text or text.endswith(made.removeprefix("…"))


def test_a_long_line_of_a_node_is_cut():
    placed = place(graph_of([("x" * 500, "b")]))
    assert [len(line) for line in placed.nodes[0].lines] == [LONGEST_LINE]


def test_layouts_at_the_same_time_do_not_disturb_each_other():
    graph = graph_of([(f"n{number}", f"n{number + 1}") for number in range(30)])
    expected, found = place(graph), []
    threads = [threading.Thread(target=lambda: found.append(place(graph))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6
