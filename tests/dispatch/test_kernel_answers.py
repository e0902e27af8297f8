"""Questions from the issue tracker with known answers, and the three forms in which an answer is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tracer
from tests.releases import release_checkout
from tracer.dispatch import Answer, Dispatcher, Question, Tensor, ask, decode, device
from tracer.errors import NameNotFound, TracerError
from tracer.graph import Program
from tracer.render import kernel_json, kernel_markdown, kernel_text

jsonschema: Any = import_module("jsonschema")  # It has no types.
SCHEMAS = Path(tracer.__file__).parent / "schemas"


def validator(name: str) -> Any:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def newest() -> Iterator[Dispatcher]:
    with Program(release_checkout("2.8.3")) as program:
        yield Dispatcher(program)


@pytest.fixture(scope="module")
def older() -> Iterator[Dispatcher]:
    with Program(release_checkout("2.6.3")) as program:
        yield Dispatcher(program)


SQUARE = Question(batch=2, heads=32, seqlen_q=2048)


@pytest.mark.parametrize(
    ("question", "gpu", "tile", "warps", "grid", "memory"),
    [
        (SQUARE, "RTX4090", (128, 32), 4, (16, 2, 32), 49152),
        (replace(SQUARE, causal=True), "RTX4090", (64, 64), 4, (32, 2, 32), 49152),
        (SQUARE, "A100", (128, 64), 4, (16, 2, 32), 65536),
        (replace(SQUARE, dropout=0.1), "A100", (128, 32), 4, (16, 2, 32), 49152),
        (SQUARE, "RTX5090", (128, 64), 4, (16, 2, 32), 65536),
        (Question(batch=4, heads=16, seqlen_q=4096, head_dim=256), "A100", (128, 64), 8, (32, 4, 16), 131072),
        (Question(batch=4, heads=16, seqlen_q=4096, head_dim=256), "H100", (64, 64), 4, (64, 4, 16), 98304),
        (Question(batch=4, heads=16, seqlen_q=4096, head_dim=256), "RTX3090", (64, 64), 4, (64, 4, 16), 98304),
        (Question(batch=1600, heads=729, seqlen_q=16, head_dim=72), "A100", (128, 64), 4, (1, 1600, 729), 49152),
    ],
)
def test_tile_and_grid_by_gpu_and_head_dimension(
    newest: Dispatcher,
    question: Question,
    gpu: str,
    tile: tuple[int, int],
    warps: int,
    grid: tuple[int, ...],
    memory: int,
) -> None:
    (launch,) = ask(newest, question, device(gpu)).prediction.launches
    assert launch.kernel == "flash_fwd_kernel"
    assert (launch.trait("kBlockM"), launch.trait("kBlockN")) == tile
    assert launch.trait("kNWarps") == warps
    assert (launch.grid, launch.shared_memory_bytes) == (grid, memory)


def test_a_plain_forward_splits_the_keys_of_a_small_call(newest: Dispatcher) -> None:
    small = Question(batch=1, heads=12, seqlen_q=512, head_dim=64)
    prediction = ask(newest, small, device("A100"), explain=True).prediction
    assert [launch.kernel for launch in prediction.launches] == [
        "flash_fwd_splitkv_kernel",
        "flash_fwd_splitkv_combine_kernel",
    ]
    assert prediction.num_splits == 2
    assert prediction.launches[0].grid == (8, 2, 12)
    assert prediction.launches[1].argument("kBlockM") == "8"
    assert prediction.launches[1].argument("Log_max_splits") == "1"
    (heuristic,) = [row for row in prediction.decisions if row.kind == "value"]
    assert heuristic.value == "2"
    assert [value for _, value in heuristic.operands] == ["96", "216", "2", "128"]
    large = ask(newest, replace(small, batch=64, heads=16, seqlen_q=1024), device("A100")).prediction
    assert [launch.kernel for launch in large.launches] == ["flash_fwd_kernel"]


def test_python_pads_what_cpp_would_refuse(newest: Dispatcher) -> None:
    padded = ask(newest, Question(head_dim=70), device("A100"))
    query = padded.prediction.call.arguments["q"]
    assert isinstance(query, Tensor) and query.shape[-1] == 72
    assert padded.prediction.launches[0].trait("kHeadDim") == 96
    assert padded.prediction.launches[0].argument("Is_even_K") == "false"
    error = ask(newest, Question(entry="mha_fwd", head_dim=70), device("A100")).prediction.error
    assert error is not None and "must have a head_size that is a multiple of 8" in error.message


@pytest.mark.parametrize(("left", "causal", "local"), [(16383, False, True), (16384, True, False), (-1, True, False)])
def test_a_window_as_long_as_the_keys_is_a_causal_mask(older: Dispatcher, left: int, causal: bool, local: bool) -> None:
    question = Question(batch=1, heads=8, seqlen_q=16384, window=(left, 0))
    (launch,) = ask(older, question, device("A100")).prediction.launches
    assert launch.argument("Is_causal") == str(causal).lower()
    assert launch.argument("Is_local") == str(local).lower()


def test_pages_force_the_split_kernel(older: Dispatcher) -> None:
    question = Question(entry="flash_attn_varlen_func", page_size=256)
    launch = ask(older, question, device("H100")).prediction.launches[0]
    assert launch.kernel == "flash_fwd_splitkv_kernel"
    assert (launch.trait("kBlockM"), launch.trait("kBlockN")) == (64, 128)


def test_alibi_clears_the_even_flags_from_one_release_on(newest: Dispatcher, older: Dispatcher) -> None:
    question = Question(batch=2, heads=16, seqlen_q=2048, head_dim=64, alibi=True)
    flags = [ask(d, question, device("A100")).prediction.launches[0].argument("Is_even_MN") for d in (older, newest)]
    assert flags == ["true", "false"]


def test_a_backward_that_launches_nothing_says_so(newest: Dispatcher) -> None:
    question = Question(entry="mha_bwd", head_dim=256, dropout=0.1)
    answer = ask(newest, question, device("RTX 4090"), explain=True)
    assert answer.prediction.error is None
    assert answer.prediction.launches == ()
    assert "without launching a kernel" in kernel_text.answer(answer, color=False, width=120)
    on_a100 = ask(newest, question, device("A100")).prediction
    assert [launch.kernel for launch in on_a100.launches] == [
        "flash_bwd_dot_do_o_kernel",
        "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
        "flash_bwd_convert_dq_kernel",
    ]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (Question(head_dim=257), "at most 256"),
        (Question(heads=6, heads_k=4), "must divide number of heads in query"),
        (Question(softcap=30.0, dropout=0.1), "Softcapping does not support dropout"),
        (Question(dtype="fp32"), "only support fp16 and bf16"),
        (Question(batch=0), "batch size must be positive"),
        (Question(heads=0), "killed (SIGFPE)"),
    ],
)
def test_impossible_calls_get_the_refusal_of_the_checkout(newest: Dispatcher, question: Question, message: str) -> None:
    answer = ask(newest, question, device("A100"))
    assert answer.prediction.error is not None
    assert message in answer.prediction.error.message
    assert answer.prediction.error.location.file.endswith("flash_api.cpp")
    assert answer.prediction.launches == ()


def test_what_cannot_be_asked_is_one_clear_line(newest: Dispatcher, older: Dispatcher) -> None:
    with pytest.raises(NameNotFound, match="no GPU named 'A1000'.*nearest: A100"):
        device("A1000")
    with pytest.raises(NameNotFound, match="no dtype named 'fp17'"):
        ask(newest, Question(dtype="fp17"), device("A100"))
    with pytest.raises(NameNotFound, match="flash_attn_funk.*nearest: flash_attn_func"):
        ask(newest, Question(entry="flash_attn_funk"), device("A100"))
    with pytest.raises(TracerError, match="flash_attn_func has no parameter for page size"):
        ask(newest, Question(page_size=256), device("A100"))
    error = ask(older, Question(), device("RTX5090")).prediction.error
    assert error is not None and error.message == "FlashAttention only supports Ampere GPUs or newer."


ANSWERS = [
    (Question(batch=1, heads=12, seqlen_q=512, head_dim=64), "A100"),
    (Question(head_dim=264), "A100"),
    (Question(entry="mha_bwd", head_dim=256, dropout=0.1), "RTX 4090"),
]


@pytest.fixture(scope="module", params=ANSWERS, ids=["launches", "refused", "nothing"])
def answer(request: pytest.FixtureRequest, newest: Dispatcher) -> Answer:
    question, gpu = request.param
    return ask(newest, question, device(gpu), explain=True)


def test_an_answer_keeps_to_its_schema(answer: Answer) -> None:
    data = json.loads(json.dumps(kernel_json.answer(answer)))
    validator("kernel").validate(data)
    assert (data["error"] is None) == (answer.prediction.error is None)
    assert [launch["kernel"] for launch in data["launches"]] == [x.kernel for x in answer.prediction.launches]


def test_the_schema_rejects_what_is_no_answer(answer: Answer) -> None:
    data = json.loads(json.dumps(kernel_json.answer(answer)))
    for broken in ({"schema": "flashtracer/kernel/2"}, {"num_splits": "two"}, {"launches": None}, {"extra": 1}):
        assert not validator("kernel").is_valid({**data, **broken})


def test_the_screen_answers_first_and_explains_second(answer: Answer) -> None:
    screen = kernel_text.answer(answer, color=False, width=100)
    first = screen.splitlines()[0]
    prediction = answer.prediction
    if prediction.error is not None:
        assert first == f"refused: {prediction.error.message}"
        assert str(prediction.error.location) in screen
    elif prediction.launches:
        assert first.startswith("flash_fwd_splitkv_kernel, then flash_fwd_splitkv_combine_kernel")
        assert first.endswith("2 splits")
        assert "64 × 256 (kBlockM × kBlockN), 4 warps" in screen
        assert screen.index("Why") > screen.index("grid, block")
        assert f"{prediction.launches[0].location}" in screen
    markdown = kernel_markdown.answer(answer)
    assert markdown.startswith("### ")


def test_a_prediction_and_a_decoded_name_meet(answer: Answer, newest: Dispatcher) -> None:
    for launch in answer.prediction.launches:
        names = decode(newest.program, [launch.name, launch.symbol], examples=False)
        for name in names:
            assert name.kernel == launch.kernel
            assert name.arguments == launch.template_arguments
            assert name.traits == launch.traits
            assert name.location == launch.defined_at
            assert not name.problem
