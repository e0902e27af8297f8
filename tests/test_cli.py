"""Every command as a user runs it: help, formats, data on standard output, exit statuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import tracer
from tests.releases import release

SCHEMAS = Path(tracer.__file__).parent / "schemas"
CHECKOUT = "pypi:2.8.3"
COMMANDS = ("trace", "graph", "report", "symbols", "check", "kernel", "decode", "io", "validate")
NAME = (
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t, "
    "Flash_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t> >, false, true, false, false, true, true, false, false>"
    "(flash::Flash_fwd_params)"
)


def run(*arguments: str, status: int = 0, stdin: str = "") -> str:
    result = subprocess.run(
        [sys.executable, "-m", "tracer", *arguments], capture_output=True, text=True, timeout=300, input=stdin,
        env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip
    assert result.returncode == status, result.stderr
    assert "Traceback" not in result.stderr
    if status == 0:
        assert result.stderr == ""
    return result.stdout if status != 2 else result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(command: str) -> None:
    help_text = run(command, "--help")
    assert help_text.startswith(f"Usage: flashtracer {command}") or f" {command} " in help_text.splitlines()[0]
    assert len(help_text.splitlines()) > 5


def test_the_program_lists_its_commands_and_its_version() -> None:
    listed = run("--help")
    assert all(f"\n  {command} " in listed for command in COMMANDS)
    assert run("--version") == f"flashtracer {tracer.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "schema"),
    [
        (("symbols", CHECKOUT), "symbols"),
        (("check", CHECKOUT, "--algorithm", "forward"), "check"),
        (("kernel", CHECKOUT, "--gpu", "A100", "--head-dim", "64"), "kernel"),
        (("decode", NAME, "--checkout", CHECKOUT), "decode"),
        (("io", "--seqlen", "1024", "--head-dim", "64", "--block-m", "64"), "io"),
        (("io", "--checkout", CHECKOUT, "--gpu", "H100", "--causal"), "io"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value)[:30],
)
def test_json_keeps_its_schema(arguments: tuple[str, ...], schema: str) -> None:
    data = json.loads(run(*arguments, "--format", "json"))
    jsonschema.validate(data, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))


def test_a_name_that_is_predicted_is_decoded() -> None:
    predicted = json.loads(
        run("kernel", CHECKOUT, "--gpu", "A100", "--dtype", "bf16", "--causal", "--heads", "64", "--format", "json")
    )
    name = predicted["launches"][0]["name"]
    decoded = json.loads(run("decode", "-", "--checkout", CHECKOUT, "--format", "json", stdin=name + "\n"))
    text = json.dumps(decoded)
    assert "flash_fwd_kernel" in text and "bf16" in text


def test_a_refused_call_is_an_answer_with_status_1() -> None:
    shown = run("kernel", CHECKOUT, "--gpu", "A100", "--dtype", "fp32", status=1)
    assert "refused" in shown and "flash_api.cpp" in shown


def test_calls_one_a_line(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    tensor = {"shape": [2, 512, 8, 64], "stride": None, "dtype": "Half"}
    call = {
        "entry": "mha_fwd",
        "device": {"major": 8, "minor": 0, "sm_count": 108, "shared_memory_per_block_optin": 166912,
                   "shared_memory_per_sm": 167936},
        "arguments": {"q": tensor, "k": tensor, "v": tensor, "out_": None, "alibi_slopes_": None, "p_dropout": 0.0,
                      "softmax_scale": 0.125, "is_causal": False, "window_size_left": -1, "window_size_right": -1,
                      "softcap": 0.0, "return_softmax": False, "gen_": None},
    }  # fmt: skip
    calls.write_text(json.dumps(call) + "\n" + json.dumps(call) + "\n")
    answers = [json.loads(line) for line in run("kernel", CHECKOUT, "--calls", str(calls)).splitlines()]
    assert len(answers) == 2 and answers[0] == answers[1]
    assert answers[0]["launches"][0]["block"] == [128, 1, 1]


def test_a_kernel_that_computes_something_else_has_status_1(tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    shutil.copytree(release("2.8.3"), copy)
    header = copy / "csrc/flash_attn/src/softmax.h"
    lines = header.read_text().splitlines(keepends=True)
    # The line on which the running sum is multiplied by the rescale factor; see tests/data for where facts come from.
    assert "*=" in lines[157]
    lines[157] = "\n"
    header.write_text("".join(lines))
    shown = run("check", str(copy), "--algorithm", "forward", "--no-cache", status=1)
    assert "differs" in shown and "α" in shown and "softmax.h" in shown


def test_bytes_that_the_readme_states() -> None:
    rows = json.loads(run(
        "io", *(f"--seqlen={2**n}" for n in range(10, 15)), "--head-dim=64", "--head-dim=128", "--block-m=64",
        "--format=json",
    ))["rows"]  # fmt: skip
    for d, limit in ((64, 2.0), (128, 1.0)):
        ratios = []
        for n in (1024, 16384):
            of = {row["algorithm"]: row["tile_bytes"] for row in rows if row["N"] == n and row["d"] == d}
            ratios.append(of["naive-forward"] / of["fa2-forward"])
        assert abs(ratios[1] - limit) < 0.02 and abs(ratios[0] - limit) < 0.1


def test_output_can_be_piped() -> None:
    command = f"{sys.executable} -m tracer graph {CHECKOUT} | head -1"
    result = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    assert result.stdout.startswith("%%{init") and result.stderr == ""
