"""Both languages' facts linked into one graph: Python, the binding, C++ host code, CUDA.

:class:`Program` answers for one definition at a time and reads no more source than that takes; :meth:`Program.graph`
makes the networkx graph of everything, or of what some definitions reach.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tracer.checkout import Checkout
from tracer.cpp import Binding, CppSource, Store
from tracer.errors import NameNotFound, SourceError
from tracer.extensions import Extension, read_extensions
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
    Target,
)
from tracer.python import PythonSource

if TYPE_CHECKING:
    import networkx

_EXTENSION, _OPERATOR = "extension:", "ops:"


class Program:
    """One checkout as a call graph, read on demand.

    Close it when done, or use it in a ``with`` statement: it keeps what it read for the next run, and ends the parser
    processes.
    """

    def __init__(self, checkout: Checkout, *, cache: bool = True) -> None:
        """Read which extensions there are; everything else waits until it is asked for."""
        self.checkout = checkout
        self.extensions: tuple[Extension, ...] = read_extensions(checkout)
        self.python = PythonSource(
            checkout.read_text,
            checkout.python_files(),
            lambda: [extension.name for extension in self.extensions],
        )
        self._store = Store(cache)
        self._sources: dict[int, CppSource] = {}
        self._bindings: dict[int, tuple[Binding, ...]] = {}
        self._binding_by_id: dict[str, tuple[Binding, Extension]] = {}

    def __enter__(self) -> Program:
        """Return the program itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Keep what was read and end the parser processes."""
        for source in self._sources.values():
            source.close()

    # -- the C++ side -------------------------------------------------------------------------------------------------
    def source(self, extension: Extension, *, ahead: bool = False) -> CppSource:
        """Return the C++ side of an extension; its units begin to parse in the background.

        With ``ahead``, the parsers read on below kernels while they are not asked for anything.
        """
        number = self.extensions.index(extension)
        if number not in self._sources:
            self._sources[number] = CppSource(self.checkout, extension, self._store, ahead=ahead)
        return self._sources[number]

    def attention_extension(self, package_dir: str = "") -> Extension | None:
        """Return the extension that a package's attention most likely lives in, to start reading it early."""
        cuda = [e for e in self.extensions if e.backend == "cuda" and e.package_dir == package_dir and _has_cuda(e)]
        return cuda[0] if cuda else None

    def extension_for(self, entry: str) -> Extension | None:
        """Return the extension that a Python entry's package builds, else the one that attention most likely lives in.

        Raises:
            SourceError: a file that has to be read for that cannot be.
        """
        for definition in self.python.entry_candidates(entry) if "." in entry else ():
            folder = definition.location.file.partition("/")[0]
            found = self.attention_extension(folder)
            if found is not None:
                return found
        return self.attention_extension()

    def bindings(self, extension: Extension) -> tuple[Binding, ...]:
        """Return what an extension offers to Python."""
        number = self.extensions.index(extension)
        if number not in self._bindings:
            self._bindings[number] = tuple(self.source(extension).bindings())
            for binding in self._bindings[number]:
                self._binding_by_id[binding.definition.id] = (binding, extension)
        return self._bindings[number]

    def _source_of(self, id: str) -> CppSource:
        for source in self._sources.values():
            if source.owns(id):
                return source
        for extension in self.extensions:
            source = self.source(extension)
            if source.owns(id):
                return source
        raise KeyError(id)

    def cpp(self, id: str) -> CppSource:
        """Return the C++ side that a C++ or CUDA definition belongs to."""
        return self._source_of(id)

    # -- one definition -----------------------------------------------------------------------------------------------
    def definition(self, id: str) -> Definition:
        """Return a definition by id."""
        if id.startswith("python:"):
            return self.python.definition(id)
        if id.startswith("binding:"):
            return self._binding_by_id[id][0].definition
        return self._source_of(id).definition(id)

    def call_sites(self, id: str) -> tuple[CallSite, ...]:
        """Return the call sites of a definition in source order, calls that leave Python joined to their bindings."""
        if id.startswith("binding:"):
            binding, extension = self._binding_by_id[id]
            place = binding.definition.location
            targets = tuple(replace(target, through=extension.location) for target in binding.targets)
            return (CallSite(id, binding.definition.name, place, Outcome.RESOLVED, targets),)
        if not id.startswith("python:"):
            return self._source_of(id).call_sites(id)
        return tuple(self._joined(site) for site in self.python.call_sites(id))

    def prepare(self, ids: Iterable[str]) -> None:
        """Read the C++ functions among some definitions at once, which is faster than one by one."""
        sources: dict[CppSource, list[str]] = {}
        for id in ids:
            if not id.startswith(("python:", "binding:")):
                sources.setdefault(self._source_of(id), []).append(id)
        for source, own in sources.items():
            source.prepare(own)

    def edges(self, id: str) -> tuple[Edge, ...]:
        """Return the edges that leave a definition, in source order."""
        return tuple(edge_of(site, target) for site in self.call_sites(id) for target in site.targets)

    def _joined(self, site: CallSite) -> CallSite:
        if not any(target.id.startswith((_EXTENSION, _OPERATOR)) for target in site.targets):
            return site
        targets: list[Target] = []
        missing = ""
        for target in site.targets:
            if not target.id.startswith((_EXTENSION, _OPERATOR)):
                targets.append(target)
                continue
            found = self._bound(target.id, site.location.file)
            if not found:
                missing = target.id.partition(":")[2]
            confidence = target.confidence if len(found) == 1 else Confidence.AMBIGUOUS
            targets += [Target(b.definition.id, How.BINDING, confidence, target.through) for b in found]
        if targets:
            return CallSite(site.caller, site.written, site.location, Outcome.RESOLVED, tuple(targets), site.reason)
        reason = f"no extension of this checkout binds {missing}"
        return CallSite(site.caller, site.written, site.location, Outcome.UNRESOLVED, (), reason)

    def _bound(self, id: str, file: str) -> tuple[Binding, ...]:
        """Return the bindings behind ``extension:module.name`` or ``ops:namespace::name``; CUDA builds come first.

        There are several where a build takes one of several source files that offer the same names.
        """
        if id.startswith(_EXTENSION):
            module, _, name = id[len(_EXTENSION) :].rpartition(".")
            namespace = ""
            candidates = [e for e in self.extensions if module in (e.name, e.name.rpartition(".")[2])]
        else:
            namespace, _, name = id[len(_OPERATOR) :].partition("::")
            candidates = [e for e in self.extensions if self._may_bind(e, namespace)]
        folder = posixpath.dirname(file)
        candidates.sort(key=lambda e: (e.backend != "cuda", e.package_dir != folder))
        for extension in candidates:
            found: dict[str, Binding] = {}
            for binding in self.bindings(extension):
                if binding.namespace == namespace and binding.definition.name == name:
                    found.setdefault(binding.definition.location.file, binding)
            if found:
                return tuple(found.values())
        return ()

    def _may_bind(self, extension: Extension, namespace: str) -> bool:
        """Tell whether an extension can define an operator namespace, without parsing it."""
        if extension.name.rpartition(".")[2] == namespace:
            return True
        for source in extension.sources:
            if not source.endswith(".cu"):
                try:
                    if f"({namespace}," in self.checkout.read_text(source).replace(" ", ""):
                        return True
                except SourceError:
                    continue
        return False

    # -- names --------------------------------------------------------------------------------------------------------
    def find(self, name: str) -> Definition:
        """Return the definition that a person means by ``name``: in Python first, then in C++ and CUDA.

        Raises:
            NameNotFound: nothing has that name; the message has the nearest names of both languages.
        """
        try:
            return self.python.entry(name)
        except NameNotFound:
            found = self.cpp_named(name)
        if found:
            return found[0]
        raise NameNotFound("function", name, self.where(), self.names())

    def cpp_named(self, name: str) -> list[Definition]:
        """Return the C++ and CUDA functions of a name, simple or qualified, of the extensions that bind attention."""
        last = name.rpartition("::")[2]
        found = []
        for extension in self.extensions:
            if extension.backend == "cuda" and _has_cuda(extension) and self._is_open_or_main(extension):
                for definition in self.source(extension).definitions():
                    if definition.name == last and f"::{definition.qualified_name}".endswith(f"::{name}"):
                        found.append(definition)
        return found

    def _is_open_or_main(self, extension: Extension) -> bool:
        return self.extensions.index(extension) in self._sources or extension == self.attention_extension()

    def names(self) -> list[str]:
        """Return every name that :meth:`find` would accept."""
        names = list(self.python.names())
        for extension in self.extensions:
            if extension.backend == "cuda" and _has_cuda(extension) and self._is_open_or_main(extension):
                names += [definition.name for definition in self.source(extension).definitions()]
        return names

    def where(self) -> str:
        """Return what to call the checkout in a message."""
        version = f" {self.checkout.version}" if self.checkout.version else ""
        return f"{self.checkout.flavour}{version} ({self.checkout.spec})"

    # -- everything ---------------------------------------------------------------------------------------------------
    def graph(self, roots: Iterable[str] | None = None) -> networkx.MultiDiGraph[str]:
        """Return the call graph: node ids with a ``definition``, edges with an ``edge``.

        Args:
            roots: definitions to start from; None for everything: the packages' Python files and all
                extensions with kernels.
        """
        import networkx

        graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
        waiting = list(self._all_ids() if roots is None else roots)
        seen: set[str] = set()
        while waiting:
            id = waiting.pop(0)
            if id in seen:
                continue
            seen.add(id)
            graph.add_node(id, definition=self.definition(id))
            for edge in self.edges(id):
                if edge.target not in graph:
                    graph.add_node(edge.target, definition=self.definition(edge.target))
                graph.add_edge(id, edge.target, edge=edge)
                waiting.append(edge.target)
        return graph

    def _all_ids(self) -> Iterator[str]:
        for extension in self.extensions:
            if extension.backend == "cuda" and _has_cuda(extension):
                self.source(extension)  # parses while Python is read
        facts = self.python.everything(self.python.package_files())
        yield from (definition.id for definition in facts.definitions)
        for extension in self.extensions:
            if extension.backend == "cuda" and _has_cuda(extension):
                self.source(extension).read_all()
                yield from (binding.definition.id for binding in self.bindings(extension))
                yield from (definition.id for definition in self.source(extension).definitions())

    def coverage(self, ids: Iterable[str]) -> Coverage:
        """Count the call sites of some definitions, and list the unresolved ones."""
        sites = [site for id in ids for site in self.call_sites(id)]
        return Coverage(
            len(sites),
            sum(site.outcome is Outcome.RESOLVED for site in sites),
            sum(site.outcome is Outcome.EXTERNAL for site in sites),
            tuple(site for site in sites if site.outcome is Outcome.UNRESOLVED),
        )

    def diagnostics(self, files: Iterable[str] | None = None) -> tuple[Diagnostic, ...]:
        """Return what the readers could not make full sense of so far, in some files or in all."""
        wanted = None if files is None else set(files)
        found = list(self.python.diagnostics())
        for source in self._sources.values():
            found += source.diagnostics
        for number, extension in enumerate(self.extensions):
            if number not in self._sources:
                found += extension.diagnostics
        return tuple(d for d in dict.fromkeys(found) if wanted is None or d.location.file in wanted)


def edge_of(site: CallSite, target: Target) -> Edge:
    """Return the edge that a call site makes to one of its targets."""
    return Edge(
        site.caller, target.id, target.how, target.confidence, site.location, target.through, site.written,
        target.template_arguments,
    )  # fmt: skip


def is_device(definition: Definition) -> bool:
    """Tell whether a definition runs on the GPU."""
    return definition.language is Language.CUDA


def _has_cuda(extension: Extension) -> bool:
    return any(source.endswith(".cu") for source in extension.sources)


__all__ = ["Location", "Program", "edge_of", "is_device"]
