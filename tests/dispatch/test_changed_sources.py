"""Copies of a release with something in the host code that no rule knows: named with its place, never guessed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.releases import release
from tracer.checkout import open_checkout
from tracer.dispatch import Dispatcher, Question, Unsupported, ask, device
from tracer.graph import Program

QUESTION = Question(entry="mha_fwd", head_dim=64, seqlen_q=512)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what the dispatch of a release needs."""
    source, target = release("2.8.3"), tmp_path_factory.mktemp("copy") / "flash-attention"
    for folder in ("csrc/flash_attn", "flash_attn"):
        shutil.copytree(source / folder, target / folder)
    shutil.copy(source / "setup.py", target / "setup.py")
    return target


@pytest.fixture(scope="module")
def body_of_mha_fwd(copy: Path) -> tuple[str, int]:
    """Return the file of ``mha_fwd`` and the line behind which its body begins."""
    with Program(open_checkout(str(copy)), cache=False) as program:
        dispatcher = Dispatcher(program)
        code = dispatcher.entry("mha_fwd")
        place = dispatcher.host.location(code.id, code.body)
    return place.file, place.line


@pytest.fixture
def changed(copy: Path, body_of_mha_fwd: tuple[str, int], request: pytest.FixtureRequest) -> Iterator[Dispatcher]:
    """Put one line at the beginning of the body of ``mha_fwd``."""
    file, line = body_of_mha_fwd
    path = copy / file
    original = path.read_text(encoding="utf-8")
    lines = original.split("\n")
    path.write_text("\n".join([*lines[:line], request.param, *lines[line:]]), encoding="utf-8")
    try:
        with Program(open_checkout(str(copy)), cache=False) as program:
            yield Dispatcher(program)
    finally:
        path.write_text(original, encoding="utf-8")


@pytest.mark.parametrize(
    ("changed", "construct"),
    [
        ("switch (window_size_left) { default: window_size_left = 1; }", "switch"),
        ("for (auto size : q.sizes()) { window_size_left = size; }", "for-range"),
        ('if (getenv("SPLITS")) { window_size_left = 1; }', "function getenv"),
        ("int value; cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlock, 0);", "device attribute"),
        ("window_size_left = q.nbytes();", "Tensor::nbytes"),
        ("auto flat = q.flatten();", "Tensor::flatten"),
        ("int never; window_size_left = never;", "a read of never, which is uninitialised"),
        ("window_size_left = q.max().item<int>() > 3 ? 1 : 2;", "which depends on the contents of a tensor"),
        ("window_size_left = name_that_nobody_declares;", "name_that_nobody_declares"),
        ("std::sort(&window_size_left, &window_size_left);", "sort"),
    ],
    indirect=["changed"],
    ids=lambda value: value.split("(")[0][:24] if isinstance(value, str) else None,
)
def test_an_unknown_construct_is_named_with_its_place(
    changed: Dispatcher, construct: str, body_of_mha_fwd: tuple[str, int]
) -> None:
    file, line = body_of_mha_fwd
    with pytest.raises(Unsupported) as error:
        ask(changed, QUESTION, device("A100"))
    assert construct in error.value.construct
    assert error.value.location is not None
    assert (error.value.location.file, error.value.location.line) == (file, line + 1)
    assert f"{file}:{line + 1}" in str(error.value)


@pytest.mark.parametrize("changed", ["// nothing", "const int unused = 1 + 2;"], indirect=True)
def test_what_is_known_changes_nothing(changed: Dispatcher) -> None:
    launches = ask(changed, QUESTION, device("A100")).prediction.launches
    assert [launch.kernel for launch in launches] == ["flash_fwd_splitkv_kernel", "flash_fwd_splitkv_combine_kernel"]


@pytest.mark.parametrize(
    ("changed", "windows"),
    [("if (q.max().item<int>() > 3) { softcap > 0; window_size_left = 64; }", {"false", "true"})],
    indirect=["changed"],
)
def test_outcomes_that_the_question_does_not_decide_are_listed(changed: Dispatcher, windows: set[str]) -> None:
    shown = ask(changed, QUESTION, device("A100"), outcomes=True)
    assert {outcome.prediction.launches[0].argument("Is_local") for outcome in shown.outcomes} == windows
    assert [outcome.assumptions[0].value for outcome in shown.outcomes] == [False, True]
