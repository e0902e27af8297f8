"""The route on real releases: every hop against facts that people read in the sources by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests.releases import release_checkout
from tracer.errors import NameNotFound, NoRoute
from tracer.graph import Program
from tracer.model import Confidence, How, Language
from tracer.route import Route, Wanted, trace

FACTS: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "forward_routes.json").read_text())
# Between the releases with hand-read facts: every change of form in the history of the forward chain.
SPREAD = (
    "2.0.4",
    "2.1.0",
    "2.2.2",
    "2.3.0",
    "2.4.0.post1",
    "2.4.3.post1",
    "2.5.7",
    "2.6.3",
    "2.7.0.post2",
    "2.8.0.post2",
)
ENTRIES = ("flash_attn_func", "flash_attn_qkvpacked_func", "flash_attn_varlen_func", "flash_attn_with_kvcache")


@lru_cache(maxsize=4)
def program(version: str) -> Program:
    return Program(release_checkout(version))


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    program.cache_clear()


@lru_cache(maxsize=64)
def route(version: str, entry: str, to: str | None = None, wanted: Wanted | None = None) -> Route:
    return trace(program(version), entry, to, wanted)


@pytest.mark.parametrize("version", FACTS)
def test_every_hop_of_the_forward_is_where_a_reader_found_it(version: str) -> None:
    facts = FACTS[version]
    found = route(version, facts["entry"])
    assert [step.definition.name for step in found.steps][: len(facts["steps"])] == [
        step["name"] for step in facts["steps"]
    ]
    for step, fact in zip(found.steps, facts["steps"], strict=False):
        group = (step.definition, *step.alternatives)
        if "file" in fact:
            assert (step.definition.location.file, step.definition.location.line) == (fact["file"], fact["line"])
            assert not step.alternatives
        elif "definitions" in fact:
            assert len(group) == fact["definitions"]
            assert len({definition.location.file for definition in group}) == fact["files"]
        else:
            places = {d.name: [d.location.file, d.location.line] for d in group}
            assert places == fact["among"]


@pytest.mark.parametrize("version", FACTS)
def test_every_edge_carries_the_place_where_it_was_found(version: str) -> None:
    facts = FACTS[version]
    found = route(version, facts["entry"])
    sites = {name: tuple(place) for name, place in facts["sites"].items()}
    by_how = {edge.how: edge for edge in found.edges}

    def place(location: Any) -> tuple[str, int]:
        return location.file, location.line

    assert place(by_how[How.AUTOGRAD].call_site) == sites["autograd call"]
    launch = by_how[How.LAUNCH]
    assert place(launch.call_site) == sites["launch"]
    assert place(launch.through) == sites["kernel variable"]
    into_binding = next(edge for edge in found.edges if edge.target.startswith("binding:"))
    assert place(into_binding.call_site) == sites["extension call"]
    assert place(into_binding.through) == sites["extension import"]
    out_of_binding = next(edge for edge in found.edges if edge.source.startswith("binding:"))
    assert place(out_of_binding.through) == sites["extension name"]
    names = [step.definition.name for step in found.steps]
    assert place(found.edges[names.index("_flash_attn_forward") - 1].call_site) == sites["forward call"]
    assert place(found.edges[names.index("mha_fwd")].call_site) == sites["dispatcher call"]
    if "specialization call" in sites:
        assert place(by_how[How.SPECIALIZATION].call_site) == sites["specialization call"]
    kernel = next(step.definition for step in found.steps if step.definition.kind == "kernel")
    assert list(kernel.template_parameters) == facts["kernel_template_parameters"]


@pytest.mark.parametrize("version", [*FACTS, *SPREAD])
def test_no_gap_on_the_way(version: str) -> None:
    entries = [entry for entry in ENTRIES if entry in set(program(version).python.names())]
    entries = [FACTS["1.0.9"]["entry"]] if version.startswith("1.") else entries
    assert entries
    for entry in entries:
        found = route(version, entry)
        assert len(found.edges) == len(found.steps) - 1
        languages = [step.definition.language for step in found.steps]
        assert languages == sorted(languages, key=list(Language).index), "Python, binding, C++, CUDA, in this order"
        assert set(languages) == set(Language)
        assert all(edge.confidence is Confidence.EXACT for edge in found.edges[:8])
        # Consecutive steps are linked by their edge; the last two both hang on the function that does the work.
        for number, edge in enumerate(found.edges):
            before = found.steps[number]
            sources = {d.id for d in (before.definition, *before.alternatives)}
            work = next(step for step in found.steps if step.role.startswith("the work"))
            assert edge.source in sources or edge.source == work.definition.id
            assert edge.target == found.steps[number + 1].definition.id


@pytest.mark.parametrize("version", ["2.0.0.post1", "2.5.8", "2.8.3", *SPREAD])
def test_the_backward_ends_in_the_column_block(version: str) -> None:
    found = route(version, "FlashAttnFunc.backward")
    names = [step.definition.name for step in found.steps]
    assert names[0] == "backward" and found.steps[0].definition.qualified_name.endswith("FlashAttnFunc.backward")
    assert "mha_bwd" in names
    assert "compute_dq_dk_dv_1colblock" in names
    work = next(step for step in found.steps if step.role.startswith("the work"))
    assert work.definition.name == "compute_dq_dk_dv_1colblock"
    beside = {definition.name for branch in found.branches for definition in branch.definitions}
    assert "flash_bwd_dot_do_o_kernel" in beside, "D is computed by a kernel of its own before"


@pytest.mark.parametrize("version", ["2.5.8", "2.8.3"])
def test_split_kv_leaves_the_route_at_the_dispatcher(version: str) -> None:
    found = route(version, "flash_attn_func")
    branch = next(b for b in found.branches if b.definitions[-1].name == "flash_fwd_splitkv_kernel")
    assert found.steps[branch.step - 1].definition.name == "run_mha_fwd"
    assert branch.definitions[0].name == "run_mha_fwd_splitkv_dispatch"
    assert "num_splits" in branch.condition


def test_the_caller_narrows_the_alternatives() -> None:
    found = route("2.8.3", "flash_attn_func", None, Wanted(head_dim=100, dtype="bf16", causal=True))
    specialization = next(step for step in found.steps if step.definition.name == "run_mha_fwd_")
    assert specialization.definition.template_arguments == ("cutlass::bfloat16_t", "128", "true")
    assert not specialization.alternatives
    per_head_dim = next(step for step in found.steps if step.definition.name.startswith("run_mha_fwd_hdim"))
    assert per_head_dim.definition.name == "run_mha_fwd_hdim128"
    assert not per_head_dim.alternatives


def test_a_head_dimension_that_no_kernel_holds() -> None:
    with pytest.raises(NoRoute, match="head dimension 257 .*32, 64, 96, 128, 192, 256"):
        route("2.8.3", "flash_attn_func", None, Wanted(head_dim=257))


def test_from_any_function_to_any_other() -> None:
    found = route("2.8.3", "mha_fwd", "scale_apply_exp2")
    assert [step.definition.name for step in found.steps] == [
        "mha_fwd", "run_mha_fwd", "run_mha_fwd_", "run_mha_fwd_hdim32", "run_flash_fwd", "flash_fwd_kernel",
        "compute_attn", "compute_attn_1rowblock", "softmax_rescale_o", "scale_apply_exp2",
    ]  # fmt: skip


def test_an_end_that_is_not_reached() -> None:
    with pytest.raises(NoRoute, match=r"flash::mha_fwd to flash::mha_bwd \(csrc/flash_attn/flash_api.cpp:768\)"):
        route("2.8.3", "mha_fwd", "mha_bwd")


def test_names_that_do_not_exist_bring_the_nearest() -> None:
    with pytest.raises(NameNotFound, match="nearest: flash_attn_func"):
        route("2.8.3", "flash_atn_func")
    with pytest.raises(NameNotFound, match="nearest: compute_attn"):
        route("2.8.3", "flash_attn_func", "compute_atn")


def test_same_names_of_other_backends_stay_apart() -> None:
    found = route("2.8.3", "flash_attn_func")
    files = {step.definition.location.file for step in found.steps}
    assert not any(file.startswith(("csrc/flash_attn_ck", "hopper")) for file in files)
