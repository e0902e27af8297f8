"""The wheel holds everything that the program needs away from the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.releases import release

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's contents in a folder of their own, as an installer lays them out."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_what_is_no_python_is_in_it(installed: Path) -> None:
    for folder, pattern in (
        ("tracer/cpp/stubs/flashtracer", "*.h"), ("tracer/schemas", "*.json"), ("tracer/templates/report", "*.j2"),
        ("tracer/dataflow", "*.json"),
        ("refkernel/kernels", "*.cuh"), ("refkernel/cpu", "*.h"),
    ):  # fmt: skip
        in_repository = {path.name for path in (ROOT / folder.replace("tracer/templates", "templates")).glob(pattern)}
        assert in_repository and in_repository == {path.name for path in (installed / folder).glob(pattern)}
    assert not list(installed.glob("tests*")), "tests stay at home"


def test_it_writes_a_report_away_from_the_repository(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    result = subprocess.run(
        [sys.executable, "-m", "tracer", "report", str(release("2.8.3")), "-o", str(tmp_path / "out"), "--no-cache"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "report.md").read_text().startswith("# flash")
    where = subprocess.run(
        [sys.executable, "-c", "import tracer; print(tracer.__file__)"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert where.stdout.startswith(str(installed)), "it was the wheel that ran"
