"""Precision and recall of the call edges on real releases, against lists read off their source by hand.

The releases are not part of the repository: ``FLASHTRACER_RELEASES`` names a folder with one unpacked checkout per
list in ``edges/``, under the list's name.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracer.model import CallSite
from tracer.python import PythonSource

LISTS = sorted((Path(__file__).parent / "edges").glob("*.txt"))
EXTENSIONS = ("flash_attn_cuda", "flash_attn_2_cuda", "flash_attn_3._C", "vllm_flash_attn._vllm_fa2_C")
Edge = tuple[str, int, str, str, str]


def source_of(folder: Path) -> PythonSource:
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*.py")]
    return PythonSource(lambda file: (folder / file).read_text(encoding="utf-8"), files, lambda: EXTENSIONS)


def release(name: str) -> PythonSource:
    root = Path(os.environ.get("FLASHTRACER_RELEASES", ""))
    if not os.environ.get("FLASHTRACER_RELEASES") or not (root / name).is_dir():
        pytest.skip(f"no checkout {name} under FLASHTRACER_RELEASES")
    return source_of(root / name)


def edges_of(site: CallSite) -> set[Edge]:
    return {
        (site.caller, site.location.line, target.id, target.how.value, str(target.through or "-"))
        for target in site.targets
    }


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_edges_of_the_routes_functions(path: Path) -> None:
    expected: set[Edge] = set()
    for row in path.read_text().splitlines():
        if not row.startswith("#"):
            file, caller, line, target, how, through = row.split()
            expected.add((f"python:{file}:{caller}", int(line), target, how, through))
    assert expected
    source = release(path.stem)
    found = {edge for id in {edge[0] for edge in expected} for site in source.call_sites(id) for edge in edges_of(site)}
    precision = len(found & expected) / len(found)
    recall = len(found & expected) / len(expected)
    print(f"{path.stem}: {len(expected)} edges, precision {precision:.2f}, recall {recall:.2f}")
    assert found == expected
