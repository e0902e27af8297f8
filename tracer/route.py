"""The path from an entry to a kernel, step by step, with every alternative where dispatch branches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tracer.checkout import Checkout
from tracer.errors import NoRoute
from tracer.graph import Program, is_device
from tracer.model import Coverage, Definition, Diagnostic, Edge, How, Language, Location
from tracer.records import dataclass


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
        permalink: address of the checkout's root in the public repository, where known: ``{permalink}/{file}#L{line}``
            shows a place.
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of the alternatives at a dispatch the caller wants; None leaves a question open.

    Attributes:
        head_dim: head dimension of the call; the smallest kernel that holds it is meant.
        dtype: ``fp16`` or ``bf16``.
        causal: with or without the causal mask.
    """

    head_dim: int | None = None
    dtype: str | None = None
    causal: bool | None = None


DEFAULT_ENTRY = "flash_attn_func"
_DTYPE_WORDS = {"fp16": "half", "bf16": "bfloat16", "fp8": "e4m3"}


def trace(program: Program, entry: str = DEFAULT_ENTRY, to: str | None = None, wanted: Wanted | None = None) -> Route:
    """Follow a call from ``entry`` to the kernel that does the work, or to ``to``.

    Args:
        program: the checkout's call graph.
        entry: name of a function or method, Python or C++, simple or qualified.
        to: name of a function to end at; None ends at the softmax update of the attention kernel.
        wanted: which alternatives to take where dispatch branches.

    Raises:
        NameNotFound: no function has one of the names.
        NoRoute: both exist, but no chain of calls leads from one to the other, or no kernel fits ``wanted``.
    """
    return _Tracer(program, wanted or Wanted()).trace(entry, to)


@dataclass(frozen=True, slots=True)
class Way:
    """A route without anything beside it.

    Attributes:
        definitions: from the entry to the function that does a kernel's work.
        edges: one fewer.
    """

    definitions: tuple[Definition, ...]
    edges: tuple[Edge, ...]


def way_to_the_work(program: Program, entry: str | Definition) -> Way:
    """Return the way that :func:`trace` takes from an entry, or from one of its name, reading no more than it needs.

    Raises:
        NameNotFound: no function has the name.
        NoRoute: no kernel is reached.
    """
    tracer = _Tracer(program, Wanted())
    begin(program)
    start = program.find(entry) if isinstance(entry, str) else entry
    edges = tracer.to_the_work(start.id)
    return Way((start, *(program.definition(edge.target) for edge in edges)), tuple(edges))


def why_not(program: Program, start: Definition) -> str:
    """Say that no kernel is reached from a function, and what most likely stands in the way."""
    return _Tracer(program, Wanted()).why_not(start.id)


def branches_of(program: Program, way: Way) -> tuple[Branch, ...]:
    """Return the other ways that leave one for another kernel."""
    tracer = _Tracer(program, Wanted())
    return tracer.branches(tracer.steps([definition.id for definition in way.definitions], way.edges))


def identity(checkout: Checkout) -> Identity:
    """Return which checkout an answer is about."""
    # Links of a changed work tree would show other lines than were read.
    link = None if checkout.dirty else checkout.permalink(Location("file", 1))
    base = link.removesuffix("/file#L1") if link else None
    return Identity(checkout.flavour, checkout.version, checkout.commit, checkout.dirty, checkout.source, base)


def begin(program: Program) -> None:
    """Begin to read the extension that attention most likely lives in, in the background, down to its kernels."""
    extension = program.attention_extension()
    if extension is not None:
        program.source(extension, ahead=True)


class _Tracer:
    """One search. Functions are visited in source order, so that the plain case comes before its alternatives."""

    def __init__(self, program: Program, wanted: Wanted) -> None:
        self.program, self.wanted = program, wanted
        self._launched: set[str] = set()

    def trace(self, entry: str, to: str | None) -> Route:
        program = self.program
        begin(program)  # parses while Python is read
        start = program.find(entry)
        way = self.to_the_work(start.id) if to is None else self.to_name(start, to)
        edges = tuple(way)
        steps = self.steps([start.id, *(edge.target for edge in way)], way)
        branches = self.branches(steps) if to is None else ()
        if to is None:
            extra_steps, extra_edges = self.inside_the_work(steps[-1].definition)
            steps, edges = (*steps, *extra_steps), (*edges, *extra_edges)
        files = {step.definition.location.file for step in steps}
        return Route(
            identity(program.checkout),
            steps,
            edges,
            branches,
            program.coverage(dict.fromkeys(step.definition.id for step in steps)),
            program.diagnostics(files),
        )

    # -- searching ----------------------------------------------------------------------------------------------------
    def out_edges(self, id: str) -> tuple[Edge, ...]:
        """Return the edges to follow from a definition: calls and launches; a kernel's address is no step by itself."""
        edges = self.program.edges(id)
        launched = {edge.target for edge in edges if edge.how is How.LAUNCH}
        self._launched |= launched
        return tuple(e for e in edges if e.how is not How.KERNEL_POINTER or e.target not in launched)

    def does(self, id: str) -> frozenset[str]:
        """Return the primitives that a C++ function uses, itself or in anything that it reaches."""
        return self.program.cpp(id).primitives(id) if id.startswith("c++:") else frozenset()

    def is_kernel(self, id: str) -> bool:
        """Tell whether a definition is a kernel: a global function, or a function object that a library launches."""
        return id in self._launched or self.program.definition(id).kind == "kernel"

    def is_the_work(self, id: str) -> bool:
        """Tell whether a device function is where matrix products and the exponential meet.

        They meet in a function that reaches both while none of its callees does.
        """
        if not id.startswith("c++:") or not is_device(self.program.definition(id)):
            return False
        both = {"matrix product", "exponential"}
        return both <= self.does(id) and not any(both <= self.does(edge.target) for edge in self.program.edges(id))

    def to_the_work(self, start: str) -> list[Edge]:
        """Return the first way in source order from ``start`` to the function that does a kernel's work."""
        found = self.first_way(start, self.is_the_work)
        if found is None:
            raise NoRoute(self.why_not(start))
        return found

    def why_not(self, start: str) -> str:
        """Say that no kernel is reached, and what most likely stands in the way."""
        name = self.program.definition(start).qualified_name
        message = f"no attention kernel is reached from {name} in {self.program.where()}"
        diagnostics = self.program.diagnostics()
        unresolved = self.program.coverage([start]).unresolved
        if diagnostics:
            first = diagnostics[0]
            file = first.location.file
            place = f"{first.location}: " if file and not first.message.startswith(file) else ""
            more = f" (and {len(diagnostics) - 1} more)" if len(diagnostics) > 1 else ""
            return f"{message}; what could not be read comes first: {place}{first.message}{more}"
        if unresolved:
            message += f"; unresolved there: {unresolved[0].written} ({unresolved[0].reason})"
        return f"{message}; name another entry with --entry, or an end with --to"

    def first_way(self, start: str, is_end: Callable[[str], bool]) -> list[Edge] | None:
        """Depth-first search in source order, without recursion: a chain of calls can be long."""
        visited = {start}
        stack: list[tuple[str, list[Edge]]] = [(start, self.choices(start))]
        way: list[Edge] = []
        if is_end(start):
            return way
        while stack:
            _, remaining = stack[-1]
            if not remaining:
                stack.pop()
                if way:
                    way.pop()
                continue
            edge = remaining.pop(0)
            if edge.target in visited:
                continue
            visited.add(edge.target)
            way.append(edge)
            if is_end(edge.target):
                return way
            stack.append((edge.target, self.choices(edge.target)))
        return None

    def choices(self, id: str) -> list[Edge]:
        """Return the edges to try from a definition, in order, without what the caller does not want."""
        return self.narrowed(list(self.out_edges(id)))

    def to_name(self, start: Definition, to: str) -> list[Edge]:
        """Return the way to a function of a name: along the plain route as far as that leads towards it.

        The shortest way alone would often take a special case, because that has fewer steps than the plain one.
        """
        plain = self.first_way(start.id, self.is_the_work) or []
        for length in range(len(plain), -1, -1):
            way = self.shortest(plain[length - 1].target if length else start.id, to)
            if way is not None and (way or length):
                return [*plain[:length], *way]
        target = self.program.find(to)
        raise NoRoute(
            f"no chain of calls leads from {start.qualified_name} to {target.qualified_name} ({target.location}) in "
            f"{self.program.where()}; name another entry with --entry, or leave out --to"
        )

    def shortest(self, start: str, to: str) -> list[Edge] | None:
        """Return the shortest way to a function of a name; of equally short ones the first in source order."""
        last = re.split(r"::|\.", to)[-1]
        before: dict[str, Edge | None] = {start: None}
        waiting = [start]
        for id in waiting:
            definition = self.program.definition(id)
            if definition.name == last and _answers_to(definition, to):
                way: list[Edge] = []
                edge = before[id]
                while edge is not None:
                    way.append(edge)
                    edge = before[edge.source]
                return way[::-1]
            for edge in self.choices(id):
                if edge.target not in before:
                    before[edge.target] = edge
                    waiting.append(edge.target)
        return None

    # -- alternatives -------------------------------------------------------------------------------------------------
    def steps(self, ids: Sequence[str], edges: Sequence[Edge]) -> tuple[Step, ...]:
        """Fold the alternatives beside each step: what the previous step and its alternatives reach alike."""
        program = self.program
        first = program.definition(ids[0])
        steps = [Step(first, self.label(first, ()))]
        group = [ids[0]]
        for edge in edges:
            chosen = program.definition(edge.target)
            alike: dict[str, None] = {}
            program.prepare(group)
            for member in group:
                for other in self.choices(member):
                    definition = program.definition(other.target)
                    if _shape(definition) == _shape(chosen) and definition.language is chosen.language:
                        alike[other.target] = None
            group = [chosen.id, *(id for id in alike if id != chosen.id)]
            alternatives = tuple(program.definition(id) for id in group[1:])
            steps.append(Step(chosen, self.label(chosen, alternatives), alternatives, self.role(chosen)))
        return tuple(steps)

    def label(self, chosen: Definition, alternatives: Sequence[Definition]) -> str:
        """Name a group of alternatives by what they have in common."""
        if chosen.language is Language.PYTHON:
            return (
                chosen.qualified_name.rpartition(".")[2]
                if chosen.kind != "method"
                else ".".join(chosen.qualified_name.split(".")[-2:])
            )
        if chosen.language is Language.BINDING:
            return chosen.qualified_name
        short = chosen.qualified_name.partition("<")[0].split("::")
        name = "::".join(short[-2:]) if chosen.kind == "method" or self.is_member(chosen) else short[-1]
        if chosen.template_arguments:
            shown = self.parameters(chosen) if alternatives else chosen.template_arguments
            return f"{name}<{', '.join(shown)}>" if shown else name
        if alternatives:
            numbers = [re.search(r"\d+", definition.name) for definition in (chosen, *alternatives)]
            values = sorted(int(number.group()) for number in numbers if number)
            if values:
                return re.sub(r"\d+", f"{{{values[0]}…{values[-1]}}}", name, count=1)
        return name

    def is_member(self, definition: Definition) -> bool:
        """Tell whether a C++ definition is a member of a class."""
        return definition.id.startswith("c++:") and self.program.cpp(definition.id).is_member(definition.id)

    def parameters(self, specialization: Definition) -> tuple[str, ...]:
        """Return the parameter names of the template that a specialization belongs to."""
        return self.program.cpp(specialization.id).primary_parameters(specialization.id)

    def role(self, definition: Definition) -> str:
        """Say what a step is, where the source tells."""
        if self.is_kernel(definition.id):
            return "the kernel"
        return "the work of one thread block" if self.is_the_work(definition.id) else ""

    def narrowed(self, edges: list[Edge]) -> list[Edge]:
        """Drop the specializations and per-head-dim functions that the caller does not want."""
        wanted = self.wanted
        if wanted == Wanted():
            return edges
        kept = edges
        specializations = [e for e in edges if e.how is How.SPECIALIZATION]
        if specializations:
            fitting = self.fitting(specializations)
            kept = [e for e in edges if e.how is not How.SPECIALIZATION or e in fitting]
        if wanted.head_dim is not None:
            kept = self.fitting_names(kept, wanted.head_dim)
        return kept

    def fitting(self, edges: list[Edge]) -> list[Edge]:
        """Keep the specializations whose arguments fit."""
        rows = [(edge, self.program.definition(edge.target)) for edge in edges]
        wanted = self.wanted
        if wanted.dtype is not None:
            word = _DTYPE_WORDS[wanted.dtype]
            if any("half" in " ".join(d.template_arguments) for _, d in rows):
                rows = [(e, d) for e, d in rows if any(word in argument for argument in d.template_arguments)]
        if wanted.causal is not None:
            for position, parameter in enumerate(self.parameters(rows[0][1]) if rows else ()):
                if "causal" in parameter.lower():
                    value = "true" if wanted.causal else "false"
                    rows = [(e, d) for e, d in rows if d.template_arguments[position : position + 1] == (value,)]
        if wanted.head_dim is not None and rows:
            sizes = {int(a) for _, d in rows for a in d.template_arguments if a.isdigit()}
            size = min((size for size in sizes if size >= wanted.head_dim), default=None)
            if sizes and size is None:
                known = ", ".join(map(str, sorted(sizes)))
                raise NoRoute(
                    f"no kernel holds head dimension {wanted.head_dim} in {self.program.where()}; there are {known}"
                )
            rows = [(e, d) for e, d in rows if not sizes or str(size) in d.template_arguments]
        return [edge for edge, _ in rows]

    def fitting_names(self, edges: list[Edge], head_dim: int) -> list[Edge]:
        """Of functions that differ only by a number in their names, keep the one for the head dimension."""
        groups: dict[str, set[int]] = {}
        for edge in edges:
            definition = self.program.definition(edge.target)
            number = re.search(r"\d+", definition.name)
            if number:
                groups.setdefault(_shape(definition), set()).add(int(number.group()))
        kept = []
        for edge in edges:
            definition = self.program.definition(edge.target)
            sizes = groups.get(_shape(definition), set())
            if len(sizes) > 1:
                size = min((size for size in sizes if size >= head_dim), default=None)
                if not re.search(rf"(?<!\d){size}(?!\d)", definition.name):
                    continue
            kept.append(edge)
        return kept

    # -- beside and below the route -----------------------------------------------------------------------------------
    def branches(self, steps: Sequence[Step]) -> tuple[Branch, ...]:
        """Return the ways that leave the route for another kernel."""
        program = self.program
        kernels = {step.definition.id for step in steps if self.is_kernel(step.definition.id)}
        if not kernels:
            return ()
        found: dict[str, Branch] = {}
        on_route = {step.definition.id for step in steps} | {a.id for step in steps for a in step.alternatives}
        for number, step in enumerate(steps, 1):
            if not step.definition.id.startswith("c++:") or is_device(step.definition):
                continue
            for edge in self.choices(step.definition.id):
                if edge.target in on_route:
                    continue
                way = self.first_way(edge.target, self.is_kernel)
                if way is None:
                    continue
                ids = [edge.target, *(e.target for e in way)]
                kernel = ids[-1]
                if kernel in kernels or kernel in found:
                    continue
                condition = program.cpp(step.definition.id).conditions(step.definition.id).get(edge.call_site, "")
                definitions = tuple(program.definition(id) for id in ids)
                found[kernel] = Branch(number, definitions, condition, edge.call_site)
        return tuple(found.values())

    def inside_the_work(self, work: Definition) -> tuple[tuple[Step, ...], tuple[Edge, ...]]:
        """Return the softmax update and the epilogue that the function doing the work calls, where it calls any."""
        program = self.program
        edges = [edge for edge in program.edges(work.id) if edge.target.startswith("c++:")]
        exponential = [edge for edge in edges if "exponential" in self.does(edge.target)]
        online = [edge for edge in exponential if "maximum" in self.does(edge.target)]
        logarithm = [edge for edge in edges if "logarithm" in self.does(edge.target) and edge not in exponential]
        chosen: list[tuple[Edge, str]] = []
        if online:
            chosen.append((online[0], "the online-softmax update"))
        elif exponential:
            chosen.append((exponential[0], "the exponential of the softmax"))
        if logarithm:
            chosen.append((logarithm[0], "the epilogue: normalises, takes the logarithm"))
        steps = []
        for edge, role in chosen:
            definition = program.definition(edge.target)
            steps.append(Step(definition, self.label(definition, ()), (), role))
        return tuple(steps), tuple(edge for edge, _ in chosen)


def _answers_to(definition: Definition, name: str) -> bool:
    """Tell whether a person can mean a definition by a name, simple or qualified in either language's way."""
    separator = "." if definition.language is Language.PYTHON else "::"
    plain = re.sub(r"<.*", "", definition.qualified_name)
    written = name.replace("::", separator) if "::" in name else name
    return f"{separator}{plain}".endswith(f"{separator}{written}")


def _shape(definition: Definition) -> str:
    """Return what the names of alternatives have in common: the name with its numbers blanked."""
    return re.sub(r"\d+", "#", definition.name)
