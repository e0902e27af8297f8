"""The Python side of a checkout: definitions, call sites, aliases and registrations, read lazily with ``ast``.

Ids: ``python:<file>:<qualified name>`` is a definition in the checkout (a second one of the same name gets ``#2``, a
module's own statements are ``<module>``), ``extension:<module>.<attribute>`` is what a compiled module offers, and
``ops:<namespace>::<name>`` is a PyTorch operator that no Python file of the checkout implements.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from tracer.errors import NameNotFound, SourceError
from tracer.model import CallSite, Definition, Diagnostic, How, Target
from tracer.python.entries import Entries
from tracer.python.files import Files
from tracer.python.outline import outline
from tracer.python.registrations import IMPLEMENTING, Registration, Registrations
from tracer.python.resolve import Resolver
from tracer.python.sites import Sites
from tracer.python.syntax import Scope, too_deep
from tracer.records import dataclass

__all__ = ["PythonFacts", "PythonSource", "Registration"]


@dataclass(frozen=True, slots=True)
class PythonFacts:
    """Everything of the Python side.

    Attributes:
        definitions: of every file that could be read, in the order of files and lines.
        call_sites: likewise.
        related: by definition id, what runs because it ran; see ``PythonSource.related``.
        registrations: the operators registered from Python.
        diagnostics: the files that could not be read, and why.
    """

    definitions: tuple[Definition, ...]
    call_sites: tuple[CallSite, ...]
    related: dict[str, tuple[Target, ...]]
    registrations: tuple[Registration, ...]
    diagnostics: tuple[Diagnostic, ...]


class PythonSource:
    """The Python side of one checkout."""

    def __init__(
        self, read_text: Callable[[str], str], files: Sequence[str], extensions: Callable[[], Collection[str]]
    ) -> None:
        """Remember what there is; nothing is read yet.

        Args:
            read_text: gives the text of a relative path, or raises ``SourceError``.
            files: the relative paths of the Python files.
            extensions: gives the dotted names of the compiled modules that the checkout builds; a ``*`` stands for any
                part. Asked for once, when an import leads out of the checkout.
        """
        self._files = Files(read_text, files)
        self._resolver = Resolver(self._files, extensions)
        self._registrations = Registrations(self._resolver)
        self._sites = Sites(self._resolver, self._registrations)
        self._entries = Entries(self._resolver)
        self._known_sites: dict[str, tuple[CallSite, ...]] = {}

    def entry(self, name: str) -> Definition:
        """Return the first of ``entry_candidates``, reading no further than needed.

        Raises:
            NameNotFound: nothing has that name.
            SourceError: the file that defines it cannot be read.
        """
        for found in self._entries.candidates(name):
            return self.definition(found.id)
        raise NameNotFound("entry", name, "the checkout's Python files", self.names())

    def entry_candidates(self, name: str) -> tuple[Definition, ...]:
        """Return every definition that a simple or dotted name can mean, the package's public API first."""
        return tuple(self.definition(found.id) for found in self._entries.candidates(name))

    def names(self) -> tuple[str, ...]:
        """Return the names of all top-level functions, classes and methods, without parsing."""
        found = [name for file in self._files.names for name in outline(self._files.try_text(file))]
        return tuple(dict.fromkeys(found))

    def definition(self, id: str) -> Definition:
        """Return a definition by its id.

        Raises:
            NameNotFound: there is none.
            SourceError: its file cannot be read.
        """
        scope = self._scope(id)
        if isinstance(scope, Definition):
            return scope
        implements = any(one.verb in IMPLEMENTING for one in self._registrations.of_definition(scope))
        return scope.definition("custom op" if implements else "")

    def call_sites(self, id: str) -> tuple[CallSite, ...]:
        """Return the calls in a definition's own body, in source order.

        Calls in decorators and default values belong to the definition around it, calls in a nested function to that
        function, calls in a lambda without a name to the function in which it stands. For ``X.apply`` of an autograd
        function the first target is ``X.forward`` and the second ``X.backward``. An external site carries in its
        reason what it leads to; a resolved one, which further alternatives lead elsewhere.

        Raises:
            NameNotFound: there is no such definition.
            SourceError: its file cannot be read.
        """
        if id not in self._known_sites:
            scope = self._scope(id)
            try:
                sites = self._alias_site(scope) if isinstance(scope, Definition) else self._sites.of_scope(scope)
            except RecursionError:
                file = id.split(":", 2)[1]
                raise too_deep(file, self._files.text(file)) from None
            self._known_sites[id] = sites
        return self._known_sites[id]

    def extension_uses(self, id: str) -> tuple[CallSite, ...]:
        """Return those call sites of a definition that leave Python for a compiled module or operator."""
        return tuple(site for site in self.call_sites(id) if any(target.how is How.BINDING for target in site.targets))

    def related(self, id: str) -> tuple[Target, ...]:
        """Return what runs because a definition ran, without being called by it.

        From ``forward`` of an autograd function to its ``backward``; from an operator's implementation to the function
        given to ``register_autograd``. ``through`` is the class or the registration.
        """
        scope = self._scope(id)
        return () if isinstance(scope, Definition) else self._sites.related(scope)

    def registrations(self, id: str) -> tuple[Registration, ...]:
        """Return the operators under which a definition is registered, with the places of the registrations."""
        scope = self._scope(id)
        return () if isinstance(scope, Definition) else self._registrations.of_definition(scope)

    def package_files(self) -> tuple[str, ...]:
        """Return the files of the packages at the checkout's root: no tests, no tools, nothing that it vendors."""
        return self._entries.package_files()

    def everything(self, files: Sequence[str] | None = None) -> PythonFacts:
        """Return the facts of all files, or of those given; a file that cannot be read becomes a diagnostic."""
        definitions: list[Definition] = []
        sites: list[CallSite] = []
        related: dict[str, tuple[Target, ...]] = {}
        registrations: list[Registration] = []
        for file in self._files.names if files is None else sorted(files):
            module = self._files.try_module(file)
            if module is None:
                continue
            try:
                registrations += self._registrations.of_module(module)
                for scope in module.scopes.values():
                    definitions.append(self.definition(scope.id))
                    sites += self.call_sites(scope.id)
                    if targets := self._sites.related(scope):
                        related[scope.id] = targets
            except SourceError as error:
                self._files.note(file, error)
        diagnostics = tuple(self._files.diagnostics[file] for file in sorted(self._files.diagnostics))
        return PythonFacts(tuple(definitions), tuple(sites), related, tuple(registrations), diagnostics)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the files that could not be read so far, and why."""
        return tuple(self._files.diagnostics[file] for file in sorted(self._files.diagnostics))

    def _scope(self, id: str) -> Scope | Definition:
        """Return a scope, or the definition of an alias."""
        language, _, rest = id.partition(":")
        file, _, qualname = rest.partition(":")
        if language == "python" and file in self._files.names:
            module = self._files.module(file)
            found = module.scopes.get(qualname) or self._entries.alias(module, qualname)
            if found is not None:
                return found
        raise NameNotFound("definition", id, "the checkout's Python files", self.names())

    def _alias_site(self, alias: Definition) -> tuple[CallSite, ...]:
        """Return the one call that calling an alias makes."""
        module = self._files.module(alias.location.file)
        name = ast.Name(alias.name, ast.Load())
        call = ast.Call(name, [], [])
        line, column = alias.location.line, alias.location.column
        for node in (name, call):
            node.lineno, node.col_offset, node.end_lineno = line, column - 1, alias.location.end_line
        site = self._sites.site(call, self._resolver.body(module.top).env, module.top)
        return (replace(site, caller=alias.id, location=alias.location),)
