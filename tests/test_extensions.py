"""Which extension modules a checkout builds, and of which files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from releases import release_checkout

from tracer.checkout import Checkout, open_checkout
from tracer.extensions import Extension, read_extensions

Write = Callable[..., Path]

#: Files that every checkout of these tests has beside those that its setup.py lists.
FILES = {f"csrc/attn/{name}": "" for name in ("api.cpp", "fwd_32.cu", "fwd_64.cu", "bwd_32.cu", "dead.cu", "a.h")}


def extensions(write: Write, setup: str, **more: str) -> tuple[Extension, ...]:
    files = {"csrc/tiny/api.cpp": None, **FILES, **more, "setup.py": setup}
    return read_extensions(open_checkout(str(write(files))))


def sources(write: Write, setup: str) -> list[str]:
    (extension,) = extensions(write, setup)
    return [source.removeprefix("csrc/attn/") for source in extension.sources]


@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        ('E = CUDAExtension(name="m", sources=["csrc/attn/api.cpp", "csrc/attn/a.cu"])', ["api.cpp"]),
        ('E = CUDAExtension("m", ["csrc/attn/api.cpp"] + ["csrc/attn/fwd_32.cu"])', ["api.cpp", "fwd_32.cu"]),
        ('s = ["csrc/attn/api.cpp"]\ns += ["csrc/attn/fwd_32.cu"]\nE = XExtension("m", s)', ["api.cpp", "fwd_32.cu"]),
        ('s = ["csrc/attn/dead.cu"]\ns = ["csrc/attn/api.cpp"]\nE = XExtension("m", s)', ["api.cpp"]),
        ('s = []\ns.append("csrc/attn/api.cpp")\ns.extend(["csrc/attn/fwd_64.cu"])\nE = XExtension("m", s)',
         ["api.cpp", "fwd_64.cu"]),
        ('d = "csrc/attn"\nE = XExtension("m", [f"{d}/api.cpp", d + "/fwd_32.cu", os.path.join(d, "fwd_64.cu")])',
         ["api.cpp", "fwd_32.cu", "fwd_64.cu"]),
        ('E = XExtension("m", [str(Path(__file__).parent / "csrc" / "attn" / "api.cpp")])', ["api.cpp"]),
        ('here = os.path.dirname(os.path.abspath(__file__))\nE = XExtension("m", glob.glob(here + "/csrc/attn/f*.cu"))',
         ["fwd_32.cu", "fwd_64.cu"]),
        ('E = XExtension("m", [f"csrc/attn/fwd_{d}.cu" for d in unknown()])', ["fwd_32.cu", "fwd_64.cu"]),
        ('from itertools import product\nE = XExtension("m", [f"csrc/attn/{k}_{d}.cu" for k, d in '
         'product(["fwd", "bwd"], [32, 64]) if not (k == "fwd" and d == 64)])', ["fwd_32.cu", "bwd_32.cu"]),
        ('s = []\nfor k in ["fwd", "bwd"]:\n    s.append(f"csrc/attn/{k}_32.cu")\nE = XExtension("m", s)',
         ["fwd_32.cu", "bwd_32.cu"]),
        ('def f(kind):\n    return [f"csrc/attn/{kind}_32.cu"]\nE = XExtension("m", f("bwd") + f(kind="fwd"))',
         ["bwd_32.cu", "fwd_32.cu"]),
        ('def build():\n    s = ["csrc/attn/api.cpp"]\n    return [XExtension("m", s)]\n', ["api.cpp"]),
        ('E = XExtension("m", ["csrc/attn/api.cpp", *["csrc/attn/bwd_32.cu"]])', ["api.cpp", "bwd_32.cu"]),
    ],
    ids=[
        "literal", "sum", "+=", "reassigned", "append and extend", "texts and join", "pathlib", "glob",
        "loop over the unknown", "product with a filter", "for", "function", "inside a function", "starred",
    ],
)  # fmt: skip
def test_sources_are_what_the_list_says(checkout_with: Write, setup: str, expected: list[str]) -> None:
    assert sources(checkout_with, setup) == expected


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ('os.getenv("NO_BWD", "FALSE") == "TRUE"', ["api.cpp", "fwd_32.cu"]),
        ('not os.environ.get("BWD", "1") == "1"', ["api.cpp", "fwd_32.cu"]),
        ('os.getenv("NO_FWD", "TRUE") != "FALSE"', ["api.cpp", "bwd_32.cu"]),
        ('torch.version > "2"', ["api.cpp", "bwd_32.cu", "fwd_32.cu"]),
    ],
    ids=["option off", "negated", "option on", "the machine decides"],
)
@pytest.mark.parametrize("form", ["expression", "statement"])
def test_options_count_as_nobody_set_them(checkout_with: Write, condition: str, taken: list[str], form: str) -> None:
    yes, no = '["csrc/attn/bwd_32.cu"]', '["csrc/attn/fwd_32.cu"]'
    if form == "expression":
        setup = f"OPTION = {condition}\ns = {yes} if OPTION else {no}\n"
    else:
        setup = f"OPTION = {condition}\nif OPTION:\n    s = {yes}\nelse:\n    s = {no}\n"
    setup += 'E = XExtension("m", ["csrc/attn/api.cpp"] + s)\n'
    assert sources(checkout_with, setup) == taken


def test_branches_for_two_backends_stay_apart(checkout_with: Write) -> None:
    setup = (
        "flags, s = [], []\n"
        "if not SKIP and not IS_ROCM:\n"
        '    flags += ["-DFOR_CUDA"]\n'
        '    s += ["csrc/attn/api.cpp"]\n'
        '    m.append(CUDAExtension(name="same", sources=s, extra_compile_args={"nvcc": flags}))\n'
        "elif not SKIP and IS_ROCM:\n"
        "    if USE_TRITON_ROCM:\n"
        "        pass\n"
        "    else:\n"
        '        flags += ["-DFOR_ROCM"]\n'
        '        s += ["csrc/ck/api.cu"] + glob.glob("build/*.cu")\n'
        '        m.append(CUDAExtension(name="same", sources=s, extra_compile_args={"nvcc": flags}))\n'
    )
    cuda, rocm = extensions(checkout_with, setup, **{"csrc/ck/api.cpp": ""})
    assert (cuda.name, cuda.backend, cuda.sources, cuda.defines) == (
        "same",
        "cuda",
        ("csrc/attn/api.cpp",),
        ("FOR_CUDA",),
    )
    assert (rocm.name, rocm.backend, rocm.sources, rocm.defines) == (
        "same",
        "rocm",
        ("csrc/ck/api.cpp",),
        ("FOR_ROCM",),
    )
    said = [diagnostic.message for diagnostic in rocm.diagnostics]
    assert any("csrc/ck/api.cu from csrc/ck/api.cpp" in message for message in said)
    assert any("do not exist: build/*.cu" in message for message in said)


def test_name_place_folders_and_macros(checkout_with: Write) -> None:
    setup = (
        'PACKAGE = "tiny_attn_3"\n'
        "here = Path(__file__).parent\n"
        'common = ["-DALWAYS", "-O3"] + (["-DOFF"] if os.getenv("OFF", "0") == "1" else [])\n'
        'if torch.version > "2":\n'
        '    common.append("-DPERHAPS")\n'
        "E = CUDAExtension(\n"
        '    name=f"{PACKAGE}._C",\n'
        '    sources=["api.cpp"],\n'
        '    extra_compile_args={"cxx": ["-DHOST=1"] + common, "nvcc": wrap(common)},\n'
        '    include_dirs=[here, here.parent / "csrc" / "attn", here.parent / "csrc" / "gone", "/usr/include"],\n'
        ")\n"
        "def wrap(flags):\n"
        "    return flags + ['--threads', '4']\n"
    )
    _, extension = extensions(
        checkout_with, 'E = XExtension("m", ["csrc/attn/api.cpp"])', **{"next/setup.py": setup, "next/api.cpp": ""}
    )
    assert (extension.name, extension.package_dir) == ("tiny_attn_3._C", "next")
    assert extension.sources == ("next/api.cpp",)
    location = extension.location
    assert (location.file, location.line, location.column, location.end_line) == ("next/setup.py", 7, 12, 11)
    assert extension.defines == ("HOST=1", "ALWAYS")
    assert extension.include_dirs == ("next", "csrc/attn")


CMAKE = """
project(tiny LANGUAGES CXX CUDA)  # SOURCES in a comment( are none
if (NOT HIP_FOUND)
  set(LANG "CUDA")
else()
  set(LANG "HIP")
endif()
list(APPEND FLAGS --fast -DFROM_FLAGS=1)
if (FA2)
  file(GLOB GEN "csrc/attn/fwd_*.cu")
  define_gpu_extension_target(
    _tiny_C
    DESTINATION tiny_attn
    LANGUAGE ${LANG}
    SOURCES
      csrc/attn/api.cpp
      # csrc/attn/dead.cu
      ${GEN}
      csrc/attn/gone.cu
    COMPILE_FLAGS ${FLAGS})
  target_include_directories(_tiny_C PRIVATE csrc/attn csrc/gone)
  target_compile_definitions(_tiny_C PRIVATE DISABLE_BACKWARD #DISABLE_FORWARD
    VALUE=2)
  if (DEBUG)
    target_compile_definitions(_tiny_C PRIVATE ONLY_DEBUG)
  endif()
endif()
add_library(second MODULE ${CMAKE_CURRENT_SOURCE_DIR}/csrc/attn/bwd_32.cu)
"""


def test_cmake_targets(checkout_with: Write) -> None:
    setup = 'E = CMakeExtension(name="tiny_attn._tiny_C")'
    first, second = extensions(checkout_with, setup, **{"CMakeLists.txt": CMAKE})
    assert first.sources == ("csrc/attn/api.cpp", "csrc/attn/fwd_32.cu", "csrc/attn/fwd_64.cu")
    assert (first.name, first.backend, first.include_dirs) == ("_tiny_C", "cuda", ("csrc/attn",))
    assert first.defines == ("FROM_FLAGS=1", "DISABLE_BACKWARD", "VALUE=2")
    assert (first.location.file, first.location.line, first.location.column) == ("CMakeLists.txt", 12, 5)
    assert ["csrc/attn/gone.cu" in diagnostic.message for diagnostic in first.diagnostics] == [True]
    assert (second.name, second.sources) == ("second", ("csrc/attn/bwd_32.cu",))


@pytest.mark.parametrize("setup", ["def broken(:\n", "E = XExtension('m', compute())\n", None])
def test_without_a_list_the_folders_decide_and_say_so(checkout_with: Write, setup: str | None) -> None:
    binding = "// first\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"
    named = "  TORCH_LIBRARY(tiny_ops, m) {}\n"
    files = {"csrc/attn/api.cpp": binding, "csrc/ops/api.cpp": named, "csrc/ops/inner/op.cu": ""}
    found = extensions(checkout_with, setup, **files)  # type: ignore[arg-type]
    assert [extension.name for extension in found] == ["attn", "tiny_ops"]
    assert str(found[0].location) == "csrc/attn/api.cpp:2"
    assert found[1].sources == ("csrc/ops/api.cpp", "csrc/ops/inner/op.cu")
    assert "csrc/attn/dead.cu" in found[0].sources
    assert all("taken by folder" in extension.diagnostics[0].message for extension in found)


def test_a_listed_link_counts_where_it_stays_inside(checkout_with: Write, tmp_path: Path) -> None:
    names = ["in.cu", "out.cu", "folder.cu", "linked/api.cpp"]
    setup = f"E = XExtension('m', {[f'csrc/attn/{name}' for name in names]})"
    folder = checkout_with({**FILES, "setup.py": setup, "csrc/attn/folder.cu/x.h": ""})
    (tmp_path / "outside.cu").touch()
    (folder / "csrc/attn/in.cu").symlink_to("fwd_32.cu")
    (folder / "csrc/attn/out.cu").symlink_to(tmp_path / "outside.cu")
    (folder / "csrc/attn/linked").symlink_to(folder / "csrc/tiny")
    (extension,) = read_extensions(open_checkout(str(folder)))
    assert extension.sources == ("csrc/attn/in.cu", "csrc/attn/linked/api.cpp")


def test_what_cannot_be_understood_is_counted(checkout_with: Write) -> None:
    (extension,) = extensions(checkout_with, 'E = XExtension("m", ["csrc/attn/api.cpp", compute()])')
    assert extension.sources == ("csrc/attn/api.cpp",)
    assert "1 entries" in extension.diagnostics[0].message


# Real releases. The numbers were counted in the lists of each setup.py, and agree with what it handed to the extension
# class when it was run once, by hand, with a stand-in for torch.


def main_extension(checkout: Checkout) -> Extension:
    return read_extensions(checkout)[0]


@pytest.mark.parametrize(
    ("version", "name", "count"),
    [
        ("1.0.9", "flash_attn_cuda", 9),
        ("2.0.0.post1", "flash_attn_2_cuda", 33),
        ("2.5.8", "flash_attn_2_cuda", 49),
        ("2.6.3", "flash_attn_2_cuda", 85),
        ("2.8.3", "flash_attn_2_cuda", 73),
    ],
)
def test_real_releases(version: str, name: str, count: int) -> None:
    checkout = release_checkout(version)
    extension = main_extension(checkout)
    assert (extension.name, extension.backend, len(extension.sources)) == (name, "cuda", count)
    assert extension.diagnostics == ()
    line = checkout.read_text("setup.py").splitlines()[extension.location.line - 1]
    assert line[extension.location.column - 1 :].startswith(name)


def test_files_that_a_release_no_longer_builds_are_no_sources() -> None:
    checkout = release_checkout("2.6.3")
    dead = [path.name for path in (checkout.root / "csrc/flash_attn/src").glob("*hdim224*.cu")]
    assert dead
    assert not any("hdim224" in source for source in main_extension(checkout).sources)


def test_two_backends_of_a_release_share_a_name() -> None:
    cuda, rocm = read_extensions(release_checkout("2.8.3"))[:2]
    assert (cuda.name, rocm.name) == ("flash_attn_2_cuda", "flash_attn_2_cuda")
    assert (cuda.backend, rocm.backend) == ("cuda", "rocm")
    assert {source.split("/")[1] for source in rocm.sources} == {"flash_attn_ck"}
