"""Bad input, as a user meets it: one clear line that names the file and the next step, exit status 2, no traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.releases import release

BASE = "2.5.8"
KERNEL = "csrc/flash_attn/src/flash_fwd_kernel.h"
HEADER = "csrc/flash_attn/src/utils.h"
SOFTMAX = "csrc/flash_attn/src/softmax.h"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tracer", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A whole release that a test may break."""
    target = tmp_path / "checkout"
    shutil.copytree(release(BASE), target, symlinks=True)
    return target


def append(checkout: Path, file: str, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    with open(checkout / file, "ab") as stream:
        stream.write(data)


def cut(checkout: Path, file: str, share: float) -> None:
    text = (checkout / file).read_text()
    (checkout / file).write_text(text[: int(len(text) * share)])


def no_csrc(checkout: Path) -> None:
    shutil.rmtree(checkout / "csrc")


def binary(checkout: Path) -> None:
    (checkout / HEADER).write_bytes(bytes(range(256)) * 80)


def huge(checkout: Path) -> None:
    append(checkout, HEADER, "// filler\n" * 2_000_000)


def deep_types(checkout: Path) -> None:
    append(
        checkout,
        HEADER,
        "template<class T> struct Wrap {};\nusing Deep = " + "Wrap<" * 20_000 + "int" + ">" * 20_000 + ";\n",
    )


def deep_parentheses(checkout: Path) -> None:
    append(checkout, HEADER, "inline int deep() { return " + "(" * 20_000 + "1" + ")" * 20_000 + "; }\n")


def endless_instantiation(checkout: Path) -> None:
    append(checkout, HEADER, "inline int sum() { return " + "+".join(["1"] * 200_000) + "; }\n")


def header_loop(checkout: Path) -> None:
    os.unlink(checkout / SOFTMAX)
    os.symlink("other.h", checkout / SOFTMAX)
    os.symlink("softmax.h", checkout / "csrc/flash_attn/src/other.h")


def latin(checkout: Path) -> None:
    append(checkout, HEADER, b"// caf\xe9\n")


def latin_python(checkout: Path) -> None:
    append(checkout, "flash_attn/flash_attn_interface.py", b"# caf\xe9\n")


def without_host_code(checkout: Path) -> None:
    os.unlink(checkout / "csrc/flash_attn/flash_api.cpp")


BROKEN: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "no csrc": (no_csrc, ("no csrc/",)),
    "truncated header": (lambda c: cut(c, SOFTMAX, 0.5), (SOFTMAX, "truncated", "line 16")),
    "truncated kernel": (lambda c: cut(c, KERNEL, 0.3), (KERNEL, "truncated")),
    "truncated host code": (lambda c: cut(c, "csrc/flash_attn/flash_api.cpp", 0.5), ("flash_api.cpp", "truncated")),
    "binary header": (binary, (HEADER, "binary")),
    "header of 20 MB": (huge, (HEADER, "MiB")),
    "types nested deeply": (deep_types, (HEADER,)),
    "parentheses nested deeply": (deep_parentheses, (HEADER, "nesting")),
    "an expression without end": (endless_instantiation, (HEADER,)),
    "headers that link to each other": (header_loop, ("softmax.h",)),
    "header not UTF-8": (latin, (HEADER, "utf-8", "395")),
    "Python not UTF-8": (latin_python, ("flash_attn_interface.py", "utf-8")),
    "host code missing": (without_host_code, ("flash_api.cpp", "setup.py")),
}  # fmt: skip


def assert_one_line(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("flashtracer: ") and result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert word.lower() in result.stderr.lower()


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_checkout(what: str, copy: Path) -> None:
    break_it, words = BROKEN[what]
    break_it(copy)
    assert_one_line(run("trace", str(copy), "--no-cache"), *words)


def test_folders_that_link_to_themselves_are_no_obstacle(copy: Path) -> None:
    os.symlink("..", copy / "flash_attn" / "up")
    os.symlink(".", copy / "csrc" / "flash_attn" / "src" / "here")
    result = run("trace", str(copy), "--no-cache")
    assert result.returncode == 0 and "flash_fwd_kernel" in result.stdout


def test_an_unknown_library_header_and_function_break_nothing(copy: Path) -> None:
    kernel = copy / KERNEL
    text = kernel.read_text()
    marker = text.index("{", text.index("compute_attn_1rowblock("))
    kernel.write_text(
        "#include <cute/a_header_of_the_future.hpp>\n"
        + text[: marker + 1]
        + " auto later = cute::a_function_of_the_future<7>(params); "
        + text[marker + 1 :]
    )
    result = run("trace", str(copy), "--no-cache")
    assert result.returncode == 0
    assert "softmax_rescale_o" in result.stdout and "diagnostic" in result.stdout.lower()


def test_no_checkout_at_all(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here")
    assert_one_line(run("trace", str(tmp_path)), "notes.txt")
    assert_one_line(run("trace", str(tmp_path / "missing")), "no such folder")


def test_names_that_do_not_exist() -> None:
    assert_one_line(run("trace", f"pypi:{BASE}", "--entry", "flash_atn_func"), "nearest: flash_attn_func")
    assert_one_line(run("trace", f"pypi:{BASE}", "--to", "compute_atn"), "nearest: compute_attn")


def test_no_network_names_the_way_out(tmp_path: Path) -> None:
    result = run(
        "trace", "pypi:2.8.3", PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_EXTRA_INDEX_URL="", PIP_FIND_LINKS="",
        PIP_CONFIG_FILE=os.devnull, FLASHTRACER_CACHE=str(tmp_path),
    )  # fmt: skip
    assert_one_line(result, "cannot be reached", "folder")


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("as it was")
    assert_one_line(run("report", f"pypi:{BASE}", "-o", str(file)), str(file))
    assert_one_line(run("report", f"pypi:{BASE}", "-o", str(tmp_path / "no" / "folder")), "no folder")
    assert_one_line(run("trace", f"pypi:{BASE}", "-o", str(tmp_path / "no" / "file")), "no folder")
    assert file.read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "tracer", "trace", f"pypi:{BASE}"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and "space" in result.stderr


def test_usage_errors_say_what_to_do() -> None:
    for arguments, word in (
        (("trce",), "trace"), (("trace",), "CHECKOUT"), (("trace", ".", "--format", "xml"), "mermaid"),
        (("trace", ".", "--head-dim", "0"), "head-dim"),
    ):  # fmt: skip
        result = run(*arguments)
        assert result.returncode == 2 and word in result.stderr and "Traceback" not in result.stderr
