"""What one unit tells the rest of the program, in the plain form that crosses a pipe and fits a cache.

Everything here is tuples, numbers and strings. Places are (file, line, column, end line) with the file as a path
relative to the checkout.
"""

from __future__ import annotations

from tracer.records import dataclass

Place = tuple[str, int, int, int]
ITS_OWN_NAME = "flashtracer_extension"  # what TORCH_EXTENSION_NAME stands for in the stub headers


@dataclass(frozen=True, slots=True)
class FunctionFact:
    """One function of a unit, without its body; see :class:`tracer.cpp.tree.Function`."""

    usr: str
    name: str
    qualified_name: str
    kind: str
    primary: str
    parent: str
    place: Place
    attributes: tuple[str, ...]
    template_parameters: tuple[str, ...]
    template_arguments: tuple[str, ...]
    parameters: int
    defined: bool
    key: int


@dataclass(frozen=True, slots=True)
class FoundFact:
    """One destination of a call."""

    usr: str
    how: str
    confidence: str
    through: Place | None
    template_arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallFact:
    """One call site."""

    written: str
    place: Place
    outcome: str
    found: tuple[FoundFact, ...]
    reason: str
    condition: str


@dataclass(frozen=True, slots=True)
class BodyFact:
    """The call sites of one body, which primitives it uses itself, and which data members it assigns.

    Attributes:
        calls: in source order.
        does: ``exponential``, ``logarithm``, ``maximum``, ``matrix product``, ``loop``: operations whose meaning the
            libraries document, used directly in this body.
        assigns: the names of the data members of objects that stand on the left of an assignment.
        exchanged: where arguments are not handed on as they are, see :func:`tracer.cpp.handed.exchanged`.
    """

    calls: tuple[CallFact, ...]
    does: tuple[str, ...]
    assigns: tuple[str, ...]
    exchanged: tuple[tuple[Place, str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class BindingFact:
    """One name that Python can call; see :class:`tracer.cpp.bindings.Bound`."""

    module: str
    name: str
    usrs: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class OutlineFact:
    """What a unit declares.

    Attributes:
        files: the checkout's files that it read.
        errors: (place, message) of what the parser did not understand.
        instantiations: (template's name, arguments, place) of each explicit instantiation.
    """

    files: tuple[str, ...]
    functions: tuple[FunctionFact, ...]
    bindings: tuple[BindingFact, ...]
    instantiations: tuple[tuple[str, tuple[str, ...], Place], ...]
    errors: tuple[tuple[Place, str], ...]
