"""A call graph of our own in the shape of a real one: fourteen steps, folded alternatives, neighbours on every side."""

from __future__ import annotations

import networkx

from tracer.model import (
    CallSite,
    Confidence,
    Coverage,
    Definition,
    Diagnostic,
    Edge,
    How,
    Language,
    Location,
    Outcome,
)
from tracer.route import Branch, Identity, Route, Step

INTERFACE = "flash_attn/flash_attn_interface.py"
API = "csrc/flash_attn/flash_api.cpp"
LAUNCH = "csrc/flash_attn/src/flash_fwd_launch_template.h"
KERNEL = "csrc/flash_attn/src/flash_fwd_kernel.h"
SOFTMAX = "csrc/flash_attn/src/softmax.h"
UTILS = "csrc/flash_attn/src/utils.h"
MASK = "csrc/flash_attn/src/mask.h"
BLOCK = "csrc/flash_attn/src/block_info.h"


def definition(
    name: str,
    language: Language,
    kind: str,
    file: str,
    line: int,
    qualified: str = "",
    arguments: tuple[str, ...] = (),
) -> Definition:
    qualified = qualified or name
    return Definition(
        id=f"{language.value}:{file}:{line}:{qualified}",
        name=name,
        qualified_name=qualified,
        language=language,
        kind=kind,
        location=Location(file, line, 5, line + 20),
        template_arguments=arguments,
    )


def edge(
    source: Definition,
    target: Definition,
    line: int,
    how: How = How.CALL,
    confidence: Confidence = Confidence.EXACT,
    through: Location | None = None,
    written: str = "",
) -> Edge:
    site = Location(source.location.file, line, 9)
    return Edge(source.id, target.id, how, confidence, site, through, written or target.name)


PY, BIND, CPP, CUDA = Language.PYTHON, Language.BINDING, Language.CPP, Language.CUDA
HEAD_DIMS = (32, 64, 96, 128, 192, 256)

entry = definition("flash_attn_func", PY, "function", INTERFACE, 1135)
forward = definition("forward", PY, "method", INTERFACE, 809, "FlashAttnFunc.forward")
wrapper = definition("_flash_attn_forward", PY, "function", INTERFACE, 77)
fwd = definition("fwd", BIND, "binding", API, 1480, "flash_attn_2_cuda.fwd")
mha_fwd = definition("mha_fwd", CPP, "function", API, 351)
run_mha_fwd = definition("run_mha_fwd", CPP, "function", API, 243)
specializations = tuple(
    definition(
        "run_mha_fwd_",
        CPP,
        "specialization",
        f"csrc/flash_attn/src/flash_fwd_hdim{d}_{short}{'_causal' if causal == 'true' else ''}_sm80.cu",
        11,
        f"run_mha_fwd_<{dtype}, {d}, {causal}>",
        (dtype, str(d), causal),
    )
    for dtype, short in (("cutlass::half_t", "fp16"), ("cutlass::bfloat16_t", "bf16"))
    for d in HEAD_DIMS
    for causal in ("false", "true")
)
per_head_dim = tuple(
    definition(f"run_mha_fwd_hdim{d}", CPP, "function template", LAUNCH, line)
    for d, line in zip(HEAD_DIMS, (173, 181, 201, 225, 260, 277), strict=True)
)
run_flash_fwd = definition("run_flash_fwd", CPP, "function template", LAUNCH, 55)
kernel = definition("flash_fwd_kernel", CUDA, "kernel", LAUNCH, 32)
compute_attn = definition("compute_attn", CUDA, "device function", KERNEL, 1076)
rowblock = definition("compute_attn_1rowblock", CUDA, "device function", KERNEL, 52)
rescale = definition("softmax_rescale_o", CUDA, "method", SOFTMAX, 137, "flash::Softmax::softmax_rescale_o")
normalize = definition("normalize_softmax_lse", CUDA, "method", SOFTMAX, 170, "flash::Softmax::normalize_softmax_lse")

split_dispatch = definition("run_mha_fwd_splitkv_dispatch", CPP, "function template", LAUNCH, 164)
run_split = definition("run_flash_splitkv_fwd", CPP, "function template", LAUNCH, 104)
split_kernel = definition("flash_fwd_splitkv_kernel", CUDA, "kernel", LAUNCH, 41)

STEPS = (
    Step(entry, "flash_attn_func"),
    Step(forward, "FlashAttnFunc.forward"),
    Step(wrapper, "_flash_attn_forward"),
    Step(fwd, "flash_attn_2_cuda.fwd"),
    Step(mha_fwd, "mha_fwd"),
    Step(run_mha_fwd, "run_mha_fwd"),
    Step(specializations[0], "run_mha_fwd_<T, d, Is_causal>", specializations[1:]),
    Step(per_head_dim[0], "run_mha_fwd_hdim{32…256}", per_head_dim[1:]),
    Step(run_flash_fwd, "run_flash_fwd"),
    Step(kernel, "flash_fwd_kernel", role="the kernel"),
    Step(compute_attn, "compute_attn"),
    Step(rowblock, "compute_attn_1rowblock"),
    Step(rescale, "Softmax::softmax_rescale_o", role="the online-softmax update"),
    Step(normalize, "Softmax::normalize_softmax_lse", role="the epilogue"),
)

EDGES = (
    edge(entry, forward, 1196, How.AUTOGRAD, written="FlashAttnFunc.apply"),
    edge(forward, wrapper, 834, How.CUSTOM_OP, written="flash_attn::_flash_attn_forward"),
    edge(wrapper, fwd, 91, How.BINDING, through=Location(INTERFACE, 15), written="flash_attn_gpu.fwd"),
    Edge(fwd.id, mha_fwd.id, How.BINDING, Confidence.EXACT, Location(API, 1480), Location("setup.py", 228), "mha_fwd"),
    edge(mha_fwd, run_mha_fwd, 499),
    edge(run_mha_fwd, specializations[0], 248, How.SPECIALIZATION),
    edge(specializations[0], per_head_dim[0], 12),
    edge(per_head_dim[0], run_flash_fwd, 176),
    edge(run_flash_fwd, kernel, 91, How.LAUNCH, through=Location(LAUNCH, 79), written="kernel"),
    edge(kernel, compute_attn, 34),
    edge(compute_attn, rowblock, 1087),
    edge(rowblock, rescale, 340, How.MEMBER),
    edge(rowblock, normalize, 433, How.MEMBER),
)

IDENTITY = Identity(
    flavour="flash-attention",
    version="2.8.3",
    commit="060c9188beec3a8b62b33a3bfa6d5d2d44975fab",
    dirty=False,
    source="pypi",
    permalink="https://example.org/flash-attention/blob/v2.8.3/",
)

ROUTE = Route(
    checkout=IDENTITY,
    steps=STEPS,
    edges=EDGES,
    branches=(Branch(6, (split_dispatch, run_split, split_kernel), "params.num_splits > 1", Location(API, 250)),),
    coverage=Coverage(
        call_sites=382,
        resolved=101,
        external=279,
        unresolved=(
            CallSite(mha_fwd.id, "round_multiple", Location(API, 417, 12), Outcome.UNRESOLVED, (), "a local variable"),
            CallSite(rowblock.id, "gemm_op", Location(KERNEL, 319, 8), Outcome.UNRESOLVED, (), "two overloads fit"),
        ),
    ),
    diagnostics=(
        Diagnostic(Location(KERNEL, 12), "unknown type name 'int4'"),
        Diagnostic(Location(KERNEL, 15), "unknown type name 'int4'"),
        Diagnostic(Location(UTILS, 40), "no member named 'x' in 'Any'"),
    ),
)


def _neighbours() -> list[tuple[Definition, list[tuple[Definition, int, How]]]]:
    """Sixty definitions around the route, each with those that call it."""
    found: list[tuple[Definition, list[tuple[Definition, int, How]]]] = []

    def add(target: Definition, *callers: tuple[Definition, int], how: How = How.CALL) -> Definition:
        found.append((target, [(caller, line, how) for caller, line in callers]))
        return target

    add(definition("maybe_contiguous", PY, "function", INTERFACE, 21), (wrapper, 90))
    for number, name in enumerate(("qkvpacked", "kvpacked", "varlen", "varlen_qkvpacked", "varlen_kvpacked")):
        other = add(definition("forward", PY, "method", INTERFACE, 450 + 90 * number, f"FlashAttn{name}Func.forward"))
        found.append((wrapper, [(other, 470 + 90 * number, How.CUSTOM_OP)]))
    module = add(definition("forward", PY, "method", "flash_attn/modules/mha.py", 81, "FlashSelfAttention.forward"))
    found.append((entry, [(module, 120, How.CALL)]))
    bert = add(definition("forward", PY, "method", "flash_attn/models/bert.py", 210, "BertSelfAttention.forward"))
    found.append((module, [(bert, 230, How.MEMBER)]))
    for number, name in enumerate(
        ("set_params_fprop", "set_params_splitkv", "set_params_alibi", "num_splits_heuristic")
    ):
        helper = definition(name, CPP, "function", API, 24 + 75 * number)
        add(helper, (mha_fwd, 470 + 4 * number))
        if name == "num_splits_heuristic":
            found.append((helper, [(found[-2][0], 317, How.CALL)]))
    add(definition("get_num_sm", CPP, "function", "csrc/flash_attn/src/hardware_info.h", 36), (mha_fwd, 398))
    compute_capability = definition(
        "get_compute_capability", CPP, "function", "csrc/flash_attn/src/hardware_info.h", 22
    )
    add(compute_capability, (mha_fwd, 370), (per_head_dim[2], 203), (per_head_dim[3], 227))
    varlen = add(definition("mha_varlen_fwd", CPP, "function", API, 513))
    found.append((run_mha_fwd, [(varlen, 750, How.CALL)]))
    kvcache = add(definition("mha_fwd_kvcache", CPP, "function", API, 1208))
    found.append((run_mha_fwd, [(kvcache, 1460, How.CALL)]))
    for number in range(12):
        add(
            definition(f"copy_{'abcdefghijkl'[number]}", CUDA, "device function", UTILS, 100 + 9 * number),
            (rowblock, 150 + 8 * number),
        )
    gemm = definition("gemm", CUDA, "device function", UTILS, 140)
    add(gemm, (rowblock, 319), (rowblock, 367), (rowblock, 395))
    add(definition("gemm_rs", CUDA, "device function", UTILS, 170), (rowblock, 368), (rowblock, 398))
    convert = definition("convert_type", CUDA, "device function", UTILS, 210)
    add(convert, (rowblock, 347), (rowblock, 430))
    add(
        definition("apply_mask", CUDA, "method", MASK, 110, "flash::Mask::apply_mask"),
        (rowblock, 330),
        (rowblock, 388),
        how=How.MEMBER,
    )
    add(
        definition(
            "apply_dropout", CUDA, "method", "csrc/flash_attn/src/dropout.h", 30, "flash::Dropout::apply_dropout"
        ),
        (rowblock, 355),
        how=How.MEMBER,
    )
    add(
        definition("BlockInfo", CUDA, "constructor", BLOCK, 14, "flash::BlockInfo::BlockInfo"),
        (rowblock, 75),
        how=How.CONSTRUCTOR,
    )
    add(
        definition("q_offset", CUDA, "method", BLOCK, 28, "flash::BlockInfo::q_offset"), (rowblock, 120), how=How.MEMBER
    )
    add(
        definition("k_offset", CUDA, "method", BLOCK, 33, "flash::BlockInfo::k_offset"),
        (rowblock, 125),
        (rowblock, 130),
        how=How.MEMBER,
    )
    reduce_max = add(definition("reduce_max", CUDA, "device function", SOFTMAX, 50), (rescale, 141))
    reduce_sum = add(definition("reduce_sum", CUDA, "device function", SOFTMAX, 56), (rescale, 165), (normalize, 172))
    add(definition("scale_apply_exp2", CUDA, "device function", SOFTMAX, 67), (rescale, 163))
    reduce_ = add(definition("reduce_", CUDA, "device function", SOFTMAX, 42), (reduce_max, 51), (reduce_sum, 58))
    add(definition("thread_reduce_", CUDA, "device function", SOFTMAX, 24), (reduce_, 44))
    allreduce = add(definition("quad_allreduce_", CUDA, "device function", SOFTMAX, 34), (reduce_, 45))
    for size, line in ((8, 90), (4, 96), (2, 102)):
        add(
            definition("run", CUDA, "method", UTILS, line, f"flash::Allreduce<{size}>::run", (str(size),)),
            (allreduce, 38),
            how=How.MEMBER,
        )
    add(split_dispatch, (run_mha_fwd, 250))
    add(run_split, (split_dispatch, 168))
    add(split_kernel, (run_split, 128), how=How.LAUNCH)
    add(definition("flash_fwd_splitkv_combine_kernel", CUDA, "kernel", LAUNCH, 49), (run_split, 145), how=How.LAUNCH)
    splitkv = definition("compute_attn_splitkv", CUDA, "device function", KERNEL, 1101)
    add(splitkv, (split_kernel, 43))
    rowblock_split = definition("compute_attn_1rowblock_splitkv", CUDA, "device function", KERNEL, 499)
    add(rowblock_split, (splitkv, 1120))
    found.append((rescale, [(rowblock_split, 900, How.MEMBER), (rowblock_split, 940, How.MEMBER)]))
    found.append((normalize, [(rowblock_split, 980, How.MEMBER)]))
    found.append((gemm, [(rowblock_split, 850, How.CALL)]))
    return found


def graph() -> networkx.MultiDiGraph[str]:
    """Build the graph: the route with all its alternatives, and what stands around it."""
    made: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    definitions = {item.id: item for step in STEPS for item in (step.definition, *step.alternatives)}
    edges = list(EDGES)
    edges += [edge(run_mha_fwd, item, 248, How.SPECIALIZATION) for item in specializations[1:]]
    for item in specializations[1:]:
        d = int(item.template_arguments[1])
        edges.append(edge(item, per_head_dim[HEAD_DIMS.index(d)], 12))
    edges += [edge(item, run_flash_fwd, item.location.line + 5) for item in per_head_dim[1:]]
    edges += [edge(item, run_flash_fwd, item.location.line + 8) for item in per_head_dim]
    for target, callers in _neighbours():
        definitions[target.id] = target
        for caller, line, how in callers:
            definitions[caller.id] = caller
            edges.append(edge(caller, target, line, how))
    for item in definitions.values():
        made.add_node(item.id, definition=item)
    for link in edges:
        made.add_edge(link.source, link.target, edge=link)
    return made
