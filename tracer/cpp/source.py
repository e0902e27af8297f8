"""The C++ and CUDA side of one extension module: definitions, bindings and call sites, joined over its units."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tracer.checkout import Checkout
from tracer.cpp.facts import ITS_OWN_NAME, CallFact, FoundFact, FunctionFact, Place
from tracer.cpp.sources import UnitPlan, apart, plan_units
from tracer.cpp.store import Store
from tracer.cpp.tree import Node, Tables
from tracer.cpp.unit_reader import UnitReader
from tracer.extensions import Extension
from tracer.model import (
    CallSite,
    Confidence,
    Definition,
    Diagnostic,
    How,
    Language,
    Location,
    Outcome,
    Target,
)
from tracer.records import dataclass

_CLASHES = ("redefinition of", "duplicate", "explicit specialization of")
_LITERAL = re.compile(r"\d+|true|false")


@dataclass(frozen=True, slots=True)
class Binding:
    """A name that Python can call, and the functions behind it.

    Attributes:
        definition: the binding itself, at the place where it is made.
        namespace: operator namespace; empty for an attribute of the extension module.
        targets: the C++ functions.
    """

    definition: Definition
    namespace: str
    targets: tuple[Target, ...]


class CppSource:
    """The C++ and CUDA side of one extension module, read lazily.

    Ids are ``c++:<extension>:<USR>``, so that functions of the same name in two extensions stay two functions.
    """

    def __init__(self, checkout: Checkout, extension: Extension, store: Store, *, ahead: bool = False) -> None:
        """Start reading: units that the cache does not know begin to parse at once, in processes of their own.

        With ``ahead``, they read on below kernels while they are not asked for anything.
        """
        self.checkout, self.extension, self.store, self.ahead = checkout, extension, store, ahead
        folder = posixpath.dirname(extension.sources[0]) if extension.sources else ""
        self.prefix = f"c++:{extension.name}@{folder or '.'}:"
        self._readers = [UnitReader(checkout, plan, store, ahead) for plan in plan_units(checkout, extension)]
        self._indexed = False
        self._functions: dict[str, tuple[UnitReader, FunctionFact]] = {}
        self._declared: dict[str, FunctionFact] = {}
        self._by_primary: dict[str, list[str]] = {}
        self._copies: dict[tuple[int, str], str] = {}
        self._sites: dict[str, tuple[CallSite, ...]] = {}
        self._files: dict[str, bytes] = {}

    # -- index --------------------------------------------------------------------------------------------------------
    def _index(self) -> None:
        if self._indexed:
            return
        self._indexed = True
        self._separate_clashing_files()
        self._originals_first()
        for reader in self._readers:
            for function in reader.outline.functions:
                self._declared.setdefault(function.usr, function)
                key = self._key(reader, function) if function.defined else ""
                if key and key not in self._functions:
                    self._functions[key] = (reader, function)
                    if function.primary:
                        self._by_primary.setdefault(function.primary, []).append(key)
        for usrs in self._by_primary.values():
            usrs.sort(key=lambda usr: _natural(self._functions[usr][1]))

    def _separate_clashing_files(self) -> None:
        """Read files apart that define the same name and therefore cannot share a unit."""
        for reader in list(self._readers):
            if reader.plan.text is None:
                continue
            included = set(_included(reader.plan))
            clashing = {
                place[0]
                for place, message in reader.outline.errors
                if place[0] in included and message.startswith(_CLASHES)
            }
            if clashing:
                rest = replace(self.extension, sources=tuple(s for s in _included(reader.plan) if s not in clashing))
                reader.close()
                self._readers.remove(reader)
                plans = (*plan_units(self.checkout, rest), *apart(self.checkout, self.extension, sorted(clashing)))
                self._readers += [UnitReader(self.checkout, plan, self.store, self.ahead) for plan in plans]

    def _originals_first(self) -> None:
        """Order units that offer the same names to Python, of which a build takes one.

        Nothing but the building machine decides between them. A file whose name extends another's, such as
        ``api_stable.cpp`` beside ``api.cpp``, was made from it and comes after it; else the build's order stands.
        """
        offers = [
            {(fact.module, fact.name) for fact in reader.outline.bindings if fact.usrs} for reader in self._readers
        ]
        stems = [posixpath.splitext(reader.plan.main)[0] for reader in self._readers]
        order = list(range(len(stems)))
        for one in range(len(stems)):
            for other in range(one):
                if offers[one] & offers[other] and stems[other].startswith(stems[one]) and stems[other] != stems[one]:
                    order.remove(one)
                    order.insert(order.index(other), one)
                    break
        self._readers = [self._readers[number] for number in order]

    def _key(self, reader: UnitReader, function: FunctionFact) -> str:
        """Return the key of a definition: its USR, or more where another file defines the same one before."""
        known = self._functions.get(function.usr)
        if known is None or known[1].place[:2] == function.place[:2]:
            return function.usr
        copy = f"{function.usr}@{function.place[0]}"
        self._copies[id_of(reader), function.usr] = copy
        return copy

    def owns(self, id: str) -> bool:
        """Tell whether an id belongs to this extension."""
        return id.startswith(self.prefix)

    def _entry(self, id: str) -> tuple[UnitReader, FunctionFact]:
        self._index()
        return self._functions[id[len(self.prefix) :]]

    # -- answers ------------------------------------------------------------------------------------------------------
    def definitions(self) -> Iterator[Definition]:
        """Yield every function that the extension defines, in the order of its units."""
        self._index()
        for usr in self._functions:
            yield self.definition(self.prefix + usr)

    def definition(self, id: str) -> Definition:
        """Return one definition."""
        _, fact = self._entry(id)
        is_device = bool({"device", "global"} & set(fact.attributes))
        if "global" in fact.attributes:
            kind = "kernel"
        elif fact.primary and fact.template_arguments:
            kind = "specialization"
        elif is_device and fact.kind != "constructor":
            kind = "device function"
        else:
            kind = fact.kind
        written = f"<{', '.join(fact.template_arguments)}>" if fact.template_arguments else ""
        return Definition(
            id,
            fact.name,
            fact.qualified_name + written,
            Language.CUDA if is_device else Language.CPP,
            kind,
            _location(fact.place),
            fact.template_parameters,
            fact.template_arguments,
        )

    def bindings(self) -> Iterator[Binding]:
        """Yield what the extension offers to Python, in source order."""
        self._index()
        implementations: dict[tuple[str, str], tuple[str, ...]] = {}
        facts = [(reader, fact) for reader in self._readers for fact in reader.outline.bindings]
        for _, fact in facts:
            if fact.usrs:
                implementations.setdefault((fact.module, fact.name), fact.usrs)
        own_name = self.extension.name.rpartition(".")[2]
        for reader, fact in facts:
            usrs = fact.usrs or implementations.get((fact.module, fact.name), ())
            namespace = "" if fact.module == "pybind" else fact.module
            if namespace in (ITS_OWN_NAME, "TORCH_EXTENSION_NAME"):
                namespace = own_name
            qualified = f"{namespace}::{fact.name}" if namespace else f"{self.extension.name}.{fact.name}"
            targets = tuple(
                target
                for usr in usrs
                for target in self._targets(FoundFact(usr, How.BINDING.value, Confidence.EXACT.value, None, ()), reader)
            )
            # A schema and its implementation are two registrations of one name; the one with a function counts.
            if not fact.usrs and usrs:
                continue
            id = f"binding:{self.prefix}{namespace}:{fact.name}@{fact.place[0]}:{fact.place[1]}"
            definition = Definition(id, fact.name, qualified, Language.BINDING, "binding", _location(fact.place))
            yield Binding(definition, namespace, targets)

    def call_sites(self, id: str) -> tuple[CallSite, ...]:
        """Return the call sites of one function, in source order."""
        known = self._sites.get(id)
        if known is None:
            reader, fact = self._entry(id)
            known = tuple([self._site(id, call, reader) for call in reader.body(fact.key).calls])
            self._sites[id] = known
        return known

    def conditions(self, id: str) -> dict[Location, str]:
        """Return, for the call sites below an ``if``, the condition as written."""
        reader, fact = self._entry(id)
        return {_location(call.place): call.condition for call in reader.body(fact.key).calls if call.condition}

    def is_member(self, id: str) -> bool:
        """Tell whether a function is a member of a class."""
        return bool(self._entry(id)[1].parent)

    def primary_parameters(self, id: str) -> tuple[str, ...]:
        """Return the parameter names of the template that a specialization belongs to, as its declaration has them."""
        _, fact = self._entry(id)
        primary = self._declared.get(fact.primary)
        return primary.template_parameters if primary else ()

    def does(self, id: str) -> frozenset[str]:
        """Return which documented primitives a function uses itself; see :class:`tracer.cpp.facts.BodyFact`."""
        reader, fact = self._entry(id)
        return frozenset(reader.body(fact.key).does)

    def assigns(self, id: str) -> frozenset[str]:
        """Return the data members that a function assigns itself, by name."""
        reader, fact = self._entry(id)
        return frozenset(reader.body(fact.key).assigns)

    def exchanged(self, id: str) -> tuple[tuple[Location, str], ...]:
        """Return where a function does not hand on its arguments as they are; see :mod:`tracer.cpp.handed`."""
        reader, fact = self._entry(id)
        return tuple([(_location(place), said) for place, said, _ in reader.body(fact.key).exchanged])

    def primitives(self, id: str) -> frozenset[str]:
        """Return which documented primitives a function uses, itself or in anything of its unit that it reaches."""
        reader, fact = self._entry(id)
        return frozenset(reader.primitives(fact.key))

    def tree(self, id: str) -> tuple[Node, ...]:
        """Return the parameters and, last, the body of one function as syntax trees."""
        reader, fact = self._entry(id)
        return reader.tree(fact.key)

    def tables(self, id: str) -> Tables:
        """Return what the tree of a function refers to. Ask after the tree: a body brings its own declarations."""
        reader, _ = self._entry(id)
        return reader.tables()

    def unit(self, id: str) -> str:
        """Return the name of the unit that defines a function: one unit has one set of tables."""
        reader, _ = self._entry(id)
        return reader.plan.name

    def id(self, usr: str) -> str | None:
        """Return the id of the function that a USR names; None where no source of the extension defines it."""
        self._index()
        return self.prefix + usr if usr in self._functions else None

    def specializations(self, usr: str) -> tuple[str, ...]:
        """Return the ids of the explicit specializations of the template that a USR names, in natural order."""
        self._index()
        return tuple(self.prefix + other for other in self._by_primary.get(usr, ()))

    def location(self, id: str, node: Node) -> Location:
        """Return where a node of the tree of function ``id`` stands."""
        reader, _ = self._entry(id)
        if node.file < 0:
            return self.definition(id).location
        file = reader.tables().files[node.file]
        return self._place(file, node.start, node.end)

    def text(self, id: str, node: Node) -> str:
        """Return the source text of a node of the tree of function ``id``; empty where it has none of its own."""
        reader, _ = self._entry(id)
        if node.file < 0:
            return ""
        return self._contents(reader.tables().files[node.file])[node.start : node.end].decode("utf-8", "replace")

    def _contents(self, file: str) -> bytes:
        if file not in self._files:
            self._files[file] = self.checkout.read_text(file).encode("utf-8")
        return self._files[file]

    def _place(self, file: str, start: int, end: int) -> Location:
        contents = self._contents(file)
        line = contents.count(b"\n", 0, start) + 1
        line_start = contents.rfind(b"\n", 0, start) + 1
        column = len(contents[line_start:start].decode("utf-8", "replace")) + 1
        return Location(file, line, column, line + contents.count(b"\n", start, max(end - 1, start)))

    def read_all(self) -> None:
        """Read every body at once, which is faster than one by one."""
        self._index()
        for reader in self._readers:
            reader.read(None)

    def prepare(self, ids: Iterable[str]) -> None:
        """Read the bodies of several functions at once, which is faster than one by one."""
        wanted: dict[int, tuple[UnitReader, list[int]]] = {}
        for id in ids:
            reader, fact = self._entry(id)
            wanted.setdefault(id_of(reader), (reader, []))[1].append(fact.key)
        for reader, keys in wanted.values():
            reader.read(keys)

    def instantiations(self, id: str) -> tuple[tuple[tuple[str, ...], Location], ...]:
        """Return the explicit instantiations of a template: (arguments as written, place)."""
        _, fact = self._entry(id)
        found = []
        for reader in self._readers:
            for name, arguments, place in reader.outline.instantiations:
                if name == fact.name:
                    found.append((arguments, _location(place)))
        return tuple(sorted(found, key=lambda row: [_natural_key(argument) for argument in (row[1].file, *row[0])]))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the parser did not understand, and what the build description says that does not fit."""
        found = [
            Diagnostic(_location(place), message)
            for reader in self._readers
            for place, message in reader.outline.errors
        ]
        return (*self.extension.diagnostics, *dict.fromkeys(found))

    def close(self) -> None:
        """Keep what was read and end the parser processes."""
        for reader in self._readers:
            reader.close()

    # -- linking ------------------------------------------------------------------------------------------------------
    def _site(self, caller: str, call: CallFact, reader: UnitReader) -> CallSite:
        targets: list[Target] = []
        for found in call.found:
            targets += [target for target in self._targets(found, reader) if target.id not in {t.id for t in targets}]
        outcome, reason = Outcome(call.outcome), call.reason
        if outcome is Outcome.RESOLVED and not targets:
            outcome = Outcome.UNRESOLVED
            declared = self._declared.get(call.found[0].usr) if call.found else None
            where = f"declared at {_location(declared.place)}, " if declared else ""
            reason = f"{where}defined in no source of {self.extension.name}"
        return CallSite(caller, call.written, _location(call.place), outcome, tuple(targets), reason)

    def _targets(self, found: FoundFact, reader: UnitReader) -> list[Target]:
        """Return the definitions that a USR means in one unit: its own, where files define the same name."""
        self._index()
        through = _location(found.through) if found.through else None
        confidence = Confidence(found.confidence)
        targets = []
        if found.usr in self._functions:
            id = self.prefix + self._copies.get((id_of(reader), found.usr), found.usr)
            targets.append(Target(id, How(found.how), confidence, through, found.template_arguments))
        for usr in self._by_primary.get(found.usr, ()):
            if _contradict(found.template_arguments, self._functions[usr][1].template_arguments):
                continue
            id = self.prefix + usr
            targets.append(Target(id, How.SPECIALIZATION, confidence, through, found.template_arguments))
        return targets


def _contradict(written: Sequence[str], specialized: Sequence[str]) -> bool:
    """Tell whether a call's literal template arguments rule a specialization out."""
    return any(
        one != other and _LITERAL.fullmatch(one) and _LITERAL.fullmatch(other)
        for one, other in zip(written, specialized, strict=False)
    )


def id_of(reader: object) -> int:
    """Return the identity of a reader, as a key that lasts as long as the reader does."""
    return id(reader)


def _included(plan: UnitPlan) -> list[str]:
    folder = posixpath.dirname(plan.main)
    return [posixpath.join(folder, name) for name in re.findall(r'"([^"]+)"', plan.text or "")]


def _location(place: Place) -> Location:
    return Location(*place)


def _natural_key(text: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text) if part]


def _natural(fact: FunctionFact) -> tuple[list[tuple[int, int, str]], int]:
    return _natural_key(fact.place[0]), fact.place[1]
