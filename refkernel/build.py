"""Compiles one kernel with one set of template arguments into a shared library, once.

A library holds a single configuration, so the first call of a kernel compiles only what it uses. Libraries are kept in
the user's cache under a hash of everything that decides their content: sources, flags, and the compiler's version.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_dir

from refkernel.errors import CompileError, InvalidCall, MissingCompiler

PACKAGE = Path(__file__).resolve().parent

#: The ladder, in reading order.
FORWARD_1 = "flash_attention_1_forward"
FORWARD_2 = "flash_attention_2_forward"
BACKWARD_2 = "flash_attention_2_backward"
FORWARD_2_MMA = "flash_attention_2_forward_mma"
KERNELS = (FORWARD_1, FORWARD_2, BACKWARD_2, FORWARD_2_MMA)

#: Not a rung: one product of rung 4's fragments, to prove their layout on a GPU.
MMA_LAYOUT = "mma_layout"

#: CUDA type and bytes of one element, by the short name of the dtype.
ELEMENT_TYPES = {"fp32": ("float", 4), "fp16": ("half_t", 2), "bf16": ("bf16_t", 2)}

#: Rows of a Q tile (B_r) and of a K/V tile (B_c) that the kernels can be compiled for.
BLOCK_M = (32, 64, 128)
BLOCK_N = (32, 64, 128, 256)
MAX_HEAD_DIM = 256

CPU = "cpu"


@dataclass(frozen=True, order=True)
class Configuration:
    """One kernel with its template arguments, for one target.

    Attributes:
        kernel: one of ``KERNELS``, or ``MMA_LAYOUT``.
        dtype: ``fp32``, ``fp16`` or ``bf16``.
        block_m: B_r, rows of a Q tile.
        block_n: B_c, rows of a K/V tile.
        head_dim: d, the head dimension rounded up by ``padded_head_dim``.
        softcap: compile the softcap of the scores in.
        alibi: compile the ALiBi bias in.
        target: ``cpu``, or a GPU architecture such as ``sm_80``.
        sanitize: CPU only, with AddressSanitizer.
    """

    kernel: str
    dtype: str
    block_m: int
    block_n: int
    head_dim: int
    softcap: bool = False
    alibi: bool = False
    target: str = CPU
    sanitize: bool = False

    def __post_init__(self) -> None:
        """Refuse what no library exists for.

        Raises:
            InvalidCall: a field has a value outside its set.
        """
        if self.kernel not in (*KERNELS, MMA_LAYOUT):
            raise InvalidCall(f"kernel '{self.kernel}' does not exist; the kernels are {', '.join(KERNELS)}")
        if self.dtype not in ELEMENT_TYPES:
            raise InvalidCall(f"dtype '{self.dtype}' is not one of {', '.join(ELEMENT_TYPES)}")
        if self.kernel in (FORWARD_2_MMA, MMA_LAYOUT) and self.dtype == "fp32":
            raise InvalidCall(f"{self.kernel} runs on tensor cores and takes fp16 or bf16, not fp32")
        smallest_m = 64 if self.kernel == FORWARD_2_MMA else min(BLOCK_M)
        if self.block_m not in BLOCK_M or self.block_m < smallest_m:
            wanted = ", ".join(str(m) for m in BLOCK_M if m >= smallest_m)
            raise InvalidCall(f"block_m is {self.block_m}; {self.kernel} can be compiled for {wanted}")
        if self.block_n not in BLOCK_N:
            wanted = ", ".join(map(str, BLOCK_N))
            raise InvalidCall(f"block_n is {self.block_n}; the kernels can be compiled for {wanted}")
        if self.head_dim != padded_head_dim(self.head_dim):
            raise InvalidCall(f"the compiled head dimension is {self.head_dim}; it is a multiple of 32 up to 256")

    def macros(self) -> list[str]:
        """Return the compiler arguments that launch.cuh reads the template arguments from."""
        return [
            f"-DELEMENT={ELEMENT_TYPES[self.dtype][0]}",
            f"-DTILE_ROWS={self.block_m}",
            f"-DTILE_COLUMNS={self.block_n}",
            f"-DHEAD_DIM={self.head_dim}",
            f"-DSOFTCAP={int(self.softcap)}",
            f"-DALIBI={int(self.alibi)}",
        ]


@dataclass(frozen=True)
class Compiler:
    """A compiler that was found.

    Attributes:
        path: the program.
        version: its own line about itself.
    """

    path: str
    version: str


def padded_head_dim(head_dim: int) -> int:
    """Return the head dimension a kernel is compiled for: the next multiple of 32.

    Raises:
        InvalidCall: the head dimension is not between 1 and 256.
    """
    if not 1 <= head_dim <= MAX_HEAD_DIM:
        raise InvalidCall(f"the head dimension is {head_dim}; the kernels support 1 to {MAX_HEAD_DIM}")
    return -(-head_dim // 32) * 32


def find_cxx() -> Compiler:
    """Find a C++ compiler: the one named by CXX, or g++, clang++ or c++.

    Raises:
        MissingCompiler: there is none.
    """
    named = os.environ.get("CXX")
    for candidate in [named] if named else ["g++", "clang++", "c++"]:
        path = shutil.which(candidate)
        if path:
            return Compiler(path, _version_of(path, 0))
    raise MissingCompiler(
        f"CXX names '{named}', which is not a program"
        if named
        else "running the reference kernel on the CPU needs a C++17 compiler; install g++ 12 or newer, or clang 15"
    )


def find_nvcc() -> Compiler:
    """Find nvcc: the one named by NVCC, in CUDA_HOME, on the path, or in CUDA's default folder.

    Raises:
        MissingCompiler: there is none.
    """
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    candidates = [os.environ.get("NVCC"), f"{home}/bin/nvcc" if home else None, "nvcc", "/usr/local/cuda/bin/nvcc"]
    for candidate in candidates:
        path = shutil.which(candidate) if candidate else None
        if path:
            return Compiler(path, _version_of(path, -1))
    raise MissingCompiler(
        "running the reference kernel on a GPU needs nvcc; install the CUDA toolkit, and set CUDA_HOME if nvcc is not "
        "on the path"
    )


@functools.cache
def _version_of(path: str, line: int) -> str:
    output = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return output.splitlines()[line] if output else path


@functools.cache
def _processor_flags() -> tuple[str, ...]:
    """Vector instructions of this processor, named one by one so that the cache key holds them."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ()
    try:
        described = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return ()
    present = set(described.group(1).split()) if described else set()
    return tuple(f"-m{name}" for name in ("avx2", "fma", "f16c") if name in present)


def compile_command(configuration: Configuration, source_root: Path, output: Path) -> list[str]:
    """Return the command line that compiles a kernel from ``source_root`` to ``output``.

    For a GPU that is the finished library; for the CPU it lacks the runtime, which is compiled once for all kernels.
    """
    source = str(source_root / "kernels" / f"{configuration.kernel}.cu")
    if configuration.target != CPU:
        return [
            find_nvcc().path, "-std=c++17", "-O3", f"-arch={configuration.target}", "-lineinfo", "-shared",
            "-Xcompiler=-fPIC,-fvisibility=hidden", *configuration.macros(), source, "-o", str(output),
        ]  # fmt: skip
    return [
        find_cxx().path, *_cxx_flags(configuration.sanitize), "-shared", *configuration.macros(), "-x", "c++", source,
        "-o", str(output),
    ]  # fmt: skip


def _cxx_flags(sanitize: bool) -> list[str]:
    # Symbols are hidden, or the loader would share one library's variables with the next.
    optimisation = ["-O1", "-g", "-fsanitize=address"] if sanitize else ["-O2"]
    warnings = ["-Wall", "-Wextra", "-Wno-unknown-pragmas"]
    return ["-std=c++17", *optimisation, *_processor_flags(), "-fPIC", "-pthread", "-fvisibility=hidden", *warnings]


def library_path(configuration: Configuration, source_root: Path = PACKAGE) -> Path:
    """Return where the library of a configuration is cached, whether or not it is there yet.

    Raises:
        MissingCompiler: there is no compiler for the configuration's target.
    """
    compiler = find_cxx() if configuration.target == CPU else find_nvcc()
    command = compile_command(configuration, Path("."), Path("library.so"))
    sources = [path for folder in ("kernels", "cpu") for path in sorted((source_root / folder).iterdir())]
    return _cached(f"{configuration.kernel}-{_digest(compiler, command, sources)}.so")


def build(configuration: Configuration, source_root: Path = PACKAGE) -> Path:
    """Return the library of a configuration, compiled now if it is not in the cache.

    Args:
        configuration: what to compile.
        source_root: folder that holds ``kernels`` and ``cpu``.

    Raises:
        MissingCompiler: there is no compiler for the configuration's target.
        CompileError: the compiler rejected the source.
    """
    path = library_path(configuration, source_root)
    if path.exists():
        return path
    command = compile_command(configuration, source_root, path)
    if configuration.target == CPU:
        command += ["-x", "none", str(_build_runtime(configuration.sanitize, source_root))]
    return _compile(command, path)


def _build_runtime(sanitize: bool, source_root: Path) -> Path:
    source = source_root / "cpu" / "runtime.cpp"
    command = [find_cxx().path, *_cxx_flags(sanitize), "-c"]
    path = _cached(f"runtime-{_digest(find_cxx(), command, sorted(source.parent.iterdir()))}.o")
    with _runtime_lock:
        return path if path.exists() else _compile([*command, str(source), "-o", str(path)], path)


_runtime_lock = threading.Lock()


def _cached(name: str) -> Path:
    return Path(user_cache_dir("flashtracer")) / "kernels" / name


def _digest(compiler: Compiler, command: Sequence[str], sources: Iterable[Path]) -> str:
    digest = hashlib.sha256("\0".join([compiler.version, *command]).encode())
    for path in sources:
        digest.update(b"\0" + path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:24]


def _compile(command: list[str], path: Path) -> Path:
    """Run a command that writes ``path``. Whole or not at all: another process never sees a half-written file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="building-") as folder:
        unfinished = Path(folder) / path.name
        words = [str(unfinished) if word == str(path) else word for word in command]
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            lines = result.stderr.strip().splitlines()
            told = [line for line in lines if "error" in line][:5] or lines[:5]
            raise CompileError(f"{command[0]} cannot compile {path.name}: " + "\n  ".join(told))
        os.replace(unfinished, path)
    return path


def build_all(configurations: Iterable[Configuration], source_root: Path = PACKAGE) -> dict[Configuration, Path]:
    """Build several configurations, as many at a time as there are processors. Raises as ``build`` does."""
    wanted = sorted(set(configurations))
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return dict(zip(wanted, pool.map(lambda one: build(one, source_root), wanted), strict=True))
