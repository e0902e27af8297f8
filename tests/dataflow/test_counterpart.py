"""What is kept of the reference kernel is what it comes to, and is used for no other kernel."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracer.dataflow import counterpart
from tracer.dataflow.reference import Reference

NAME = "flash_attention_2_forward"
KERNELS = Path(counterpart.KEPT).parents[2] / "refkernel" / "kernels"


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    counterpart._kept.cache_clear()
    yield
    counterpart._kept.cache_clear()


@pytest.fixture
def no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the reference kernel is read")

    monkeypatch.setattr(Reference, "source", refuse)


def copied(folder: Path) -> Path:
    shutil.copytree(KERNELS, folder / "kernels")
    return folder


def test_the_kept_file_is_fresh() -> None:
    with Reference() as reference:
        assert counterpart.KEPT.read_text() == counterpart.as_text(reference), "it is old: run `make reports`"


def test_what_is_read_back_is_what_was_written() -> None:
    _, kept = counterpart._kept()
    with Reference() as reference:
        assert len(kept) == 3
        for name, one in kept.items():
            assert one == counterpart.followed(reference, name)
            assert {verdict for verdict, _ in one.steps} == {"agrees"}


def test_it_is_used_for_the_kernels_that_it_was_made_of(tmp_path: Path, no_parser: None) -> None:
    with Reference(copied(tmp_path), cache=False) as reference:
        for file in reference.files():  # as a checkout on Windows has them
            file.write_bytes(file.read_text().replace("\n", "\r\n").encode())
        found = counterpart.counterpart(reference, NAME)
    assert found is not None and len(found.steps) == 31


def test_other_kernels_are_followed(tmp_path: Path) -> None:
    with Reference(copied(tmp_path), cache=False) as reference:
        file = tmp_path / "kernels" / f"{NAME}.cuh"
        text = file.read_text()
        right = "l_i[r] = alpha[r] * l_i[r] + l_ij;"
        assert text.count(right) == 1
        file.write_text(text.replace(right, "l_i[r] = l_i[r] + l_ij;"))
        found = counterpart.counterpart(reference, NAME)
    assert found is not None
    assert "alpha multiplies l_i" in [title for title, _ in found.findings]


@pytest.mark.parametrize("contents", ["", "{", "[]", '{"made_of": "x"}', '{"made_of": "", "counterparts": {"a": 1}}'])
def test_a_damaged_file_is_as_good_as_none(contents: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counterpart, "KEPT", tmp_path / "counterparts.json")
    counterpart.KEPT.write_text(contents)
    assert counterpart._kept() == ("", {})
    with Reference() as reference:
        found = counterpart.counterpart(reference, "flash_attention_2_row_sums")
    assert found is not None and len(found.steps) > 1
