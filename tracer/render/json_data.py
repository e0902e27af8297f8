"""Answers as plain data for JSON, in the shapes that ``tracer/schemas`` lays down."""

from __future__ import annotations

from typing import Any

from tracer.model import CallSite, Definition, Diagnostic, Edge, Location
from tracer.picture import Picture
from tracer.route import Branch, Identity, Route, Step

Data = dict[str, Any]

TRACE = "flashtracer/trace/1"
GRAPH = "flashtracer/graph/1"


def route(route: Route) -> Data:
    """Return a route as ``flashtracer/trace/1``: step k reaches step k+1 through the edge of the same position."""
    return {
        "schema": TRACE,
        "checkout": checkout(route.checkout),
        "route": [_step(step) for step in route.steps],
        "edges": [_edge(edge) for edge in route.edges],
        "branches": [_branch(branch) for branch in route.branches],
        "coverage": {
            "call_sites": route.coverage.call_sites,
            "resolved": route.coverage.resolved,
            "external": route.coverage.external,
            "unresolved": [_call_site(site) for site in route.coverage.unresolved],
        },
        "diagnostics": [_diagnostic(diagnostic) for diagnostic in route.diagnostics],
    }


def graph(picture: Picture, about: Identity | None = None) -> Data:
    """Return a picture's boxes and arrows as ``flashtracer/graph/1``."""
    return {
        "schema": GRAPH,
        "checkout": checkout(about) if about else None,
        "title": picture.title,
        "cut": picture.cut,
        "total": {"nodes": picture.total_nodes, "edges": picture.total_edges},
        "nodes": [
            {
                "id": node.id,
                "label": node.label,
                "language": node.language.value,
                "file": node.file,
                "step": node.step or None,
                "on_route": node.on_route,
                "on_branch": node.on_branch,
                "condition": node.condition,
                "count": node.count,
                "members": [_definition(member) for member in node.members],
            }
            for node in picture.nodes
        ],
        "edges": [
            {
                "source": edge.source,
                "target": edge.target,
                "how": edge.how.value,
                "confidence": edge.confidence.value,
                "label": edge.label,
                "on_route": edge.on_route,
                "on_branch": edge.on_branch,
                "count": edge.count,
            }
            for edge in picture.edges
        ],
    }


def checkout(about: Identity) -> Data:
    """Return which checkout an answer is about."""
    return {
        "flavour": about.flavour,
        "version": about.version,
        "commit": about.commit,
        "dirty": about.dirty,
        "source": about.source,
        "permalink": about.permalink,
    }


def location(place: Location) -> Data:
    """Return a place: file relative to the checkout, 1-based line and column of the name."""
    return {"file": place.file, "line": place.line, "column": place.column, "end_line": place.end_line}


def _definition(definition: Definition) -> Data:
    return {
        "id": definition.id,
        "name": definition.name,
        "qualified_name": definition.qualified_name,
        "language": definition.language.value,
        "kind": definition.kind,
        "location": location(definition.location),
        "template_parameters": list(definition.template_parameters),
        "template_arguments": list(definition.template_arguments),
    }


def _step(step: Step) -> Data:
    return {
        **_definition(step.definition),
        "label": step.label,
        "role": step.role,
        "alternatives": [_definition(alternative) for alternative in step.alternatives],
    }


def _edge(edge: Edge) -> Data:
    return {
        "source": edge.source,
        "target": edge.target,
        "how": edge.how.value,
        "confidence": edge.confidence.value,
        "call_site": location(edge.call_site),
        "through": location(edge.through) if edge.through else None,
        "written": edge.written,
        "template_arguments": list(edge.template_arguments),
    }


def _branch(branch: Branch) -> Data:
    return {
        "step": branch.step,
        "definitions": [_definition(definition) for definition in branch.definitions],
        "condition": branch.condition,
        "call_site": location(branch.call_site),
    }


def _call_site(site: CallSite) -> Data:
    return {
        "caller": site.caller,
        "written": site.written,
        "location": location(site.location),
        "reason": site.reason,
    }


def _diagnostic(diagnostic: Diagnostic) -> Data:
    return {"location": location(diagnostic.location), "message": diagnostic.message}
