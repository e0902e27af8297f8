"""Precision and recall of the call edges on real releases, against lists read off their source by hand.

Releases come from the package index. What it does not have — the main branch, a fork — is read where
``FLASHTRACER_RELEASES`` names a folder with a checkout of the list's name.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.releases import release_checkout
from tracer.model import CallSite
from tracer.python import PythonSource

LISTS = sorted((Path(__file__).parent / "edges").glob("*.txt"))
EXTENSIONS = ("flash_attn_cuda", "flash_attn_2_cuda", "flash_attn_3._C", "vllm_flash_attn._vllm_fa2_C")
SPREAD = ("1.0.9", "2.0.0.post1", "2.1.0", "2.3.0", "2.4.3.post1", "2.5.8", "2.6.3", "2.7.0.post2", "2.8.3")
Edge = tuple[str, int, str, str, str]


def source_of(folder: Path) -> PythonSource:
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*.py")]
    return PythonSource(lambda file: (folder / file).read_text(encoding="utf-8"), files, lambda: EXTENSIONS)


def release(name: str) -> PythonSource:
    if name[0].isdigit():
        return source_of(release_checkout(name).root)
    root = Path(os.environ.get("FLASHTRACER_RELEASES", "")) / name
    if not os.environ.get("FLASHTRACER_RELEASES") or not root.is_dir():
        pytest.skip(f"{name} is not on the package index; put it under FLASHTRACER_RELEASES")
    return source_of(root)


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


# What each entry must reach first, if a release has it: the attribute of the compiled module that does its work.
REACHES = {
    "flash_attn_func": "fwd",
    "flash_attn_qkvpacked_func": "fwd",
    "flash_attn_kvpacked_func": "fwd",
    "flash_attn_varlen_func": "varlen_fwd",
    "flash_attn_varlen_qkvpacked_func": "varlen_fwd",
    "flash_attn_varlen_kvpacked_func": "varlen_fwd",
    "flash_attn_with_kvcache": "fwd_kvcache",
    "flash_attn_unpadded_func": "fwd",
    "FlashAttnFunc.backward": "bwd",
    "FlashAttnVarlenFunc.backward": "varlen_bwd",
}


def first_way_out(source: PythonSource, id: str, seen: set[str]) -> str | None:
    """The first compiled attribute on the way that takes each site's first target, in source order."""
    if not id.startswith("python:"):
        return id
    if id not in seen:
        seen.add(id)
        for site in source.call_sites(id):
            if site.targets and (found := first_way_out(source, site.targets[0].id, seen)):
                return found
    return None


@pytest.mark.parametrize("entry", REACHES)
def test_every_entry_reaches_compiled_code(entry: str) -> None:
    reached: dict[str, str | None] = {}
    for version in SPREAD:
        source = release(version)
        found = [one for one in source.entry_candidates(entry) if one.kind != "alias"]
        if found and found[0].location.file.count("/") == 1:
            reached[version] = first_way_out(source, found[0].id, set())
    assert reached
    ends = {name: (way or "").replace("::", ".").rpartition(".")[2] for name, way in reached.items()}
    # FlashAttention 3 has one operator for both layouts, and so had release 1 for all.
    allowed = {REACHES[entry], REACHES[entry].removeprefix("varlen_"), "fwd" if "fwd" in REACHES[entry] else "bwd"}
    assert {name: end for name, end in ends.items() if end not in allowed} == {}
