"""Every kernel, dtype, tile, mask and edge case against float64: the rows of ``flashtracer validate --full``."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import pytest

torch = pytest.importorskip("torch")

from refkernel import build, validate  # noqa: E402
from refkernel.build import FORWARD_2, build_all  # noqa: E402
from refkernel.cases import Case, full_cases, quick_cases  # noqa: E402
from refkernel.validate import Measurement, Row, ValidationReport, configuration_of  # noqa: E402

SEED = 20261129


@pytest.fixture(scope="module")
def all_built() -> None:
    """Compile on all processors at once rather than one test at a time."""
    build_all(configuration_of(case) for case in full_cases())


def name(case: Case) -> str:
    lengths = f"{case.lengths_q}x{case.lengths_k}" if case.lengths_q else f"{case.seqlen_q}x{case.seqlen_k}"
    heads = f"h{case.heads_q}:{case.heads_k}"
    tile = f"{case.block_m}x{case.block_n}"
    return f"{case.kernel}-{case.dtype}-{lengths}-{heads}-d{case.head_dim}-{tile}-{case.mask}".replace(" ", "")


@pytest.mark.parametrize("case", full_cases(), ids=name)
def test_case_keeps_its_bounds(case: Case, all_built: None) -> None:
    report = validate.validate(cases=[case], seed=SEED)
    for one in report.rows[0].measurements:
        assert one.passed, f"{one.quantity}: error {one.error:.2e} above {one.bound:.2e}"


def test_the_full_set_covers_every_feature() -> None:
    cases = full_cases()
    for kernel in build.KERNELS:
        mine = [case for case in cases if case.kernel == kernel]
        assert {case.dtype for case in mine} == ({"fp16", "bf16"} if "mma" in kernel else {"fp32", "fp16", "bf16"})
        wanted = {
            "N = 1": lambda c: c.seqlen_q == c.seqlen_k == 1,
            "below one block": lambda c: 1 < c.seqlen_q < c.block_m and 1 < c.seqlen_k < c.block_n,
            "rows that see nothing": lambda c: c.causal and c.seqlen_q > c.seqlen_k + c.block_m // 2,
            "nobody sees anything": lambda c: c.seqlen_k == 0,
            "large scores": lambda c: c.inputs == "large",
            "first block hidden, then very negative": lambda c: c.inputs == "late" and c.window_size[0] >= 0,
            "grouped heads": lambda c: c.heads_k > 1 and c.heads_q > c.heads_k,
            "one key head": lambda c: c.heads_k == 1 and c.heads_q > 1,
            "window": lambda c: min(c.window_size) >= 0,
            "softcap": lambda c: c.softcap > 0,
            "alibi": lambda c: c.alibi,
            "variable length with an empty sequence": lambda c: 0 in c.lengths_q and 0 in c.lengths_k,
            "odd head dim": lambda c: c.head_dim % 2 == 1,
            "head dim 256": lambda c: c.head_dim == 256,
        }
        missing = [feature for feature, has in wanted.items() if not any(has(case) for case in mine)]
        assert not missing, f"{kernel}: {missing}"
    tiles = {(c.block_m, c.block_n) for c in cases if c.kernel == FORWARD_2 and c.dtype == "fp32"}
    assert tiles >= {(m, n) for m in (32, 64, 128) for n in (32, 64, 128)}


def test_late_scores_do_meet_a_hidden_block_first() -> None:
    """The case would be worthless if the first block a row tile visits were visible to all its rows."""
    case = next(case for case in full_cases() if case.inputs == "late")
    first_row_of_second_tile = case.block_m
    first_column = first_row_of_second_tile - case.window_size[0]
    first_block_end = (first_column // case.block_n + 1) * case.block_n
    last_row_of_tile = min(case.seqlen_q, 2 * case.block_m) - 1
    assert last_row_of_tile - case.window_size[0] >= first_block_end
    q, k, _, _, options = validate._inputs(case, SEED, "cpu")
    scores = options.softmax_scale * q[0, :, 0] @ k[0, :, 0].T
    assert scores.max() < -9000


def test_large_scores_are_exact_and_large() -> None:
    case = next(case for case in full_cases() if case.inputs == "large")
    q, k, _, _, options = validate._inputs(case, SEED, "cpu")
    scores = options.softmax_scale * q[0, :, 0] @ k[0, :, 0].T
    assert scores.abs().max() > 9000
    assert torch.equal(scores, scores.round())


def test_same_seed_same_inputs_other_seed_others() -> None:
    case = quick_cases()[0]
    once, again, other = (validate._inputs(case, seed, "cpu")[0] for seed in (1, 1, 2))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)


def test_a_broken_bound_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "FP32_BOUND", 1e-12)
    report = validate.validate(cases=[replace(quick_cases()[0], seqlen_q=64, seqlen_k=64)], seed=SEED)
    assert not report.passed
    assert "BROKEN" in validate.render_text(report)
    assert json.loads(validate.to_json(report))["passed"] is False


def test_cases_that_do_not_fit_a_gpu_are_named_in_the_summary() -> None:
    row = Row(quick_cases()[0], (Measurement("O", 1e-7, 5e-6, 1e-7), Measurement("LSE", 0.0, 5e-6, None)))
    report = replace(report_of(row), skipped=("flash_attention_2_forward fp32 64 x 256, d = 64: 215296 bytes",))
    assert "1 of 1 within bounds, 1 do not fit this GPU" in validate.render_text(report)
    assert json.loads(validate.to_json(report))["skipped"] == list(report.skipped)


def test_nan_never_passes() -> None:
    wanted = torch.zeros(3, dtype=torch.float64)
    assert validate.largest_error(torch.tensor([0.0, float("nan"), 0.0]), wanted) == float("inf")
    infinite = torch.tensor([float("inf")])
    assert validate.largest_error(infinite, infinite.double()) == 0.0
    assert validate.largest_error(infinite, torch.zeros(1, dtype=torch.float64)) == float("inf")
    assert validate.largest_error(torch.zeros(1), infinite.double()) == float("inf")


def report_of(row: Row) -> ValidationReport:
    return ValidationReport(False, 7, "cpu", "g++ 12", 2, 0.6, 0.1, None, (row,))


def test_json_keeps_its_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(files("refkernel").joinpath("schemas/validate.schema.json").read_text())
    broken = Row(quick_cases()[0], (Measurement("O", float("inf"), 5e-6, 1e-7), Measurement("LSE", 0.0, 5e-6, None)))
    document = json.loads(validate.to_json(report_of(broken)))
    jsonschema.validate(document, schema)
    assert document["rows"][0]["measurements"][0]["error"] is None
    del document["seed"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def test_text_names_the_result_nearest_to_its_bound() -> None:
    row = Row(quick_cases()[0], (Measurement("O", 1e-7, 5e-6, 1e-7), Measurement("LSE", 4e-6, 5e-6, None)))
    text = validate.render_text(report_of(row))
    assert "LSE" in text.splitlines()[1]
    assert "4.0e-06" in text.splitlines()[1]
    assert "1 of 1 within bounds" in text
    assert "seed 7" in text
    assert "GPU: none found (make gpu)" in text
    assert validate.render_markdown(report_of(row)).splitlines()[1].startswith("| --- |")
