"""The vocabulary that every room shares: places, definitions, call sites and edges.

All of it is immutable data. The reading rooms produce it, the graph links it, the answers are made of it.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from tracer.records import dataclass


class Language(str, Enum):
    """In which part of the chain a definition lives."""

    PYTHON = "python"
    BINDING = "binding"
    CPP = "c++"
    CUDA = "cuda"


class Confidence(str, Enum):
    """How sure an edge is.

    ``exact``: one target, found by the compiler front end or by a chain of plain assignments and imports.
    ``inferred``: one target, found by a rule that reads a type or a name as a person would.
    ``ambiguous``: several targets fit and nothing in the source decides between them.
    """

    EXACT = "exact"
    INFERRED = "inferred"
    AMBIGUOUS = "ambiguous"


class How(str, Enum):
    """By which mechanism one step reaches the next."""

    CALL = "call"
    AUTOGRAD = "autograd"
    CUSTOM_OP = "custom_op"
    ALIAS = "alias"
    BINDING = "binding"
    OVERLOAD = "overload"
    MEMBER = "member"
    CONSTRUCTOR = "constructor"
    SPECIALIZATION = "specialization"
    KERNEL_POINTER = "kernel_pointer"
    LAUNCH = "launch"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in the checkout: where the text stands, never where a macro was expanded.

    Attributes:
        file: path relative to the checkout's root, with forward slashes.
        line: 1-based line on which the name stands.
        column: 1-based column of the name's first character.
        end_line: 1-based last line of the construct that the name belongs to.
    """

    file: str
    line: int
    column: int = 1
    end_line: int = 0

    def __str__(self) -> str:
        """Return ``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Definition:
    """Something that can be reached by a call: a function, a method, a binding, a kernel.

    Attributes:
        id: unique within a checkout; ``python:<file>:<qualified name>`` or ``c++:<unit>:<USR>``. Opaque to readers.
        name: the last component, as written at the definition.
        qualified_name: with module or namespaces, classes and, for an explicit specialization, its arguments.
        language: which part of the chain it belongs to.
        kind: ``function``, ``method``, ``class``, ``function template``, ``specialization``, ``kernel``, ``device
            function``, ``binding``, ``custom op``, ….
        location: where the name stands.
        template_parameters: names of the template parameters, in order; empty for what is no template.
        template_arguments: of an explicit specialization, the arguments as written, in order.
    """

    id: str
    name: str
    qualified_name: str
    language: Language
    kind: str
    location: Location
    template_parameters: tuple[str, ...] = ()
    template_arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """One possible destination of a call site: a definition's id, how it was found and how sure that is.

    Attributes:
        through: where the callee's name was bound to the thing it names: the alias, the import, the kernel pointer.
        template_arguments: the template argument expressions written at the call or at the kernel pointer.
    """

    id: str
    how: How
    confidence: Confidence = Confidence.EXACT
    through: Location | None = None
    template_arguments: tuple[str, ...] = ()


class Outcome(str, Enum):
    """What is known of a call site's callee."""

    RESOLVED = "resolved"
    EXTERNAL = "external"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class CallSite:
    """One call as written in the source.

    Attributes:
        caller: id of the definition whose body holds the call.
        written: the callee as written, such as ``softmax.softmax_rescale_o``.
        location: where the callee's name stands.
        outcome: resolved inside the checkout, known to lead outside of it, or unresolved.
        targets: the destinations inside the checkout; empty unless resolved.
        reason: for an unresolved site, why.
    """

    caller: str
    written: str
    location: Location
    outcome: Outcome
    targets: tuple[Target, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """One link of the call graph, with its evidence."""

    source: str
    target: str
    how: How
    confidence: Confidence
    call_site: Location
    through: Location | None = None
    written: str = ""
    template_arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something a reader could not make full sense of, where it happened and what that means."""

    location: Location
    message: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many call sites were understood: the denominator of every claim.

    Attributes:
        call_sites: all call sites of the functions considered.
        resolved: those with a target inside the checkout.
        external: those known to lead into a library.
        unresolved: the rest, each one listed.
    """

    call_sites: int = 0
    resolved: int = 0
    external: int = 0
    unresolved: tuple[CallSite, ...] = field(default=())
