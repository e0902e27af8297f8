"""The GPU module as far as it goes without a GPU: the refusal, what it would run, and how it reads its tools."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from refkernel import gpu, validate  # noqa: E402
from refkernel.benchmark import Timing  # noqa: E402
from refkernel.build import KERNELS  # noqa: E402
from refkernel.errors import MissingGpu  # noqa: E402

needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@needs_no_gpu
def test_without_a_gpu_it_says_so_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--out", str(tmp_path / "gpu")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("refkernel.gpu: no GPU found: PyTorch")
    assert told.err.count("\n") == 1
    assert not (tmp_path / "gpu").exists()
    with pytest.raises(MissingGpu):
        gpu.collect(quick=True)
    with pytest.raises(MissingGpu):
        validate.validate(device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_layout_on_the_gpu() -> None:
    for dtype in ("fp16", "bf16"):
        assert gpu.layout_errors(dtype, "cuda") == {"S": 0.0, "O": 0.0}


def test_the_small_cases_are_right_and_touch_every_kernel() -> None:
    cases = gpu.small_cases()
    assert {case.kernel for case in cases} == set(KERNELS)
    assert validate.validate(cases=cases, seed=1).passed


NCU = """==PROF== Connected to process 1
==PROF== Profiling "softmax": 0%....100%
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","1","gemm","dram__bytes.sum","Mbyte","1,200.5"
"0","1","gemm","lts__t_bytes.sum","Gbyte","2.5"
"1","1","softmax","dram__bytes.sum","byte","7"
"1","1","softmax","lts__t_bytes.sum","Kbyte","3"
"""


def test_ncu_output_is_summed_over_kernels_in_bytes() -> None:
    assert gpu.sum_metrics(NCU) == {"dram__bytes.sum": 1200500007.0, "lts__t_bytes.sum": 2500003000.0}
    assert gpu.sum_metrics("==ERROR== no permission\n") == {}


def test_missing_tools_are_reported_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)
    assert [(run.passed, run.message) for run in gpu.sanitizer_runs()] == [
        (None, "compute-sanitizer is not on the path")
    ] * 2
    one = gpu.traffic("naive", gpu.workloads(True)[0])
    assert (one.dram_bytes, one.l2_bytes, one.message) == (None, None, "ncu is not on the path")


def test_timed_workloads_are_what_the_aim_speaks_of() -> None:
    timed = gpu.workloads(quick=False)
    assert {w.head_dim for w in timed} == {64, 128}
    assert {w.causal for w in timed} == {False, True}
    assert {w.seqlen for w in timed} == {1024, 2048, 4096, 8192, 16384}
    assert {w.batch * w.seqlen for w in timed} == {16384}


def test_the_document_keeps_its_schema_with_every_part_stood_in_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of ``collect``, with the GPU's answers replaced and nothing else."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(files("refkernel").joinpath("schemas/gpu.schema.json").read_text())

    def timed(workload: gpu.Workload, kernels: tuple[str, ...]) -> list[Timing]:
        return [Timing(kernel, workload, 1.0, 2.0, None) for kernel in kernels]

    on_cpu = validate.validate(cases=gpu.small_cases()[:1], seed=1)
    monkeypatch.setattr(gpu, "require_gpu", lambda: "Some GPU")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(gpu, "layout_errors", lambda dtype, device: {"S": 0.0, "O": 0.0})
    monkeypatch.setattr(gpu, "validate", lambda **_: on_cpu)
    monkeypatch.setattr(gpu, "gpu_timings", timed)
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)
    document = json.loads(json.dumps(gpu.collect(quick=True)))
    jsonschema.validate(document, schema)
    assert gpu.failures(document) == []
    assert {one["implementation"] for one in document["timings"]} == set(KERNELS)
    assert {one["implementation"] for one in document["traffic"]} >= {"naive", "flash_attention_2_forward_mma"}
    document["timings"][0]["milliseconds"] = 0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def test_failures_are_told_and_what_was_not_run_is_none() -> None:
    row = {"kernel": "k", "dtype": "fp16", "mask": "causal", "passed": True}
    good = {
        "layout_errors": {"fp16": {"S": 0.0, "O": 0.0}},
        "validation": {"rows": [row]},
        "sanitizer": [{"tool": "memcheck", "passed": None, "message": "missing"}],
    }
    assert gpu.failures(good) == []
    assert len(gpu.failures(good | {"layout_errors": {"fp16": {"S": 1.0, "O": 0.0}}})) == 1
    assert len(gpu.failures(good | {"validation": {"rows": [row | {"passed": False}]}})) == 1
    assert len(gpu.failures(good | {"sanitizer": [{"tool": "racecheck", "passed": False, "message": "hazard"}]})) == 1


def test_operations_are_those_of_the_products() -> None:
    workload = gpu.workloads(True)[0]
    dense = replace(workload, batch=1, heads=1, seqlen=10, head_dim=4, causal=False)
    assert dense.operations("flash_attention_2_forward") == 2 * (2 * 10 * 10 * 4)
    assert dense.operations("flash_attention_2_backward") == 5 * (2 * 10 * 10 * 4)
    assert replace(dense, causal=True).operations("flash_attention_2_forward") == 10 * 10 * 4 * 2
