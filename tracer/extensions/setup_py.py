"""The extension modules that a setup.py describes."""

from __future__ import annotations

import ast
import posixpath

from tracer.checkout import Checkout
from tracer.extensions.files import describe, find_files, find_folders, inside
from tracer.extensions.model import Extension
from tracer.extensions.setup_values import Condition, Place, Reader, Scope, all_scopes, read_scopes
from tracer.extensions.values import ROOT, WILDCARD, Chance, Value
from tracer.model import Diagnostic, Location


def read_setup(checkout: Checkout, file: str) -> tuple[Extension, ...]:
    """Return the extensions that a setup.py builds, in the order of the text.

    Every call of something named ``…Extension`` that is given sources counts, with the conditions it stands under.

    Raises:
        SourceError: if the file cannot be read.
        SyntaxError: if it is no Python.
    """
    text = checkout.read_text(file)
    scopes = read_scopes(text)
    package_dir = posixpath.dirname(file)
    reader = Reader(package_dir)
    found: list[Extension] = []
    for scope in all_scopes(scopes):
        for call, conditions in scope.calls:
            extension = _extension(checkout, file, text, reader, scope, call, conditions)
            if extension is not None:
                found.append(extension)
    return tuple(sorted(found, key=lambda extension: extension.location))


def _extension(
    checkout: Checkout,
    file: str,
    text: str,
    reader: Reader,
    scope: Scope,
    call: ast.Call,
    conditions: tuple[Condition, ...],
) -> Extension | None:
    arguments = dict(zip(("name", "sources"), call.args, strict=False))
    arguments.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg})
    if "name" not in arguments or "sources" not in arguments:
        return None
    place = Place(scope, call.lineno, conditions)
    package_dir = posixpath.dirname(file)

    def value(argument: str) -> Value:
        return reader.value(arguments[argument], place) if argument in arguments else Value(is_list=True)

    name = " or ".join(str(item.cell) for item in value("name").texts())
    files = find_files(checkout, _paths(value("sources"), package_dir))
    if not files.found and not name.strip(WILDCARD):
        # A wrapper around an extension class hands through what it was given; its callers are read instead.
        return None
    flags = value("extra_compile_args")
    location = _location(file, text, arguments["name"], call)
    return Extension(
        name=name,
        backend=_backend(conditions, flags),
        location=location,
        sources=files.found,
        include_dirs=find_folders(checkout, _paths(value("include_dirs"), package_dir)),
        defines=_defines(flags, value("define_macros")),
        package_dir=package_dir,
        diagnostics=tuple(Diagnostic(location, message) for message in describe(files)),
    )


def _paths(value: Value, package_dir: str) -> list[str]:
    """Return the paths of a list, relative to the root; those outside of the checkout are not of it."""
    paths: list[str] = []
    for item in value.texts():
        if item.chance is Chance.NEVER:
            continue
        text = str(item.cell)
        base, path = ("", text[len(ROOT) :].lstrip("/")) if text.startswith(ROOT) else (package_dir, text)
        whole = inside(base, path)
        if whole is not None:
            paths.append(text if not text.strip(WILDCARD) else whole)
    return paths


def _backend(conditions: tuple[Condition, ...], flags: Value) -> str:
    """Return which GPUs an extension is for: by the conditions around it and by its compiler flags."""
    for statement, branch in conditions:
        if isinstance(statement, ast.If) and branch and _asks_for_rocm(statement.test):
            return "rocm"
    is_rocm = any("HIP_PLATFORM" in str(item.cell) or "--offload-arch" in str(item.cell) for item in flags.texts())
    return "rocm" if is_rocm else "cuda"


def _asks_for_rocm(test: ast.expr) -> bool | None:
    """Return whether a condition demands ROCm (True), rules it out (False) or says nothing of it (None)."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _asks_for_rocm(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [answer for answer in map(_asks_for_rocm, test.values) if answer is not None]
        return parts[0] if parts and isinstance(test.op, ast.And) else None
    words = {word for node in ast.walk(test) if isinstance(node, ast.Name) for word in node.id.lower().split("_")}
    words |= {node.attr.lower() for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    return True if words & {"rocm", "hip"} and not words & {"skip", "home"} else None


def _defines(flags: Value, macros: Value) -> tuple[str, ...]:
    defines: dict[str, None] = {}
    for item in flags.texts():
        flag = str(item.cell)
        if item.chance is Chance.ALWAYS and flag.startswith("-D") and WILDCARD not in flag and len(flag) > 2:
            defines[flag[2:]] = None
    for item in macros.items:
        if item.chance is Chance.ALWAYS and isinstance(item.cell, tuple) and len(item.cell) == 2:
            name, given = item.cell
            if isinstance(name, str) and isinstance(given, str) and WILDCARD not in name + given:
                defines[f"{name}={given}"] = None
    return tuple(defines)


def _location(file: str, text: str, name: ast.expr, call: ast.Call) -> Location:
    """Return where the name's first character stands: inside the quotes, where there are some."""
    line = text.splitlines()[name.lineno - 1]
    column = len(line.encode("utf-8")[: name.col_offset].decode("utf-8", "replace"))
    if not isinstance(name, ast.Name):
        while column < len(line) and line[column] in "rRbBuUfF":
            column += 1
        while column < len(line) and line[column] in "'\"":
            column += 1
    return Location(file, name.lineno, column + 1, call.end_lineno or name.lineno)
