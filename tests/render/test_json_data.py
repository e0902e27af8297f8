from __future__ import annotations

import json
import os.path
from dataclasses import replace
from importlib import import_module
from typing import Any

import hostile
import pytest
import synthetic as s

from tracer import render
from tracer.picture import Prune, draw
from tracer.render import json_data

jsonschema: Any = import_module("jsonschema")  # It has no types.

SCHEMAS = os.path.join(os.path.dirname(os.path.dirname(render.__file__)), "schemas")


def validator(name: str) -> Any:
    with open(os.path.join(SCHEMAS, f"{name}.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def plain(data: dict[str, Any]) -> Any:
    return json.loads(json.dumps(data))


@pytest.mark.parametrize("route", [s.ROUTE, hostile.ROUTE, replace(s.ROUTE, checkout=replace(s.IDENTITY, commit=None))])
def test_a_route_keeps_to_its_schema(route: Any) -> None:
    validator("trace").validate(plain(json_data.route(route)))


@pytest.mark.parametrize("prune", [None, Prune(hops=0)])
def test_a_graph_keeps_to_its_schema(prune: Prune | None) -> None:
    for graph, route in ((s.graph(), s.ROUTE), (hostile.graph(), hostile.ROUTE), (s.graph(), None)):
        picture = draw(graph, route, prune)
        validator("graph").validate(plain(json_data.graph(picture, s.IDENTITY)))
        validator("graph").validate(plain(json_data.graph(picture)))


@pytest.mark.parametrize(
    "broken",
    [
        {"schema": "flashtracer/trace/2"},
        {"route": [{}]},
        {"coverage": {"call_sites": -1, "resolved": 0, "external": 0, "unresolved": []}},
        {"surprise": 1},
    ],
)
def test_the_schema_rejects_what_is_not_a_route(broken: dict[str, Any]) -> None:
    assert not validator("trace").is_valid({**plain(json_data.route(s.ROUTE)), **broken})


def test_the_trace_has_the_agreed_shape() -> None:
    data = json_data.route(s.ROUTE)
    assert data["schema"] == "flashtracer/trace/1"
    assert data["checkout"]["version"] == "2.8.3"
    assert len(data["route"]) == 14 and len(data["edges"]) == 13
    kernel = data["route"][9]
    assert (kernel["name"], kernel["language"], kernel["kind"]) == ("flash_fwd_kernel", "cuda", "kernel")
    assert kernel["location"] == {"file": s.LAUNCH, "line": 32, "column": 5, "end_line": 52}
    assert len(data["route"][6]["alternatives"]) == 23
    assert data["route"][6]["alternatives"][0]["template_arguments"] == ["cutlass::half_t", "32", "true"]
    launch = data["edges"][8]
    assert (launch["how"], launch["confidence"]) == ("launch", "exact")
    assert (launch["call_site"]["line"], launch["through"]["line"]) == (91, 79)
    assert (data["coverage"]["call_sites"], data["coverage"]["resolved"], data["coverage"]["external"]) == (
        382,
        101,
        279,
    )
    assert [site["written"] for site in data["coverage"]["unresolved"]] == ["round_multiple", "gemm_op"]


def test_edges_name_definitions_of_the_route() -> None:
    data = json_data.route(s.ROUTE)
    ids = {step["id"] for step in data["route"]}
    assert {end for edge in data["edges"] for end in (edge["source"], edge["target"])} <= ids


def test_no_definition_is_lost_in_folding() -> None:
    graph = s.graph()
    data = json_data.graph(draw(graph, s.ROUTE))
    members = [member["id"] for node in data["nodes"] for member in node["members"]]
    assert sorted(members) == sorted(graph.nodes)
    assert sum(edge["count"] for edge in data["edges"]) == graph.number_of_edges()
    ids = {node["id"] for node in data["nodes"]}
    assert all(edge["source"] in ids and edge["target"] in ids for edge in data["edges"])
