"""The cases of this room as data: what is asked, what must come out, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracer.traffic import (
    MeasurementError,
    Shape,
    Tile,
    compare,
    ncu_command,
    paper_block_sizes,
    read_measurements,
    rows,
)

CASES = sorted((Path(__file__).parent.parent / "cases").glob("4??-io-*"))


def test_there_are_cases() -> None:
    assert len(CASES) >= 13


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_case(folder: Path) -> None:
    case = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert case["why"]
    if "error" in case:
        with pytest.raises(MeasurementError) as caught:
            read_measurements(folder / "profile.csv")
        message = str(caught.value)
        assert "\n" not in message and [part for part in case["error"] if part not in message] == []
    elif (folder / "profile.csv").exists():
        check_profile(case, folder / "profile.csv")
    elif "block_sizes" in case:
        found = paper_block_sizes(case["sram_bytes"] // case["element_bytes"], case["head_dim"])
        assert list(found) == case["block_sizes"]
    elif "contains" in case:
        command = ncu_command(Shape(**case["shape"]), case["kernels"])
        assert [part for part in case["contains"] if part not in command] == []
    else:
        check_counts(case)


def check_counts(case: dict[str, Any]) -> None:
    found = rows(
        [Shape(**case["shape"])],
        algorithms=case["algorithms"],
        tiles=[Tile(*case["tile"])] if "tile" in case else [],
        convention_name=case["convention"],
    )
    digits = 2 if case.get("gigabytes", 0) > 2.5 else 3
    if "gigabytes" in case:
        assert round(sum(row.tile_bytes for row in found) / 1e9, digits) == case["gigabytes"]
    if "compulsory_gigabytes" in case:
        assert round(sum(row.compulsory_bytes for row in found) / 1e9, 3) == case["compulsory_gigabytes"]
    if "gigaflops" in case:
        assert round(sum(row.flops for row in found) / 1e9, 1) == case["gigaflops"]
    if "elements" in case:
        assert sum(row.elements for row in found) == case["elements"]
    shape = found[0].shape
    once = shape.batch * shape.heads * shape.seqlen_q * shape.head_dim * shape.element_bytes
    tensors = {tensor.tensor: tensor for tensor in found[0].tensors}
    for name, passes in case.get("passes", {}).items():
        assert [tensors[name].read_bytes / once, tensors[name].written_bytes / once] == passes, name


def check_profile(case: dict[str, Any], path: Path) -> None:
    found = read_measurements(path)
    assert found == read_measurements(path.read_text(encoding="utf-8"))
    assert [one.base_name for one in found] == case["kernels"]
    assert [one.dram_bytes for one in found] == case["dram_bytes"]
    assert [one.l2_bytes for one in found] == case["l2_bytes"]
    assert [one.seconds for one in found] == pytest.approx(case["seconds"])
    if "level" in case:
        (row,) = rows(
            [Shape(**case["shape"])], algorithms=case["algorithms"], tiles=[Tile(*case["tile"])], gpu=Hopper()
        )
        (one,) = compare(found, row)
        assert (one.level, one.times) == (case["level"], len(found))
        assert one.dram_bytes == pytest.approx(sum(case["dram_bytes"]) / len(found))
        assert one.dram_ratio == pytest.approx(one.dram_bytes / row.compulsory_bytes, rel=0.01)


class Hopper:
    """A GPU whose L2 holds a head's keys and values."""

    name = "a GPU"
    sm_count = 132
    shared_memory_per_sm = 228 * 1024
    shared_memory_per_block_optin = 227 * 1024
    l2_bytes = 50 * 1024 * 1024
    bandwidth_bytes_per_second = 3_350_000_000_000
