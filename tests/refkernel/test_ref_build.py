"""Building: the cache, the messages, and what nvcc makes of the kernels."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from refkernel import build
from refkernel.build import (
    BACKWARD_2,
    FORWARD_1,
    FORWARD_2,
    FORWARD_2_MMA,
    MMA_LAYOUT,
    PACKAGE,
    Configuration,
    library_path,
)
from refkernel.errors import CompileError, InvalidCall, KernelFault, MissingCompiler
from refkernel.library import AttentionShape, Library

BASE = Configuration(FORWARD_2, "fp32", 64, 64, 64)


def test_first_build_is_kept_and_the_second_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "user_cache_dir", lambda name: str(tmp_path / name))
    path = build.build(BASE)
    assert path.parent == tmp_path / "flashtracer" / "kernels"
    assert sorted(p.suffix for p in path.parent.iterdir()) == [".o", ".so"]  # nothing unfinished is left behind
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("compiled again"))
    assert build.build(BASE) == path


def test_the_cache_key_follows_sources_arguments_flags_and_compiler(
    broken_copy: Callable[[str, str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {library_path(BASE)}
    paths.add(library_path(Configuration(FORWARD_2, "fp32", 64, 32, 64)))
    paths.add(library_path(Configuration(FORWARD_2, "fp32", 64, 64, 64, sanitize=True)))
    paths.add(library_path(BASE, broken_copy("cpu/runtime.cpp", "deadlock: every", "Deadlock: every")))
    monkeypatch.setattr(build, "_processor_flags", lambda: ("-mnothing",))
    paths.add(library_path(BASE))
    monkeypatch.setattr(build, "_version_of", lambda path, line: "g++ 99")
    paths.add(library_path(BASE))
    assert len(paths) == 6


def test_a_failed_build_names_the_first_errors_and_leaves_nothing(
    broken_copy: Callable[[str, str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = broken_copy(f"kernels/{FORWARD_2}.cuh", "const float m_new = fmaxf", "const flaot m_new = fmaxf")
    monkeypatch.setattr(build, "user_cache_dir", lambda name: str(tmp_path / name))
    with pytest.raises(CompileError, match=rf"{FORWARD_2}.cuh:\d+:\d+: error: .*flaot"):
        build.build(BASE, root)
    assert [p.suffix for p in (tmp_path / "flashtracer" / "kernels").iterdir()] == [".o"]


def test_without_a_compiler_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CXX", "NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingCompiler, match=r"on the CPU needs a C\+\+17 compiler; install g\+\+ 12"):
        build.find_cxx()
    with pytest.raises(MissingCompiler, match="on a GPU needs nvcc; install the CUDA toolkit"):
        build.find_nvcc()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(MissingCompiler, match="CXX names 'no-such-compiler', which is not a program"):
        build.find_cxx()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("nothing", "fp32", 64, 64, 64), "kernel 'nothing' does not exist"),
        ((FORWARD_2, "fp64", 64, 64, 64), "dtype 'fp64' is not one of fp32, fp16, bf16"),
        ((FORWARD_2, "fp32", 64, 48, 64), "block_n is 48; the kernels can be compiled for 32, 64, 128, 256"),
        ((FORWARD_2_MMA, "fp16", 32, 64, 64), f"block_m is 32; {FORWARD_2_MMA} can be compiled for 64, 128"),
        ((FORWARD_2, "fp32", 64, 64, 50), "the compiled head dimension is 50"),
    ],
)
def test_configurations_that_do_not_exist_are_refused(fields: tuple[str, str, int, int, int], message: str) -> None:
    with pytest.raises(InvalidCall, match=message):
        Configuration(*fields)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # makes every import of it fail
import refkernel, refkernel.validate, refkernel.gpu
for use in (lambda: refkernel.flash_attn_func, lambda: refkernel.validate.validate()):
    try:
        use()
    except refkernel.MissingTorch as error:
        print(error)
print(refkernel.count_bytes(seqlen_q=64)["O"])
"""


def test_everything_but_the_operators_works_without_torch() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, env=environment)
    sentence = "this needs PyTorch; run: pip install 'flashtracer[kernel]'"
    assert result.stdout.splitlines() == [sentence, sentence, "TensorBytes(loaded=0, stored=16384)"], result.stderr


#: What a default call compiles, and flash-attention's own tile for the common head dimensions.
MAIN_TILES = [
    *((kernel, "fp32", 64, 64, d) for kernel in (FORWARD_1, FORWARD_2, BACKWARD_2) for d in (64, 128)),
    (FORWARD_2, "bf16", 128, 64, 128),
    (FORWARD_2_MMA, "fp16", 128, 64, 64),
    (FORWARD_2_MMA, "fp16", 128, 32, 128),
    (FORWARD_2_MMA, "bf16", 64, 64, 256),
]


def spills(configuration: Configuration, root: Path, folder: Path) -> list[tuple[int, int, int]]:
    """Return bytes of stack, spill stores and spill loads of every kernel in a library, as ptxas tells them."""
    command = build.compile_command(configuration, root, folder / "kernel.cubin")
    # Only the GPU's half of the library: that is what is looked at, and half the time.
    command = ["-cubin" if word == "-shared" else word for word in command]
    result = subprocess.run([*command, "-Xptxas", "-v"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    told = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", result.stderr)
    return [(int(stack), int(stores), int(loads)) for stack, stores, loads in told]


@pytest.fixture(scope="module")
def nvcc() -> None:
    try:
        build.find_nvcc()
    except MissingCompiler as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def all_spills(nvcc: None, tmp_path_factory: pytest.TempPathFactory) -> dict[Configuration, list[tuple[int, int, int]]]:
    wanted = [Configuration(*tile, target=target) for tile in MAIN_TILES for target in ("sm_80", "sm_90")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda one: spills(one, PACKAGE, tmp_path_factory.mktemp("gpu")), wanted)
        return dict(zip(wanted, found, strict=True))


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("tile", MAIN_TILES, ids=lambda tile: "-".join(map(str, tile)))
def test_main_tiles_use_no_local_memory(
    tile: tuple[str, str, int, int, int], target: str, all_spills: dict[Configuration, list[tuple[int, int, int]]]
) -> None:
    kernels = 2 if tile[0] == BACKWARD_2 else 1
    assert all_spills[Configuration(*tile, target=target)] == [(0, 0, 0)] * kernels


def test_a_gpu_library_loads_without_a_driver_and_names_what_is_missing(
    nvcc: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.setattr(build, "user_cache_dir", lambda name: str(tmp_path / name))
    library = Library(build.build(Configuration(MMA_LAYOUT, "fp16", 64, 64, 64, target="sm_80")))
    with pytest.raises(KernelFault, match="CUDA"):
        library.run({}, AttentionShape(1, 16, 16, 1, 1, 16, 1.0, 16))


def test_a_loop_that_is_not_unrolled_is_seen_in_local_memory(
    nvcc: None, broken_copy: Callable[[str, str, str], Path], tmp_path: Path
) -> None:
    """The check above can fail: an array indexed by a loop that stays a loop cannot live in registers."""
    old = "#pragma unroll\n        for (int r = 0; r < R; r++) O_i[r][t] += P_ij"
    root = broken_copy(f"kernels/{FORWARD_2}.cuh", old, old.replace("unroll", "unroll 1"))
    [(stack, _, _)] = spills(Configuration(FORWARD_2, "fp32", 64, 64, 64, target="sm_80"), root, tmp_path)
    assert stack > 0
