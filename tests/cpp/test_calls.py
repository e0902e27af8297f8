"""Where calls go that the compiler does not name: one case per folder of ``tests/cases/05N-cpp-…``.

A case is the folder of a small extension's sources; what lies in ``shared`` there, and ``setup.py``, stands in the
root of the checkout. ``expected.json`` was written by reading the sources: ``calls`` has, by
function, the call sites as ``line written -> how confidence callee file:line via file:line``, those into libraries only
where the case is about them; ``bindings`` has each name offered to Python, in the order in which they count.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tracer.checkout import open_checkout
from tracer.cpp import Binding, CppSource, instantiations
from tracer.cpp.sources import plan_units
from tracer.graph import Program
from tracer.model import CallSite, Confidence, How, Location, Outcome
from tracer.route import trace

CASES = sorted((Path(__file__).parents[1] / "cases").glob("05*-cpp-*"))


def place(location: Location) -> str:
    return f"{location.file.removeprefix('csrc/tiny/')}:{location.line}"


def site_text(source: CppSource, site: CallSite) -> str:
    at = f"{site.location.line} {site.written}"
    if site.outcome is Outcome.UNRESOLVED:
        return f"{at} -> unresolved: {site.reason}"
    if site.outcome is Outcome.EXTERNAL:
        return f"{at} -> external"
    targets = []
    for target in site.targets:
        callee = source.definition(target.id)
        name = re.sub(r"<.*", "", callee.qualified_name).removeprefix("tiny::")
        via = f" via {place(target.through)}" if target.through else ""
        targets.append(f"{target.how.value} {target.confidence.value} {name} {place(callee.location)}{via}")
    return f"{at} -> {' | '.join(targets)}"


def calls_of(source: CppSource, name: str, about: list[str]) -> list[str]:
    """Return the call sites of the function that a case calls ``name`` or ``name file``; of several, of all."""
    name, _, file = name.partition(" ")
    sites: list[CallSite] = []
    for definition in source.definitions():
        plain = re.sub(r"<.*", "", definition.qualified_name).removeprefix("tiny::")
        if plain == name and place(definition.location).startswith(file):
            sites += source.call_sites(definition.id)
    # Sites that lead into a library are told only where a case says so.
    written = {text.partition(" ->")[0] for text in about if text.endswith("external")}
    kept = [s for s in sites if s.outcome is not Outcome.EXTERNAL or f"{s.location.line} {s.written}" in written]
    return [site_text(source, site) for site in kept]


def binding_text(source: CppSource, binding: Binding) -> str:
    functions = [source.definition(target.id) for target in binding.targets]
    behind = " | ".join(f"{function.name} {place(function.location)}" for function in functions)
    return f"{binding.definition.qualified_name} {place(binding.definition.location)} -> {behind}"


@contextmanager
def case(folder: Path, checkout_with: Callable[..., Path]) -> Iterator[Program]:
    """Open a case as a checkout of its own."""
    files: dict[str, str | None] = {"csrc/tiny/api.cpp": "\n"}
    for path in folder.rglob("*"):
        if path.suffix in (".h", ".cpp", ".cu"):
            name = path.relative_to(folder).as_posix()
            files[name if name.startswith("shared/") else f"csrc/tiny/{name}"] = path.read_text()
    if (folder / "setup.py").exists():
        files["setup.py"] = (folder / "setup.py").read_text()
    with Program(open_checkout(str(checkout_with(files))), cache=False) as program:
        yield program


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_case(folder: Path, checkout_with: Callable[..., Path]) -> None:
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    assert (folder / "README").read_text().strip()
    with case(folder, checkout_with) as program:
        extension = program.extensions[0]
        source = program.source(extension)
        assert source.diagnostics == ()
        found: dict[str, Any] = {}
        if "bindings" in expected:
            found["bindings"] = [binding_text(source, binding) for binding in program.bindings(extension)]
        places = [(definition.name, definition.location) for definition in source.definitions()]
        assert len(places) == len(set(places))
        found["calls"] = {name: calls_of(source, name, about) for name, about in expected["calls"].items()}
    assert found["calls"] == expected["calls"]
    assert found == expected


def test_there_are_cases() -> None:
    assert len(CASES) >= 8


# -- checkouts that are no release: facts that people read in their sources --------------------------------------------
def checkout_of(variable: str, commit: str) -> str:
    """Return the checkout that an environment variable names; the test skips where it names none."""
    if not os.environ.get(variable):
        pytest.skip(f"{variable} names no checkout of commit {commit[:12]}")
    return os.environ[variable]


def test_the_route_through_flash_attention_3() -> None:
    spec = checkout_of("FLASHTRACER_MAIN", "0251105a2fb19d2957484b7f023cd8c115286ced")
    with Program(open_checkout(spec), cache=False) as program:
        route = trace(program, "hopper.flash_attn_interface.flash_attn_func")
        steps = [(step.definition.name, str(step.definition.location)) for step in route.steps]
        bindings = [str(d.location) for d in (route.steps[3].definition, *route.steps[3].alternatives)]
        kernels = {str(d.location) for d in (route.steps[9].definition, *route.steps[9].alternatives)}
        loops = {str(d.location) for d in (route.steps[10].definition, *route.steps[10].alternatives)}
        constexpr = next(d for d in program.cpp_named("run_mha_fwd_constexpr") if d.location.line == 256)
        stable = next(d for d in program.cpp_named("mha_fwd") if d.location.file.endswith("flash_api_stable.cpp"))
        of_stable = {program.definition(e.target).location.file for e in program.edges(stable.id)}
    assert steps == [
        ("flash_attn_func", "hopper/flash_attn_interface.py:809"),
        ("forward", "hopper/flash_attn_interface.py:555"),
        ("_flash_attn_forward", "hopper/flash_attn_interface.py:60"),
        ("fwd", "hopper/flash_api.cpp:1765"),
        ("mha_fwd", "hopper/flash_api.cpp:673"),
        ("run_mha_fwd", "hopper/flash_api.cpp:367"),
        ("run_mha_fwd_constexpr", "hopper/flash_api.cpp:256"),
        ("run_mha_fwd_", "hopper/flash_fwd_launch_template.h:202"),
        ("run_flash_fwd", "hopper/flash_fwd_launch_template.h:31"),
        ("operator()", "hopper/flash_fwd_kernel_sm90.h:179"),
        ("mma", "hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp:955"),
        ("max_get_scale", "hopper/softmax.h:102"),
        ("finalize", "hopper/softmax.h:137"),
    ]
    assert constexpr.location.file == "hopper/flash_api.cpp"
    assert [file.rpartition(":")[0] for file in bindings] == ["hopper/flash_api.cpp", "hopper/flash_api_stable.cpp"]
    assert kernels == {"hopper/flash_fwd_kernel_sm90.h:179", "hopper/flash_fwd_kernel_sm80.h:148"}
    assert loops == {"hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp:955", "hopper/mainloop_fwd_sm80.hpp:309"}
    assert "hopper/flash_api.cpp" not in of_stable
    launch = next(edge for edge in route.edges if edge.how is How.LAUNCH)
    assert launch.confidence is Confidence.AMBIGUOUS
    assert str(launch.through) == "hopper/flash_fwd_launch_template.h:77"
    assert route.coverage.unresolved == ()


def test_the_loop_of_flash_attention_3_reaches_the_softmax() -> None:
    spec = checkout_of("FLASHTRACER_MAIN", "0251105a2fb19d2957484b7f023cd8c115286ced")
    with Program(open_checkout(spec), cache=False) as program:
        extension = next(e for e in program.extensions if e.package_dir == "hopper")
        source = program.source(extension)
        loop = next(d for d in source.definitions() if d.name == "mma" and d.location.line == 955)
        sites = source.call_sites(loop.id)
        reached = {
            (site.location.line, source.definition(t.id).name, str(source.definition(t.id).location), t.confidence)
            for site in sites
            for t in site.targets
            if "softmax" in site.written or "BlockMN" in site.written
        }
    softmax = {name: line for name, line in [("max_get_scale", 102), ("online_softmax", 127), ("rescale_o", 157)]}
    for line, name in [(1152, "max_get_scale"), (1155, "online_softmax"), (1178, "rescale_o")]:
        assert (line, name, f"hopper/softmax.h:{softmax[name]}", Confidence.INFERRED) in reached
    assert (1242, "finalize", "hopper/softmax.h:137", Confidence.INFERRED) in reached
    assert (977, "get_n_block_min_max", "hopper/block.h:14", Confidence.EXACT) in reached
    assert [site.written for site in sites if site.outcome is Outcome.UNRESOLVED] == []


def test_the_route_through_the_fork_of_vllm() -> None:
    spec = checkout_of("FLASHTRACER_VLLM", "617264c1c7955c9e84817654ebeedff069f3c5f1")
    with Program(open_checkout(spec), cache=False) as program:
        route = trace(program, "vllm_flash_attn.flash_attn_interface.flash_attn_varlen_func")
        steps = [(step.definition.name, str(step.definition.location)) for step in route.steps]
        names = {
            extension.name: {b.definition.qualified_name for b in program.bindings(extension)}
            for extension in program.extensions
            if extension.name.startswith("_vllm")
        }
        bound = {
            (program.definition(t.id).name, str(program.definition(t.id).location))
            for extension in program.extensions
            if extension.name.startswith("_vllm")
            for binding in program.bindings(extension)
            for t in binding.targets
        }
    assert steps[:4] == [
        ("flash_attn_varlen_func", "vllm_flash_attn/flash_attn_interface.py:136"),
        ("varlen_fwd", "csrc/flash_attn/flash_api_torch_lib.cpp:145"),
        ("mha_varlen_fwd", "csrc/flash_attn/flash_api.cpp:563"),
        ("run_mha_fwd", "csrc/flash_attn/flash_api.cpp:287"),
    ]
    assert steps[6:] == [
        ("run_flash_fwd", "csrc/flash_attn/src/flash_fwd_launch_template.h:55"),
        ("flash_fwd_kernel", "csrc/flash_attn/src/flash_fwd_launch_template.h:32"),
        ("compute_attn", "csrc/flash_attn/src/flash_fwd_kernel.h:1098"),
        ("compute_attn_1rowblock", "csrc/flash_attn/src/flash_fwd_kernel.h:55"),
        ("softmax_rescale_o", "csrc/flash_attn/src/softmax.h:137"),
        ("normalize_softmax_lse", "csrc/flash_attn/src/softmax.h:170"),
    ]
    assert names == {
        "_vllm_fa2_C": {f"_vllm_fa2_C::{n}" for n in ("varlen_fwd", "fwd_kvcache", "fwd_sparse", "varlen_fwd_sparse")},
        "_vllm_fa3_C": {"_vllm_fa3_C::fwd", "_vllm_fa3_C::get_scheduler_metadata"},
    }
    assert ("mha_fwd_stable", "hopper/flash_api_torch_lib.cpp:123") in bound
    assert "mha_fwd" not in {name for name, _ in bound}, "the second generation's is defined, and offered to nobody"
    assert route.coverage.unresolved == ()


# -- explicit instantiations -------------------------------------------------------------------------------------------
INSTANTIATIONS = """
template <int N> void run(Params &params) {}
template void run<64>(Params &params);
  template void run<kernels::Traits<128, 2>>(
      Params &params);
// template void run<1>(Params &params);
extern template void run<32>(Params &params);
template struct Traits<64>;
#define BOTH(N) \\
  template void run<N>(Params &params); \\
  template void again<N>(Params &params);
template <> void run<96>(Params &params) {}
"""


def test_explicit_instantiations_are_read_and_kept_from_the_parser() -> None:
    found = [(name, arguments) for name, arguments, _ in instantiations.read(INSTANTIATIONS)]
    assert found[:2] == [("run", ("64",)), ("run", ("kernels::Traits<128, 2>",))]
    offsets = [offset for _, _, offset in instantiations.read(INSTANTIATIONS)]
    assert all(INSTANTIATIONS[offset:].startswith(name) for (name, _), offset in zip(found, offsets, strict=True))
    shown = instantiations.without(INSTANTIATIONS)
    assert shown is not None
    assert [i for i, line in enumerate(shown.splitlines()) if not line.strip()] == [0, 2, 3, 4]
    assert [len(line) for line in shown.splitlines()] == [len(line) for line in INSTANTIATIONS.splitlines()]
    assert instantiations.without("template <int N> void run() {}\n") is None


def test_positions_behind_an_instantiation_stay_true(checkout_with: Callable[..., Path]) -> None:
    files = {
        "csrc/tiny/kernel.h": "#pragma once\ntemplate <int N> void run(int n) {}\n",
        "csrc/tiny/kernel.cu": '#include "kernel.h"\n'
        "template void run</* größer */ 64>(int); void behind() { run<8>(1); }\n",
    }
    with Program(open_checkout(str(checkout_with(files))), cache=False) as program:
        plans = plan_units(program.checkout, program.extensions[0])
        assert [file for plan in plans for file, _ in plan.edited] == ["csrc/tiny/kernel.cu"]
        source = program.source(program.extensions[0])
        behind = next(d for d in source.definitions() if d.name == "behind")
        run = next(d for d in source.definitions() if d.name == "run")
        assert (behind.location.line, behind.location.column) == (2, 47)
        assert [source.definition(t.id).name for site in source.call_sites(behind.id) for t in site.targets] == ["run"]
        assert [arguments for arguments, _ in source.instantiations(run.id)] == [("64",)]
