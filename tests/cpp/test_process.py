"""Parser processes that are started before it is known what they will parse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.releases import release
from tests.test_cli import run
from tracer.checkout.cache import CACHE_VARIABLE, note_read, was_read
from tracer.cpp import process


@pytest.fixture(autouse=True)
def _none_left() -> object:
    yield
    process.end_unused()


def test_a_process_started_early_is_the_one_that_is_taken() -> None:
    process.start_early(1)
    (early,) = process._early
    taken = process.take()
    other = process.take()
    assert taken is early is not other
    for one in (taken, other):
        assert one.process.poll() is None
        one.close()


def test_what_nobody_takes_is_ended() -> None:
    process.start_early(2)
    started = [one.process for one in process._early]
    process.end_unused()
    assert all(one.poll() is not None for one in started)
    assert not process._early


def test_a_dead_process_says_so() -> None:
    one = process.ParserProcess()
    one.process.kill()
    one.process.wait()
    with pytest.raises(process.Died):
        one.send(("tables",))
        one.receive()
    one.close()


def test_a_checkout_is_noted_where_its_reading_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(release("2.8.3"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    run("kernel", folder, "--no-cache")
    assert not was_read(folder) and not (tmp_path / "cache").exists()
    run("kernel", folder)
    assert was_read(folder) and was_read(os.path.join(folder, "csrc", ".."))
    assert not was_read(str(tmp_path))


def test_an_unwritable_cache_does_not_stop_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file stands where the folder should be")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    note_read("somewhere")
    assert not was_read("somewhere")
