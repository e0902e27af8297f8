"""Which definitions a name that a person typed can mean, and which of them comes first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain

from tracer.model import Definition, Language
from tracer.python.distribution import distribution_name
from tracer.python.files import Files
from tracer.python.flow import Bound
from tracer.python.outline import defines
from tracer.python.resolve import Resolver
from tracer.python.syntax import Module
from tracer.python.values import Kind, Value


class Entries:
    """Finds definitions by name."""

    def __init__(self, resolver: Resolver) -> None:
        """Take the resolver; nothing is read yet."""
        self._resolver = resolver
        self._files: Files = resolver.files

    def candidates(self, name: str) -> Iterator[Definition]:
        """Yield the definitions that a simple or dotted name can mean, the best first.

        First what the distribution's own root package exports under that name, then what other root packages export,
        then the rest: files from which those packages import, files that name a compiled module of the checkout, other
        files, tests last; within a group files near the root first. Methods and nested functions come after all that.
        """
        seen: set[str] = set()
        for found in chain(self._exported(name), self._written(name)):
            if found.id not in seen:
                seen.add(found.id)
                yield found

    def root_packages(self, word: str = "") -> list[str]:
        """Return the ``__init__`` files of the root's packages that hold a word, the distribution's own first."""
        found = [file for file in self._files.names if file.count("/") == 1 and file.endswith("/__init__.py")]
        found = [file for file in found if word in self._files.try_text(file)]
        if len(found) < 2:
            return found
        named = distribution_name(self._files)
        return sorted(found, key=lambda file: (file.partition("/")[0] != named, is_test(file), file))

    def package_files(self) -> tuple[str, ...]:
        """Return the files of the packages at the root, without tests."""
        folders = tuple(package.removesuffix("__init__.py") for package in self.root_packages() if not is_test(package))
        return tuple(file for file in self._files.names if file.startswith(folders) and not is_test(file))

    def _exported(self, name: str) -> Iterator[Definition]:
        head, *rest = name.split(".")
        for package in self.root_packages(head):
            yield from self._below(package, [head, *rest])
        whole = self._files.named("", [head])
        if whole is not None and rest:
            yield from self._below(whole, rest)

    def _below(self, module: str, parts: list[str]) -> Iterator[Definition]:
        values = self._resolver.member(module, parts[0])
        for part in parts[1:]:
            values = tuple(found for value in values for found in self._resolver.attribute(value, part))
        for value in values:
            yield from self._definitions(value)

    def _definitions(self, value: Value) -> Iterator[Definition]:
        if value.kind in (Kind.FUNCTION, Kind.CLASS):
            yield self._resolver.scope(value.name).definition()
        elif value.kind is Kind.APPLY and value.through is not None:
            module = self._files.module(value.through.file)
            alias = self.alias(module, module.lines[value.through.line - 1].partition("=")[0].partition(":")[0].strip())
            if alias is not None:
                yield alias

    def _written(self, name: str) -> Iterator[Definition]:
        last = name.rpartition(".")[2]
        files = [file for file in self._files.names if defines(self._files.try_text(file), last)]
        modules = (self._files.try_module(file) for file in sorted(files, key=self._order))
        inner: list[Definition] = []
        for module in modules:
            for scope in module.scopes.values() if module is not None else ():
                if scope.name == last and matches(name, f"{scope.module.dotted}.{scope.qualname}"):
                    if scope.parent is scope.module.top:
                        yield scope.definition()
                    else:
                        inner.append(scope.definition())
            if module is not None and matches(name, f"{module.dotted}.{last}") and (alias := self.alias(module, last)):
                yield alias
        yield from inner

    def _order(self, file: str) -> tuple[bool, int, bool, int, str]:
        words = {re.escape(name.rpartition(".")[2]) for name in self._resolver.extensions}
        compiled = bool(words) and bool(re.search(rf"\b(?:{'|'.join(sorted(words))})\b", self._files.try_text(file)))
        public = self._public_files
        where = public.index(file) if file in public else len(public)
        return (is_test(file), where, not compiled, file.count("/"), file)

    @cached_property
    def _public_files(self) -> tuple[str, ...]:
        """The files from which the root packages' ``__init__`` files import, the distribution's own first."""
        found: list[str] = []
        for package in self.root_packages():
            module = self._files.try_module(package)
            if module is not None and not is_test(package):
                for bindings in self._resolver.body(module.top).env.values():
                    for binding in bindings:
                        if binding.kind is Bound.IMPORT:
                            values = self._resolver.imported(module, binding.source)
                            found += [value.name for value in values if value.kind is Kind.MODULE]
        return tuple(dict.fromkeys(found))

    def alias(self, module: Module, name: str) -> Definition | None:
        """Return a module's top-level assignment of something callable to a name, as a definition of its own."""
        for binding in self._resolver.body(module.top).env.get(name, ()):
            if binding.kind is Bound.EXPRESSION and not isinstance(binding.node, ast.Lambda):
                values = self._resolver.bound([binding])
                if any(v.kind in (Kind.FUNCTION, Kind.CLASS, Kind.APPLY, Kind.EXTENSION) for v in values):
                    return Definition(
                        id=f"python:{module.file}:{name}",
                        name=name,
                        qualified_name=f"{module.dotted}.{name}",
                        language=Language.PYTHON,
                        kind="alias",
                        location=binding.place,
                    )
        return None


def matches(name: str, qualified: str) -> bool:
    """Whether a typed name is the end of a qualified one, with or without ``<locals>``."""
    plain = qualified.replace(".<locals>", "")
    return any(whole == name or whole.endswith("." + name) for whole in (qualified, plain))


def is_test(file: str) -> bool:
    """Whether a file belongs to tests, benchmarks or examples rather than to the package."""
    parts = file.split("/")
    return parts[-1].startswith(("test_", "conftest")) or any(
        part in ("test", "tests", "benchmark", "benchmarks", "example", "examples") for part in parts[:-1]
    )
