"""The behaviour of the Python room, one case per folder of ``tests/cases/0NN-python-…``.

``expected.json`` holds, as far as the case is about them: ``extensions`` (what the build compiles), ``calls`` (by
definition, each call site in source order as ``line:column written -> targets``), ``related``, ``registrations``,
``entries`` (by typed name, the candidates in order), ``definitions`` (``kind line:column-end_line``) and
``diagnostics``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracer.model import CallSite, Confidence, Outcome, Target
from tracer.python import PythonSource

CASES = sorted((Path(__file__).parents[1] / "cases").glob("0*-python-*"))


def open_case(folder: Path, expected: dict[str, Any]) -> PythonSource:
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*.py")]
    extensions = expected.get("extensions", [])
    return PythonSource(lambda file: (folder / file).read_text(encoding="utf-8"), files, lambda: extensions)


def target_text(target: Target) -> str:
    sure = "" if target.confidence is Confidence.EXACT else f" ({target.confidence.value})"
    through = f" via {target.through}" if target.through else ""
    return f"{target.how.value} {target.id.removeprefix('python:')}{sure}{through}"


def site_text(site: CallSite) -> str:
    at = f"{site.location.line}:{site.location.column} {site.written}"
    if site.outcome is Outcome.RESOLVED:
        return f"{at} -> " + " | ".join(target_text(target) for target in site.targets)
    if site.outcome is Outcome.EXTERNAL:
        return f"{at} -> external"
    return f"{at} -> unresolved: {site.reason}"


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_case(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    source = open_case(folder, expected)
    assert (folder / "README").read_text().strip()
    found: dict[str, Any] = {"extensions": expected.get("extensions", [])}
    for section, wanted in expected.items():
        if section == "calls":
            found[section] = {id: [site_text(site) for site in source.call_sites(f"python:{id}")] for id in wanted}
        elif section == "related":
            found[section] = {id: [target_text(one) for one in source.related(f"python:{id}")] for id in wanted}
        elif section == "registrations":
            found[section] = {
                id: [f"{one.verb} {one.operator} {one.location}" for one in source.registrations(f"python:{id}")]
                for id in wanted
            }
        elif section == "entries":
            found[section] = {
                name: [one.id.removeprefix("python:") for one in source.entry_candidates(name)] for name in wanted
            }
        elif section == "definitions":
            found[section] = {}
            for id in wanted:
                one = source.definition(f"python:{id}")
                found[section][id] = f"{one.kind} {one.location.line}:{one.location.column}-{one.location.end_line}"
        elif section == "diagnostics":
            found[section] = [str(one.location) for one in source.everything().diagnostics]
    found.setdefault("extensions", [])
    assert found == {"extensions": [], **expected}


def test_there_are_cases() -> None:
    assert len(CASES) >= 12
