"""Which types an expression or a written type can have, as far as a unit shows it.

A type is a class of the checkout with the template arguments it was written with, something of a library, or a lambda.
There can be several: ``std::conditional_t`` names two, and a template parameter names all that the unit binds it to.
Only a reader that looks ``deep`` asks for the latter, because that means to read other functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from tracer.cpp.scopes import Local
from tracer.cpp.tree import Function, Node
from tracer.records import dataclass

MAX_DEPTH = 12  # types that are written with types that are written with types …
_MAX_TYPES = 24


@dataclass(frozen=True, slots=True, eq=False)
class Where:
    """Where a type is written: what decides the meaning of the names in it.

    Attributes:
        function: the function around it.
        class_usr: the class around it.
        scope: local names.
        instance: the class around it with the arguments of one use; None for the template in general.
        assumed: conditions that the surrounding choice has decided: (text, truth).
        deep: template parameters are looked up too.
    """

    function: Function | None = None
    class_usr: str = ""
    scope: Mapping[str, Local] = field(default_factory=dict)
    instance: Instance | None = None
    assumed: frozenset[tuple[str, bool]] = frozenset()
    deep: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """A class of the checkout as one place writes it.

    Attributes:
        usr: the class.
        arguments: its template arguments; empty where the place does not say them.
        where: where they are written.
    """

    usr: str
    arguments: tuple[Node, ...] = ()
    where: Where | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two instances the same."""
        if self.where is None or not self.arguments:
            return (self.usr,)
        return self.usr, tuple(map(id, self.arguments)), id(self.where.scope), self.where.assumed


@dataclass(frozen=True, slots=True)
class Types:
    """What a type can be.

    Attributes:
        instances: classes of the checkout.
        library: something of a library, or of the language.
        local: a lambda; its body belongs to the function that writes it.
        unknown: why it may be something else still; empty when the rest of the answer is complete.
    """

    instances: tuple[Instance, ...] = ()
    library: bool = False
    local: bool = False
    unknown: str = ""

    @property
    def decided(self) -> bool:
        """Whether anything is known at all."""
        return bool(self.instances) or self.library or self.local

    @property
    def usrs(self) -> tuple[str, ...]:
        """The classes, each once."""
        return tuple(dict.fromkeys([instance.usr for instance in self.instances]))


LIBRARY = Types(library=True)
LAMBDA = Types(local=True)


def unknown(reason: str = "not known") -> Types:
    """Return the answer that nothing is known."""
    return Types(unknown=reason)


def join(found: Iterable[Types]) -> Types:
    """Return the types of several alternatives."""
    instances: dict[tuple[object, ...], Instance] = {}
    library = local = False
    reason = ""
    for types in found:
        for instance in types.instances:
            instances.setdefault(instance.key, instance)
        library, local, reason = library or types.library, local or types.local, reason or types.unknown
    kept = tuple(instances.values())
    if len(kept) > _MAX_TYPES:
        kept = tuple({instance.usr: instance for instance in kept}.values())
    return Types(kept, library, local, reason)


def same_types(one: Types, other: Types) -> bool:
    """Tell whether two answers name the same classes."""
    return (set(one.usrs), one.library, one.local, one.unknown) == (
        set(other.usrs), other.library, other.local, other.unknown
    )  # fmt: skip


def written(node: Node) -> str:
    """Return one spelling for conditions that are written alike."""
    return f"{node.kind} {node.text} ({' '.join(map(written, node.children))})"
