"""The path from an entry to a kernel, step by step, with every alternative where dispatch branches."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.model import Coverage, Definition, Diagnostic, Edge, Location


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a route.

    Attributes:
        definition: what the call is in.
        label: what to call the step: the name, or for a folded group ``run_mha_fwd_<T, d, Is_causal>``.
        alternatives: the other definitions that the previous step can reach here in place of this one.
        role: what happens here, in a few words, where the source tells: ``the kernel``, ``the online-softmax update``.
    """

    definition: Definition
    label: str
    alternatives: tuple[Definition, ...] = ()
    role: str = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """Another way that leaves the route: from ``step`` over ``definitions`` to another kernel.

    Attributes:
        step: 1-based number of the step that it leaves.
        definitions: the steps of the other way, the last one being its kernel.
        condition: the condition at the branch as written in the source, shortened; empty where there is none.
        call_site: where the other way is taken.
    """

    step: int
    definitions: tuple[Definition, ...]
    condition: str
    call_site: Location


@dataclass(frozen=True, slots=True)
class Identity:
    """Which checkout an answer is about.

    Attributes:
        flavour: ``flash-attention``, ``vllm-flash-attention``, ….
        version: version of the package, from its files.
        commit: 40 hex digits, where known.
        dirty: the work tree differs from the commit.
        source: ``folder``, ``git`` or ``pypi``.
        permalink: base address that a file and a line can be appended to as ``{file}#L{line}``, where known.
    """

    flavour: str
    version: str | None
    commit: str | None
    dirty: bool
    source: str
    permalink: str | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """The answer to *by which steps does a call get from A to B*.

    Attributes:
        checkout: what was read.
        steps: the route; step k reaches step k+1 through ``edges[k]``.
        edges: one fewer than steps.
        branches: other ways that leave the route.
        coverage: call sites of the functions on the route.
        diagnostics: what the readers could not make full sense of in the files on the route.
    """

    checkout: Identity
    steps: tuple[Step, ...]
    edges: tuple[Edge, ...]
    branches: tuple[Branch, ...]
    coverage: Coverage
    diagnostics: tuple[Diagnostic, ...] = ()
