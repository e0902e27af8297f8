from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tracer.errors import OutputError
from tracer.render import output


def entries(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.md"
    target.write_text("old")
    output.write(str(target), "new → text\n")
    assert target.read_bytes() == "new → text\n".encode()
    assert entries(tmp_path) == ["a.md"]


def test_a_written_file_can_be_read_by_whom_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        output.write(str(tmp_path / "a.md"), "x")
    finally:
        os.umask(before)
    assert (tmp_path / "a.md").stat().st_mode & 0o777 == 0o644


def test_standard_output_takes_any_text(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    output.write("-", "a → b \udcff\n")
    assert capfdbinary.readouterr().out == "a → b \\udcff\n".encode()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder", "it is a folder; name a file in it"),
        ("missing/a.md", "there is no folder '.*missing'; create it first"),
        ("file/a.md", "there is no folder '.*file'; create it first"),
    ],
)
def test_a_target_that_cannot_be_is_one_clear_line(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match=message) as caught:
        output.write(str(tmp_path / name), "text")
    assert "\n" not in str(caught.value)


def test_a_full_disk_leaves_the_old_file_and_no_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.md"
    target.write_text("old")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutputError, match=r"cannot write '.*a.md': no space left on the disk$"):
        output.write(str(target), "new")
    assert target.read_text() == "old" and entries(tmp_path) == ["a.md"]


def test_a_folder_gets_all_files_and_keeps_others(tmp_path: Path) -> None:
    target = tmp_path / "report"
    output.write_folder(str(target), {"report.md": "a", "data/trace.json": "{}", "raw.bin": b"\xff"})
    (target / "mine.txt").write_text("mine")
    output.write_folder(str(target), {"report.md": "b"})
    assert entries(target) == ["data", "data/trace.json", "mine.txt", "raw.bin", "report.md"]
    assert (target / "report.md").read_text() == "b"


def test_a_folder_that_cannot_be_completed_keeps_the_old_files(tmp_path: Path) -> None:
    target = tmp_path / "report"
    output.write_folder(str(target), {"report.md": "old"})
    (target / "graph.svg").mkdir()
    with pytest.raises(OutputError, match=r"graph.svg': it is a folder"):
        output.write_folder(str(target), {"report.md": "new", "graph.svg": "x"})
    assert (target / "report.md").read_text() == "old"
    assert entries(target) == ["graph.svg", "report.md"]


def test_a_new_folder_that_cannot_be_filled_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutputError, match="cannot write into folder .*: no space left on the disk"):
        output.write_folder(str(tmp_path / "report"), {"report.md": "new"})
    assert entries(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "message"), [("file", "it is a file, not a folder"), ("missing/report", "there is no folder '.*missing'")]
)
def test_a_folder_that_cannot_be_is_one_clear_line(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match=message):
        output.write_folder(str(tmp_path / name), {"a": "b"})


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_no_permission_is_one_clear_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OutputError, match="permission denied"):
            output.write(str(tmp_path / "a.md"), "x")
    finally:
        tmp_path.chmod(0o700)


def test_an_error_of_the_system_becomes_permission_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", denied)
    with pytest.raises(OutputError, match=r"cannot write '.*': permission denied$"):
        output.write(str(tmp_path / "a.md"), "x")
