"""Shared by the reference kernel's tests: broken copies of the sources, and a skip where there is no compiler."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from refkernel.build import PACKAGE, find_cxx
from refkernel.errors import MissingCompiler

BrokenCopy = Callable[[str, str, str], Path]


@pytest.fixture(scope="module")
def broken_copy(tmp_path_factory: pytest.TempPathFactory) -> BrokenCopy:
    """Return a function that copies the kernel sources and replaces one text, which must stand there exactly once."""

    def make(file: str, old: str, new: str) -> Path:
        root = tmp_path_factory.mktemp("broken")
        for folder in ("kernels", "cpu"):
            shutil.copytree(PACKAGE / folder, root / folder)
        path = root / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file} holds {text.count(old)} times: {old}"
        path.write_text(text.replace(old, new))
        return root

    return make


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder where there is no C++ compiler, with the sentence that says what to install."""
    try:
        find_cxx()
    except MissingCompiler as error:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=str(error)))
