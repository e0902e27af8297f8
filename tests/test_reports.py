"""The reports that the repository keeps say what the program says now."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from tests.releases import release_checkout
from tracer.graph import Program
from tracer.render import symbols_json
from tracer.symbols import symbol_table

FOLDER = Path(__file__).parents[1] / "reports"
_SPEC = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
assert _SPEC is not None and _SPEC.loader is not None
generate = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generate)


def shown(svg: str) -> list[str]:
    """What a picture says; where the layout program puts it may change with that program's version."""
    return sorted(re.findall(r"<text[^>]*>([^<]+)</text>", svg))


@pytest.mark.parametrize("version", generate.VERSIONS)
def test_a_kept_report_is_fresh(version: str) -> None:
    kept = {path.name: path.read_text() for path in (FOLDER / version).iterdir()}
    now = generate.files(version)
    assert sorted(kept) == sorted(now)
    for name, text in now.items():
        if name.endswith(".svg"):
            assert shown(kept[name]) == shown(text) and len(shown(text)) > 10, f"{name} is old: run `make reports`"
        else:
            assert kept[name] == text, f"{name} is old: run `make reports`"


@pytest.mark.parametrize("algorithm", ["forward", "backward"])
def test_the_tables_of_a_report_are_those_of_the_command(algorithm: str) -> None:
    for version in generate.VERSIONS:
        kept = json.loads((FOLDER / version / f"symbols-{algorithm}.json").read_text())
        with Program(release_checkout(version)) as program:
            found = symbols_json.symbols(symbol_table(program, algorithm=algorithm))
        assert kept == found
        forms = [v["form"] for row in kept["rows"] for v in row["variables"]]
        assert any("without the softmax scale" in form for form in forms)


def test_links_of_a_kept_report_lead_to_files_beside_it() -> None:
    for version in generate.VERSIONS:
        text = (FOLDER / version / "report.md").read_text()
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (FOLDER / version / link).is_file(), link
