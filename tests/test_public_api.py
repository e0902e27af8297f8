"""The public interface: what exists, what it costs to import, and that its JSON keeps its schema on real input."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

import tracer
from tests.releases import release_checkout

SCHEMAS = Path(tracer.__file__).parent / "schemas"


def test_the_public_names() -> None:
    assert sorted(tracer.__all__) == [
        "Checkout", "Picture", "Program", "Route", "TracerError", "Wanted", "check", "draw", "make_report",
        "open_checkout", "symbol_table", "trace",
    ]  # fmt: skip
    importlib.import_module("tracer.report")  # a module must never hide a public name

    for name in tracer.__all__:
        assert not isinstance(getattr(tracer, name), ModuleType)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tracer.nothing


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ["torch", "networkx", "jinja2", "rich", "typer", "unearth", "numpy", "clang"]
    code = f"import sys, tracer; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_trace_never_imports_torch_or_the_network() -> None:
    checkout = release_checkout("2.8.3")
    code = (
        "import sys; from tracer import Program, open_checkout, trace; "
        f"program = Program(open_checkout({str(checkout.root)!r}), cache=False); trace(program); program.close(); "
        "print([name for name in ('torch', 'unearth', 'httpx', 'urllib.request', 'networkx') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("version", ["2.0.0.post1", "2.8.3"])
def test_json_of_a_real_route_keeps_its_schema(version: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tracer", "trace", f"pypi:{version}", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    data = json.loads(result.stdout)
    jsonschema.validate(data, json.loads((SCHEMAS / "trace.schema.json").read_text()))
    assert data["schema"] == "flashtracer/trace/1"
    assert len(data["edges"]) == len(data["route"]) - 1
    assert data["coverage"]["call_sites"] == (
        data["coverage"]["resolved"] + data["coverage"]["external"] + len(data["coverage"]["unresolved"])
    )


def test_json_of_a_real_graph_keeps_its_schema() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tracer", "graph", "pypi:2.5.8", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    data = json.loads(result.stdout)
    jsonschema.validate(data, json.loads((SCHEMAS / "graph.schema.json").read_text()))
    names = {node["id"] for node in data["nodes"]}
    assert all(edge["source"] in names and edge["target"] in names for edge in data["edges"])
    assert sum(node["on_route"] for node in data["nodes"]) == 14
