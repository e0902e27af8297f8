"""Kernel names in all their spellings, and what profilers write them into."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tracer
from tests.releases import release_checkout
from tracer.dispatch import Decoder, Dispatcher, KernelNameError, KernelTime, decode, kernels_in_text, read_profile
from tracer.dispatch.kernel_name import parse_kernel_name
from tracer.errors import TracerError
from tracer.graph import Program
from tracer.render import kernel_json, kernel_text

jsonschema: Any = import_module("jsonschema")  # It has no types.

MANGLED = (
    "_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi128ELi64ELi4ELb0ELb0EN7cutlass10bfloat16_tE"
    "19Flash_kernel_traitsILi128ELi128ELi64ELi4ES3_EELb0ELb1ELb0ELb0ELb1ELb1ELb0ELb0EEEvNS_16Flash_fwd_paramsE"
)
TRAITS = (
    "Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t, "
    "Flash_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t> >"
)
DEMANGLED = (
    f"void flash::flash_fwd_kernel<{TRAITS}, false, true, false, false, true, true, false, false>"
    "(flash::Flash_fwd_params)"
)
CASTS = (
    DEMANGLED.replace("false", "(bool)0")
    .replace("true", "(bool)1")
    .replace("128", "(int)128")
    .replace("64, 4", "(int)64, (int)4")
)
OLD = (
    "pytorch_flash::run_flash_splitkv_fwd<pytorch_flash::Flash_fwd_kernel_traits<32, 64, 256, 4, false, false, "
    "cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<32, 64, 256, 4, cutlass::bfloat16_t> > >"
)


@pytest.fixture(scope="module")
def newest() -> Iterator[Program]:
    with Program(release_checkout("2.8.3")) as program:
        yield program


@pytest.fixture(scope="module")
def older() -> Iterator[Dispatcher]:
    with Program(release_checkout("2.5.8")) as program:
        yield Dispatcher(program)


@pytest.mark.parametrize(
    "spelling", [MANGLED, DEMANGLED, CASTS, DEMANGLED.replace("> >", ">>"), DEMANGLED + " [clone .x]"]
)
def test_every_spelling_is_the_same_kernel(spelling: str) -> None:
    spelling = spelling.replace(" [clone .x]", "")
    name = parse_kernel_name(spelling)
    assert (name.namespace, name.name) == ("flash", "flash_fwd_kernel")
    assert name.demangled == parse_kernel_name(DEMANGLED).demangled
    assert [argument.value for argument in name.arguments[1:]] == [False, True, False, False, True, True, False, False]
    assert name.arguments[0].arguments is not None
    assert [argument.value for argument in name.arguments[0].arguments[:6]] == [128, 128, 64, 4, False, False]


@pytest.mark.parametrize("cut", [MANGLED[:100], DEMANGLED[:120], DEMANGLED[:-30], "void (", "", "a b c"])
def test_a_name_that_is_cut_off_is_an_error_not_a_guess(cut: str) -> None:
    with pytest.raises(KernelNameError, match="cut off|no whole|no kernel name"):
        parse_kernel_name(cut)


def test_arguments_get_the_names_of_the_source_and_a_call_that_makes_them(newest: Program) -> None:
    (name,) = decode(newest, [MANGLED])
    assert dict(name.arguments[1:])["Is_causal"] == "true"
    assert [key for key, _ in name.arguments] == [
        "Kernel_traits", "Is_dropout", "Is_causal", "Is_local", "Has_alibi", "Is_even_MN", "Is_even_K", "Is_softcap",
        "Return_softmax",
    ]  # fmt: skip
    assert name.element == "bf16"
    traits = dict(name.traits)
    assert (traits["kHeadDim"], traits["kBlockM"], traits["kBlockN"], traits["kNWarps"]) == (128, 128, 64, 4)
    assert traits["kSmemSize"] == 65536
    assert name.location is not None and name.location.file.endswith("flash_fwd_launch_template.h")
    assert not name.problem
    assert name.example is not None
    assert name.example.question.causal and name.example.question.head_dim == 128
    screen = kernel_text.decoded([name], color=False, width=120)
    assert screen.startswith("flash_fwd_kernel     head dim 128, bf16, causal, tile 128 × 64, 4 warps")
    assert "flash_attn_func(q, k, v, causal=True)" in screen


def test_the_number_of_arguments_dates_a_name(newest: Program, older: Dispatcher) -> None:
    decoder = Decoder(Dispatcher(newest), lambda: [("2.5.8", older)])
    name = decoder.decode(OLD)
    assert name.namespace == "pytorch_flash"
    assert "1 template arguments" in name.problem and "declares 2: Kernel_traits, Is_causal" in name.problem
    assert name.fits == ("2.5.8",)
    assert (dict(name.traits)["kHeadDim"], dict(name.traits)["kBlockN"], name.element) == (32, 256, "bf16")


def test_a_name_of_no_kernel_here_says_so(newest: Program) -> None:
    (name,) = decode(newest, ["void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"])
    assert "no function vectorized_elementwise_kernel" in name.problem
    (plain,) = decode(None, [DEMANGLED])
    assert plain.arguments[2] == ("", "true") and plain.location is None


def trace(path: Path) -> None:
    events = [
        {"ph": "X", "cat": "kernel", "name": DEMANGLED, "dur": 12.5},
        {"ph": "X", "cat": "kernel", "name": DEMANGLED, "dur": 7.5},
        {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "dur": 99},
        {"ph": "X", "cat": "kernel", "name": "other", "dur": 1},
    ]
    text = json.dumps({"traceEvents": events}).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def systems_csv(path: Path) -> None:
    head = '"Time (%)","Total Time (ns)","Instances","Avg (ns)","Name"'
    path.write_text(f'{head}\n95.2,20000,2,10000,"{DEMANGLED}"\n4.8,1000,1,1000,"other"\n', encoding="utf-8")


def compute_csv(path: Path) -> None:
    head = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
    rows = [(0, DEMANGLED, "12.5"), (1, DEMANGLED, "7.5"), (2, "other", "1")]
    lines = [f'"{n}","{name}","gpu__time_duration.sum","usecond","{value}"' for n, name, value in rows]
    more = [f'"{n}","{name}","dram__bytes.sum","byte","1,024"' for n, name, _ in rows]
    path.write_text("==PROF== Connected\n" + "\n".join([head, *lines, *more]) + "\n", encoding="utf-8")


def systems_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, demangledName INTEGER)")
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, DEMANGLED), (2, "other")])
        rows = [(0, 12500, 1), (20000, 27500, 1), (30000, 31000, 2)]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)", rows)


@pytest.mark.parametrize(
    ("file", "write"),
    [
        ("trace.json", trace),
        ("trace.json.gz", trace),
        ("sum.csv", systems_csv),
        ("ncu.csv", compute_csv),
        ("nsys.sqlite", systems_database),
    ],
)
def test_a_profile_gives_names_counts_and_times(tmp_path: Path, file: str, write: Any) -> None:
    write(tmp_path / file)
    assert read_profile(tmp_path / file) == (KernelTime(DEMANGLED, 2, 20000.0), KernelTime("other", 1, 1000.0))


def test_lines_of_text_are_names(tmp_path: Path) -> None:
    assert kernels_in_text(f"{MANGLED}\n\n{MANGLED}\nother\n") == (KernelTime(MANGLED, 2, 0), KernelTime("other", 1, 0))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("broken.json", b'{"traceEvents": [', "no trace of the torch profiler"),
        ("list.json", b'{"other": 1}', "no trace of the torch profiler"),
        ("cut.json.gz", gzip.compress(b"[]")[:-6], "cannot be read"),
        ("other.sqlite", b"SQLite format 3\0" + b"\0" * 200, "no export of Nsight Systems"),
    ],
)
def test_a_profile_that_is_none_is_one_clear_line(tmp_path: Path, file: str, content: bytes, message: str) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(TracerError, match=message):
        read_profile(tmp_path / file)
    with pytest.raises(TracerError, match="cannot be read"):
        read_profile(tmp_path / "missing.json")


def rows(program: Program, kernels: Iterable[KernelTime]) -> list[tuple[KernelTime, Any]]:
    found = []
    for kernel in kernels:
        name = decode(program, [kernel.name], examples=False)[0]
        found.append((kernel, None if name.problem else name))
    return found


def test_a_profile_is_shown_with_time_share_and_launches(newest: Program) -> None:
    table = rows(newest, (KernelTime(DEMANGLED, 2, 20000.0), KernelTime("other", 1, 1000.0)))
    screen = kernel_text.profile(table, color=False, width=120)
    assert "95.2%" in screen and "0.020 ms" in screen and "flash_fwd_kernel     head dim 128, bf16, causal" in screen
    assert "4.8%         1  kernels of others" in screen
    schema = json.loads((Path(tracer.__file__).parent / "schemas" / "decode.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(kernel_json.decoded(table))))
