"""Wrong kernels, made at test time from a release by small edits that the analysis itself locates.

No edit knows a name or a line of any release: it asks which operation computes a symbol, and changes the text there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.releases import release
from tracer.checkout import open_checkout
from tracer.cpp.source import CppSource
from tracer.cpp.store import Store
from tracer.cpp.tree import Node
from tracer.dataflow.cuda import Kernel, kernels
from tracer.dataflow.functions import KernelFunction, backward_functions, forward_functions
from tracer.dataflow.host import HostCode
from tracer.dataflow.ir import Value
from tracer.dataflow.names import plain
from tracer.dataflow.sides import LISTINGS, Side, make_side
from tracer.extensions import Extension
from tracer.graph import Program
from tracer.model import Location


def copy_of(version: str, target: Path) -> Path:
    """Copy what a release needs to be read."""
    root = release(version)
    for part in ("csrc/flash_attn", "flash_attn"):
        shutil.copytree(root / part, target / part, ignore=shutil.ignore_patterns("cutlass"))
    for file in ("setup.py", "PKG-INFO"):
        shutil.copyfile(root / file, target / file)
    return target


@dataclass
class Edit:
    """Put ``text`` in the place of the bytes from ``start`` to ``end`` of a file."""

    file: str
    start: int
    end: int
    text: str


@dataclass
class Subject:
    """A right kernel, and what an edit needs to know of it."""

    root: Path
    role: str
    source: CppSource
    kernel: Kernel
    side: Side
    files: tuple[str, ...]
    passed: Callable[[str], float | None]
    edits: list[Edit] = field(default_factory=list)

    # -- text ---------------------------------------------------------------------------------------------------------
    def text(self, site: tuple[str, Node]) -> str:
        return self.source.text(*site)

    def child(self, site: tuple[str, Node], number: int) -> str:
        return self.source.text(site[0], site[1].children[number])

    def replace(self, site: tuple[str, Node], text: str) -> None:
        edit = Edit(self.files[site[1].file], site[1].start, site[1].end, text)
        if edit not in self.edits:
            self.edits.append(edit)

    def replace_child(self, site: tuple[str, Node], number: int, text: str) -> None:
        self.replace((site[0], site[1].children[number]), text)

    def replace_masks(self, written: str, flags: dict[str, bool] | None = None) -> None:
        """Write the test of every mask anew; ``{0}`` and ``{1}`` stand for its operands."""
        comparison = self.side.comparison
        for mask in comparison.masks(comparison.match.flags if flags is None else flags):
            assert isinstance(mask.condition, tuple)
            site = mask.condition[1].site
            self.replace(site, written.format(self.child(site, 0), self.child(site, 1)))

    def append(self, site: tuple[str, Node], text: str) -> None:
        self.replace(site, f"{self.text(site)}; {text}")

    def place(self, site: tuple[str, Node]) -> Location:
        return self.source.location(*site)

    # -- finding ------------------------------------------------------------------------------------------------------
    def values(self, symbol: str, op: str) -> list[Value]:
        """Return the values that compute a symbol's term of an operation, in the kernel."""
        steps = self.side.comparison.steps
        found: dict[int, Value] = {}
        for term in steps.order:
            if steps.result(term) == symbol and (term.op == op):
                for partner in self.side.comparison.partners(term):
                    for value in partner.values:
                        if value.op not in ("set", "phi", "select", "copy", "convert", "element"):
                            found[value.number] = value
        return [found[number] for number in sorted(found)]

    def sets(self, symbol: str) -> list[Value]:
        """Return the assignments after which a variable holds a symbol."""
        steps = self.side.comparison.steps
        found: dict[int, Value] = {}
        for term in steps.order:
            if symbol in self.side.comparison.paper.names(term):
                for partner in self.side.comparison.partners(term):
                    found.update({v.number: v for v in partner.values if v.op == "set" and not v.is_view})
        return [found[number] for number in sorted(found)]

    def accumulator(self, symbol: str) -> str:
        """Return the name of the registers in which the products of a symbol are added up."""
        products = {value.number for value in self.values(symbol, "matmul")}
        names = set()
        for value in self.kernel.values:
            inner = plain(value) if value.op == "set" and value.storage is not None else value
            if inner.op == "add" and any(plain(argument).number in products for argument in inner.args):
                names.add(value.storage.name if value.storage is not None else "")
        (name,) = names - {""}
        return name

    def cleared(self, symbol: str) -> list[Value]:
        """Return the assignments of zero to the storage that later holds a symbol."""
        steps = self.side.comparison.steps
        storages = {
            value.storage
            for term in steps.order
            if symbol in self.side.comparison.paper.names(term)
            for partner in self.side.comparison.partners(term)
            for value in partner.values
            if value.op == "set" and value.storage is not None
        }
        found = []
        for value in self.kernel.values:
            if value.op == "set" and value.storage in storages and not value.is_view:
                inner = plain(value)
                if inner.op == "const" and inner.constant == 0.0 and value.site[1].kind == "call":
                    found.append(value)
        return found

    def calls(self, values: Iterable[Value], depth: int) -> list[tuple[str, Node]]:
        """Return the call sites ``depth`` levels below the kernel through which values are reached."""
        return [value.chain[depth] for value in values if len(value.chain) > depth]


#: Opens a release's kernel of a role, by the release's number and the role.
Subjects = Callable[[str, str], Subject]


@contextmanager
def subject(version_root: Path, role: str, scratch: Path) -> Iterator[Subject]:
    """Open a release's kernel of a role, read through one of its CUDA files only, which is faster."""
    with Program(open_checkout(str(version_root))) as program:
        find = backward_functions if role in ("backward", "row sums") else forward_functions
        function = next(f for f in find(program) if f.role == role)
        extension = program.attention_extension()
        assert extension is not None
        small = _small(program, extension, function)
        with _opened(version_root, small, function, role) as (source, kernel, side, passed):
            files = source.tables(kernel.id).files
            yield Subject(version_root, role, source, kernel, side, files, passed)


def _small(program: Program, extension: Extension, function: KernelFunction) -> Extension:
    sources = [s for s in extension.sources if not s.endswith(".cu")][:1]
    roles = {"backward": "bwd", "row sums": "bwd", "split": "split", "combine": "split"}
    role = roles.get(function.role, "fwd")
    kernel_file = function.kernel.location.file
    for source in extension.sources:
        if source.endswith(".cu") and role in source:
            sources.append(source)
            break
    assert kernel_file
    return Extension(
        extension.name, extension.backend, extension.location, tuple(sources), extension.include_dirs, extension.defines
    )


Opened = tuple[CppSource, Kernel, Side, Callable[[str], "float | None"]]


@contextmanager
def _opened(root: Path, extension: Extension, function: KernelFunction, role: str) -> Iterator[Opened]:
    source = CppSource(open_checkout(str(root)), extension, Store(False))
    try:
        id = next(
            d.id for d in source.definitions()
            if d.qualified_name == function.definition.qualified_name and d.kind == "device function"
        )  # fmt: skip
        passed = _passed(source)
        kernel = kernels(source, id)[0]
        yield source, kernel, make_side(kernel, LISTINGS[role], passed), passed
    finally:
        source.close()


def _passed(source: CppSource) -> Callable[[str], float | None]:
    return HostCode(source, lambda: [d.id for d in source.definitions() if d.language.value == "c++"]).passed


Change = Callable[[Subject], None]


def changed(subject: Subject, change: Change, scratch: Path) -> Side:
    """Apply one change alone, whatever a test before has put to the subject, and return what comes of checking it."""
    subject.edits = []
    change(subject)
    return mutated(subject, scratch)


def mutated(subject: Subject, scratch: Path) -> Side:
    """Apply a subject's edits to a copy of the sources and return what comes of checking it."""
    assert subject.edits, "the edit was not located"
    for file in (*subject.files, *subject.source.extension.sources):
        target = scratch / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if (subject.root / file).is_file():
            shutil.copyfile(subject.root / file, target)
    for name in ("setup.py", "PKG-INFO"):
        if (subject.root / name).is_file():
            shutil.copyfile(subject.root / name, scratch / name)
    by_file: dict[str, list[Edit]] = {}
    for edit in subject.edits:
        by_file.setdefault(edit.file, []).append(edit)
    for file, edits in by_file.items():
        data = (scratch / file).read_bytes()
        for edit in sorted(edits, key=lambda edit: -edit.start):
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
        (scratch / file).write_bytes(data)
    checkout = _Unpacked(scratch)
    source = CppSource(checkout.checkout, subject.source.extension, Store(False))
    try:
        name = subject.source.definition(subject.kernel.id).qualified_name
        id = next(d.id for d in source.definitions() if d.qualified_name == name and d.kind == "device function")
        return make_side(kernels(source, id)[0], LISTINGS[subject.role], _passed(source))
    finally:
        source.close()


class _Unpacked:
    """A copy of a part of a release, which is no checkout that could be opened by name."""

    def __init__(self, root: Path) -> None:
        from tracer.checkout import Checkout

        self.checkout = Checkout(str(root), root, "flash-attention", None, "folder")
