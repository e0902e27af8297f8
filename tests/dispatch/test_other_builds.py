"""Other builds and other generations: macros that setup.py does not set, and the Hopper extension as far as it goes."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import tracer
from tests.releases import release_checkout
from tracer.dispatch import Dispatcher, Question, ask, device
from tracer.graph import Program
from tracer.render import kernel_text

jsonschema: Any = import_module("jsonschema")  # It has no types.


def test_macros_of_another_build_change_namespace_and_choices() -> None:
    macros = ("FLASH_NAMESPACE=pytorch_flash", "FLASHATTENTION_DISABLE_ALIBI", "FLASHATTENTION_DISABLE_SOFTCAP")
    question = Question(head_dim=64, batch=8, heads=32)
    with Program(release_checkout("2.8.3")) as program:
        plain, copy = Dispatcher(program), Dispatcher(program, defines=macros, cache=False)
        (ours,) = ask(plain, question, device("A100")).prediction.launches
        (theirs,) = ask(copy, question, device("A100")).prediction.launches
        refused = ask(copy, Question(head_dim=64, alibi=True), device("A100")).prediction.error
        copy.close()
    assert theirs.name == ours.name.replace("flash::", "pytorch_flash::")
    assert theirs.traits == ours.traits
    assert (theirs.grid, theirs.shared_memory_bytes) == (ours.grid, ours.shared_memory_bytes)
    assert refused is not None and "does not support alibi" in refused.message


def test_offsets_that_overflow_are_warned_of_where_they_are_used() -> None:
    large = Question(batch=1, heads=1, seqlen_q=50000, dropout=0.1, return_softmax=True)
    with Program(release_checkout("2.6.3")) as program:
        dispatcher = Dispatcher(program)
        answer = ask(dispatcher, large, device("A100"), explain=True)
        (warned,) = answer.prediction.warnings
        smaller = Question(batch=1, heads=1, seqlen_q=40000, dropout=0.1, return_softmax=True)
        unused = Question(batch=1, heads=1, seqlen_q=50000, dropout=0.1)
        for question in (smaller, unused):
            assert ask(dispatcher, question, device("A100"), explain=True).prediction.warnings == ()
    assert warned.message.startswith("int32 overflow in row_offset_p") and "2147483647" in warned.message
    assert (warned.location.file, warned.location.line) == ("csrc/flash_attn/src/flash_fwd_kernel.h", 132)
    assert warned.message in " ".join(kernel_text.answer(answer, color=False, width=200).split())


def test_the_schema_of_what_is_not_known_is_one() -> None:
    folder = Path(tracer.__file__).parent / "schemas"
    schema = json.loads((folder / "kernel_unsupported.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
