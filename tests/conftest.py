"""What several rooms' tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

#: A checkout as small as one can be, written for the tests.
SMALL = {
    "setup.py": (
        "from setuptools import setup\n"
        "from torch.utils.cpp_extension import CUDAExtension\n"
        "setup(\n"
        '    name="tiny_attn",\n'
        '    url="https://github.com/somebody/tiny",\n'
        '    ext_modules=[CUDAExtension(name="tiny_cuda", sources=["csrc/tiny/api.cpp", "csrc/tiny/kernel.cu"])],\n'
        ")\n"
    ),
    "tiny_attn/__init__.py": '__version__ = "1.2.3"\n',
    "tiny_attn/interface.py": "import tiny_cuda\n",
    "csrc/tiny/api.cpp": "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n",
    "csrc/tiny/kernel.cu": "__global__ void kernel() {}\n",
}


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """Write files below a folder and return the folder."""
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache folder of its own, so nothing that was fetched before can help it."""
    folder = tmp_path / "own-cache"
    monkeypatch.setenv("FLASHTRACER_CACHE", str(folder))
    return folder


@pytest.fixture
def checkout_with(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a small checkout: with some files replaced, added or, given None, left out."""

    def write(files: dict[str, str | None] | None = None, name: str = "checkout") -> Path:
        wanted = {**SMALL, **(files or {})}
        return write_files(tmp_path / name, {file: text for file, text in wanted.items() if text is not None})

    return write
