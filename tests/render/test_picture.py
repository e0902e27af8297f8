"""Folding, merging and pruning, on a graph whose numbers of boxes and arrows can be counted by hand."""

from __future__ import annotations

import random
from typing import Any

import networkx
import pytest
import synthetic as s

from tracer.errors import NameNotFound
from tracer.folding import folded_place
from tracer.model import Confidence, Definition, Edge, How, Language, Location
from tracer.picture import Node, Picture, Prune, draw, limited
from tracer.route import Route, Step


def small(*links: tuple[Definition, Definition]) -> networkx.MultiDiGraph[str]:
    made: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    for source, target in links:
        for item in (source, target):
            made.add_node(item.id, definition=item)
        made.add_edge(source.id, target.id, edge=s.edge(source, target, 3))
    return made


def function(name: str, file: str = "a.cpp", line: int = 1, language: Language = Language.CPP) -> Definition:
    return s.definition(name, language, "function", file, line)


def box(picture: Picture, member: Definition) -> Node:
    return next(node for node in picture.nodes if member in node.members)


def test_the_route_comes_first_and_in_order() -> None:
    picture = draw(s.graph(), s.ROUTE)
    assert [node.step for node in picture.nodes if node.on_route] == list(range(1, 15))
    assert [node.label for node in picture.nodes[:14]] == [step.label for step in s.STEPS]
    assert [edge.on_route for edge in picture.edges[:14]] == [True] * 13 + [False]
    assert picture.title == "flash_attn_func → flash_fwd_kernel"


def test_an_arrow_leaves_the_box_that_its_edge_names_not_the_step_before() -> None:
    picture = draw(s.graph(), s.ROUTE)
    on_route = {(edge.source, edge.target) for edge in picture.edges if edge.on_route}
    assert (s.rowblock.id, s.normalize.id) in on_route
    assert (s.rescale.id, s.normalize.id) not in on_route


def test_alternatives_of_a_step_are_one_box_that_counts_them() -> None:
    picture = draw(s.graph(), s.ROUTE)
    specializations, head_dims = box(picture, s.specializations[5]), box(picture, s.per_head_dim[3])
    assert (specializations.count, specializations.sublabel) == (24, "24 specializations in 24 .cu files")
    assert specializations.file == "csrc/flash_attn/src/flash_fwd_hdim…_sm80.cu"
    assert (head_dims.count, head_dims.sublabel) == (6, "flash_fwd_launch_template.h:173…")


def test_specializations_and_siblings_fold_without_a_route() -> None:
    picture = draw(s.graph())
    specializations, head_dims = box(picture, s.specializations[5]), box(picture, s.per_head_dim[3])
    assert (specializations.label, specializations.count) == ("run_mha_fwd_<…>", 24)
    assert (head_dims.label, head_dims.count) == ("run_mha_fwd_hdim{32…256}", 6)
    assert not any(node.on_route for node in picture.nodes)


def test_without_folding_every_definition_is_a_box() -> None:
    graph = s.graph()
    picture = draw(graph, s.ROUTE, fold=False)
    assert len(picture.nodes) == len(graph.nodes) == picture.total_nodes
    assert {node.count for node in picture.nodes} == {1}


def test_functions_that_others_call_are_no_siblings() -> None:
    one, two, three, four = function("f1", line=1), function("f2", line=2), function("a", line=3), function("b", line=4)
    apart = draw(small((three, one), (four, two)))
    together = draw(small((three, one), (three, two)))
    assert sorted(node.label for node in apart.nodes) == ["a", "b", "f1", "f2"]
    assert sorted(node.label for node in together.nodes) == ["a", "f{1…2}"]


def test_one_name_in_two_files_is_two_boxes() -> None:
    caller = function("main", "main.cpp")
    picture = draw(small((caller, function("mha_fwd", "a.cpp")), (caller, function("mha_fwd", "b.cpp"))))
    assert sorted(node.file for node in picture.nodes) == ["a.cpp", "b.cpp", "main.cpp"]


def test_functions_that_nothing_calls_do_not_fold() -> None:
    made: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    for number in range(3):
        item = function(f"f{number}", line=number + 1)
        made.add_node(item.id, definition=item)
    assert len(draw(made).nodes) == 3


def test_parallel_calls_are_one_arrow_with_a_count() -> None:
    picture = draw(s.graph(), s.ROUTE)
    gemm = next(node for node in picture.nodes if node.label == "gemm")
    arrow = next(edge for edge in picture.edges if edge.target == gemm.id and edge.source == s.rowblock.id)
    assert (arrow.count, arrow.label) == (3, "×3")
    assert arrow.tooltip.count("\n") == 2


def test_the_surest_of_parallel_calls_decides_the_line() -> None:
    caller, callee = function("a", line=1), function("b", line=2)
    made = small((caller, callee))
    made.add_edge(caller.id, callee.id, edge=s.edge(caller, callee, 9, How.CALL, Confidence.AMBIGUOUS))
    assert [edge.confidence for edge in draw(made).edges] == [Confidence.EXACT]


def test_route_only_keeps_the_branch_and_says_how_much_is_left_out() -> None:
    whole, picture = draw(s.graph(), s.ROUTE), draw(s.graph(), s.ROUTE, Prune(hops=0))
    assert len(picture.nodes) == 14 + 3
    assert [node.label for node in picture.nodes if node.on_branch] == [
        "run_mha_fwd_splitkv_dispatch",
        "run_flash_splitkv_fwd",
        "flash_fwd_splitkv_kernel",
    ]
    assert len(picture.edges) == 13 + 3
    assert picture.cut == (
        f"Shown: 17 of {len(whole.nodes)} boxes and 16 of {len(whole.edges)} arrows: "
        "the route and what branches off it."
    )
    assert whole.cut == ""


def test_the_condition_stands_at_the_first_box_of_a_branch_only() -> None:
    picture = draw(s.graph(), s.ROUTE, Prune(hops=0))
    assert [node.condition for node in picture.nodes if node.on_branch] == ["params.num_splits > 1", "", ""]
    assert [edge.label for edge in picture.edges if edge.on_branch] == ["", "", "launch"]


def test_hops_reach_what_the_route_calls_and_what_calls_it_but_no_cousins() -> None:
    entry, kernel, helper, below = (function(name, line=line) for line, name in enumerate(("e", "k", "h", "x"), 1))
    user, cousin = function("user", line=5), function("cousin", line=6)
    route = Route(s.IDENTITY, (Step(entry, "e"), Step(kernel, "k")), (s.edge(entry, kernel, 2),), (), s.ROUTE.coverage)
    graph = small((entry, kernel), (kernel, helper), (helper, below), (user, kernel), (user, cousin))
    found = {hops: {node.label for node in draw(graph, route, Prune(hops=hops)).nodes} for hops in (0, 1, 2)}
    assert found[0] == {"e", "k"}
    assert found[1] == {"e", "k", "h", "user"}
    assert found[2] == {"e", "k", "h", "x", "user"}


def test_pruned_to_a_file_or_a_language() -> None:
    graph = s.graph()
    softmax = draw(graph, s.ROUTE, Prune(file="softmax.h"))
    assert {node.file for node in softmax.nodes} == {s.SOFTMAX}
    assert draw(graph, s.ROUTE, Prune(file="./" + s.SOFTMAX)).nodes == softmax.nodes
    assert {node.language for node in draw(graph, prune=Prune(language=Language.CUDA)).nodes} == {Language.CUDA}
    assert "only softmax.h" in softmax.cut


def test_a_file_that_is_not_there_gets_the_nearest() -> None:
    with pytest.raises(NameNotFound) as caught:
        draw(s.graph(), s.ROUTE, Prune(file="sofmax.h"))
    assert caught.value.nearest[0] == "softmax.h"


def test_hops_without_a_route_draw_everything() -> None:
    assert draw(s.graph(), None, Prune(hops=1)).nodes == draw(s.graph()).nodes


def test_what_the_route_names_is_drawn_even_where_the_graph_lacks_it() -> None:
    picture = draw(small(), s.ROUTE)
    assert len(picture.nodes) == 17
    assert sum(edge.on_route for edge in picture.edges) == 13


def test_the_order_in_which_a_graph_was_built_does_not_matter() -> None:
    graph = s.graph()
    nodes: list[tuple[str, dict[str, Any]]] = [(key, graph.nodes[key]) for key in graph]
    edges: list[tuple[str, str, dict[str, Any]]] = list(graph.edges(data=True))
    for seed in (1, 2, 3):
        shuffled: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
        random.Random(seed).shuffle(nodes)
        random.Random(seed).shuffle(edges)
        for key, attributes in nodes:
            shuffled.add_node(key, **attributes)
        for source, target, linked in edges:
            shuffled.add_edge(source, target, **linked)
        assert draw(shuffled, s.ROUTE) == draw(graph, s.ROUTE)
        assert draw(shuffled) == draw(graph)


def test_limits_keep_the_route_and_no_loose_boxes() -> None:
    whole = draw(s.graph(), s.ROUTE)
    less = limited(whole, nodes=30, edges=20)
    assert len(less.edges) == 20 and len(less.nodes) <= 30
    assert [node.step for node in less.nodes if node.on_route] == list(range(1, 15))
    ends = {end for edge in less.edges for end in (edge.source, edge.target)}
    assert ends == {node.id for node in less.nodes}
    assert f"{len(less.nodes)} of {len(whole.nodes)} boxes and 20 of {len(whole.edges)} arrows" in less.cut


def test_limits_that_are_not_reached_change_nothing() -> None:
    whole = draw(s.graph(), s.ROUTE)
    assert limited(whole, 1000, 1000) == whole


def test_a_folded_place_says_what_and_where() -> None:
    other = Definition("x", "x", "x", Language.CPP, "function", Location("other.h", 3))
    assert folded_place([s.entry]) == "flash_attn/flash_attn_interface.py:1135"
    assert folded_place(s.per_head_dim) == f"{s.LAUNCH}:173…"
    assert folded_place(s.specializations) == "24 specializations in 24 .cu files"
    assert folded_place([s.mha_fwd, other]) == "2 functions in 2 files"
    assert folded_place([s.entry, s.fwd]) == "2 definitions in 2 files"


@pytest.mark.parametrize(
    ("qualified", "kind", "label"),
    [
        ("flash::Softmax<kNRows>::run", "method", "Softmax::run"),
        ("flash::gemm<A, B>", "device function", "gemm"),
        ("flash::Row::operator<<", "method", "Row::operator<<"),
        ("flash::Row::operator->", "method", "Row::operator->"),
    ],
)
def test_a_label_has_the_class_but_neither_namespace_nor_template_arguments(
    qualified: str, kind: str, label: str
) -> None:
    item = s.definition("run", Language.CUDA, kind, "a.h", 1, qualified)
    made: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    made.add_node(item.id, definition=item)
    assert [node.label for node in draw(made).nodes] == [label]


def test_recursion_stays_visible() -> None:
    item = function("f")
    assert [(edge.source, edge.target) for edge in draw(small((item, item))).edges] == [(item.id, item.id)]


def test_edges_to_what_has_no_definition_are_not_drawn() -> None:
    item = function("f")
    made: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    made.add_node(item.id, definition=item)
    made.add_edge(item.id, "c++:unknown", edge=Edge(item.id, "c++:unknown", How.CALL, Confidence.EXACT, item.location))
    assert draw(made).edges == ()
