"""Shared by the reference kernel's tests: broken copies of the sources, and one build of everything."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from refkernel.build import PACKAGE
from refkernel.errors import MissingCompiler, MissingTorch

BrokenCopy = Callable[[str, str, str], Path]


@pytest.fixture
def broken_copy(tmp_path: Path) -> BrokenCopy:
    """Return a function that copies the kernel sources and replaces one text, which must stand there exactly once."""

    def make(file: str, old: str, new: str) -> Path:
        for folder in ("kernels", "cpu"):
            shutil.copytree(PACKAGE / folder, tmp_path / folder)
        path = tmp_path / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file} holds {text.count(old)} times: {old}"
        path.write_text(text.replace(old, new))
        return tmp_path

    return make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> object:
    """Skip what needs torch or a compiler where there is none, with the sentence that says what to install."""
    try:
        return (yield)
    except (MissingCompiler, MissingTorch) as error:
        if item.get_closest_marker("expects_missing"):
            raise
        pytest.skip(str(error))
