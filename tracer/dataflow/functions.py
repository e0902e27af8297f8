"""Which device functions of a checkout are followed: found by the route and by what they do, never by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from weakref import WeakKeyDictionary

from tracer.cpp.source import CppSource
from tracer.errors import NameNotFound, NoRoute
from tracer.graph import Program, is_device
from tracer.model import Definition, How
from tracer.records import dataclass
from tracer.route import DEFAULT_ENTRY, Way, branches_of, way_to_the_work, why_not

FORWARD, SPLIT, COMBINE, BACKWARD, ROW_SUMS = "forward", "split", "combine", "backward", "row sums"
_PRODUCT, _EXPONENTIAL = "matrix product", "exponential"


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """One device function to follow.

    Attributes:
        role: ``forward``, ``split`` for one range of keys, ``combine`` for putting ranges together, ``backward``,
            ``row sums``.
        definition: the function.
        kernel: the kernel that it is the work of.
        source: the C++ side that defines it.
        flags: the template parameters that the kernel gives a literal for, as one of the backward's ways of going over
            the columns does.
        host: gives the ids of the host functions on the way to the kernel, and of those that they call.
    """

    role: str
    definition: Definition
    kernel: Definition
    source: CppSource
    host: Callable[[], tuple[str, ...]]
    flags: dict[str, bool] | None = None


def forward_functions(program: Program, entry: str = DEFAULT_ENTRY) -> Iterator[KernelFunction]:
    """Yield the functions of the forward pass: the plain one first, then the split one and what combines its parts.

    Each is looked for when it is asked for, so that the parsers read on while the one before it is followed.

    Raises:
        NameNotFound: no function is named as ``entry`` says.
        NoRoute: no kernel is reached from it.
    """
    way = _way(program, entry)
    _refuse_backward(program, way)
    found = [_at_its_end(program, way, FORWARD)]
    yield found[0]
    for branch in branches_of(program, way):
        kernel = branch.definitions[-1]
        work = _work_of(program, kernel.id, {_PRODUCT, _EXPONENTIAL})
        if work is None or any(work.id == other.definition.id for other in found):
            continue
        host = partial(_host_functions, program, (*way.definitions, *branch.definitions))
        found.append(KernelFunction(SPLIT, work, kernel, program.cpp(work.id), host))
        yield found[-1]
        others = [other for other in _launched(program, branch.definitions) if other.id != kernel.id]
        candidates = [(other, _work_of(program, other.id, {_EXPONENTIAL}, without=_PRODUCT)) for other in others]
        if not any(work is not None for _, work in candidates):
            # Whatever is launched after the ranges is to put them together, also if it does so in a wrong way.
            candidates = [(other, _work_of(program, other.id, set(), without=_PRODUCT)) for other in others]
        for other, combining in candidates:
            if combining is not None and all(combining.id != f.definition.id for f in found):
                found.append(KernelFunction(COMBINE, combining, other, program.cpp(combining.id), host))
                yield found[-1]


def backward_functions(program: Program, entry: str = DEFAULT_ENTRY) -> tuple[KernelFunction, ...]:
    """Return the functions of the backward pass that belongs to a forward entry.

    Raises:
        NameNotFound: no function is named as ``entry`` says, or it has no backward pass.
        NoRoute: no kernel is reached from it.
    """
    way = _way(program, _backward_entry(program, entry))
    main = _at_its_end(program, way, BACKWARD)
    found = [main]
    for other in _launched(program, way.definitions):
        work = _work_of(program, other.id, set(), without=_EXPONENTIAL)
        if work is not None and work.id != main.definition.id:
            found.append(KernelFunction(ROW_SUMS, work, other, program.cpp(work.id), main.host))
    return tuple(found)


_ways: WeakKeyDictionary[Program, dict[str, Way]] = WeakKeyDictionary()


def _way(program: Program, entry: str | Definition) -> Way:
    """Return a way, found once for each program: the backward's entry is found on the forward's."""
    known = _ways.setdefault(program, {})
    name = entry.id if isinstance(entry, Definition) else entry
    if name not in known:
        known[name] = way_to_the_work(program, entry)
    return known[name]


def _backward_entry(program: Program, entry: str) -> Definition:
    """Return what autograd runs for the backward pass of the function on a forward entry's way."""
    for edge in _way(program, entry).edges:
        if edge.how is How.AUTOGRAD:
            for target in program.python.related(edge.target):
                return program.definition(target.id)
    raise NameNotFound("backward pass", entry, program.where(), [])


def _refuse_backward(program: Program, way: Way) -> None:
    """Raise where a forward entry reaches a kernel only through its backward pass."""
    for edge in way.edges:
        alike = [other for other in program.edges(edge.source) if other.call_site == edge.call_site]
        if edge.how is How.AUTOGRAD and alike[0].target != edge.target:
            forward = program.definition(alike[0].target)
            raise NoRoute(why_not(program, forward))


def _at_its_end(program: Program, way: Way, role: str) -> KernelFunction:
    """Return the function at the end of a way, in which matrix products and the exponential meet."""
    work = way.definitions[-1]
    kernels = [definition for definition in way.definitions if definition.kind == "kernel"]
    if not kernels:
        raise NoRoute(
            f"{work.qualified_name} in {program.where()} is started as a function object by a library, "
            "a form of kernel whose values are not followed; name another entry with --entry"
        )
    host = partial(_host_functions, program, way.definitions)
    return KernelFunction(role, work, kernels[0], program.cpp(work.id), host, _literal_flags(way))


def _literal_flags(way: Way) -> dict[str, bool]:
    """Return the template parameters of a way's last function that its caller gives ``true`` or ``false``."""
    names, written = way.definitions[-1].template_parameters, way.edges[-1].template_arguments if way.edges else ()
    literals = {"true": True, "false": False}
    return {name: literals[text] for name, text in zip(names, written, strict=False) if text in literals}


def _host_functions(program: Program, definitions: Iterable[Definition]) -> tuple[str, ...]:
    """Return the ids of the C++ host functions among definitions, of those that they call, and that these call."""
    found: dict[str, None] = {}
    level = [definition.id for definition in definitions]
    for _ in range(3):
        following: list[str] = []
        for id in level:
            if id in found or not id.startswith("c++:") or is_device(program.definition(id)):
                continue
            found[id] = None
            following += [edge.target for edge in program.edges(id) if edge.how is How.CALL or edge.how is How.OVERLOAD]
        level = following
    return tuple(found)


def _launched(program: Program, definitions: Iterable[Definition]) -> list[Definition]:
    """Return the kernels that some host functions launch."""
    found: dict[str, Definition] = {}
    for definition in definitions:
        if not definition.id.startswith("c++:") or is_device(definition):
            continue
        for edge in program.edges(definition.id):
            target = program.definition(edge.target)
            if target.kind == "kernel":
                found.setdefault(target.id, target)
    return list(found.values())


def _work_of(program: Program, kernel: str, needed: set[str], without: str = "") -> Definition | None:
    """Return the device function below a kernel that does something while none of its callees does all of it.

    With nothing needed, it is the first function below the kernel that has a loop of its own or calls one that has.
    """
    source = program.cpp(kernel)

    current = kernel
    if (without and without in source.primitives(kernel)) or not needed <= source.primitives(kernel):
        return None
    while True:
        callees = [e.target for e in program.edges(current) if e.target.startswith("c++:")]
        inner = [id for id in callees if needed <= source.primitives(id)] if needed else []
        if not needed and current == kernel and callees:
            inner = callees[:1]
        if not inner:
            return program.definition(current)
        current = inner[0]
