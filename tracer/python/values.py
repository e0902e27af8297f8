"""What an expression can stand for, as far as calls are concerned."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from tracer.model import Confidence, How, Location
from tracer.records import dataclass


class Kind(Enum):
    """The kinds of things that a name or an expression leads to."""

    FUNCTION = "function"
    CLASS = "class"
    MODULE = "module"
    INSTANCE = "instance"
    SUPER = "super"
    APPLY = "apply"
    EXTENSION = "extension"
    LIBRARY = "library"
    OBJECT = "library object"
    BUILTIN = "builtin"
    RESULT = "result"
    CONTAINER = "container"
    PARAMETER = "parameter"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Value:
    """One thing that an expression can stand for.

    Attributes:
        kind: what ``name`` names.
        name: a definition id (function, class, instance, super, apply, result), the file or folder of a module, the
            dotted path of something outside the checkout, or the reason why nothing is known.
        through: the import or assignment that bound the name by which it was reached.
        how: the mechanism, where it is more than a plain call.
        confidence: how sure it is.
        rank: 0 for what a clean environment with a CUDA build of PyTorch selects or what no condition decides; one
            more for every condition on the way that does not hold there.
        member: for an unknown attribute of an unknown object, the attribute's name.
        text: the namespace of a ``torch.library.Library``.
        items: the elements of a container.
    """

    kind: Kind
    name: str
    through: Location | None = None
    how: How = How.CALL
    confidence: Confidence = Confidence.EXACT
    rank: int = 0
    member: str = ""
    text: str = ""
    items: tuple[Value, ...] = ()

    def reached(self, through: Location, rank: int, alias: bool) -> Value:
        """Return the same thing as seen by a name that an import or an assignment bound to it.

        Python's own definitions name the binding nearest to the call; what leaves Python names the binding at which
        it left, which is the import of the extension or the alias of the operator namespace.
        """
        leaves = self.kind is Kind.EXTENSION or (self.kind is Kind.LIBRARY and self.name.startswith("torch.ops."))
        keep = leaves and self.through is not None
        how = How.ALIAS if alias and self.how is How.CALL else self.how
        return replace(self, through=self.through if keep else through, rank=self.rank + rank, how=how)


def unknown(reason: str, member: str = "") -> tuple[Value, ...]:
    """Return the one value that says why nothing is known."""
    return (Value(Kind.UNKNOWN, reason, member=member),)
