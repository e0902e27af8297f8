"""The extension modules that a CMakeLists.txt describes.

Read as far as a list of files goes: ``set``, ``list(APPEND)``, ``file(GLOB)``, targets and their folders and macros.
Both branches of an ``if`` count for the files; nothing is configured or run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import field

from tracer.checkout import Checkout
from tracer.extensions.files import UNIT_SUFFIXES, describe, find_files, find_folders, inside
from tracer.extensions.model import Extension
from tracer.model import Diagnostic, Location
from tracer.records import dataclass

_TOKEN = re.compile(
    r"""(?P<bracket>\#?\[(?P<eq>=*)\[.*?\](?P=eq)\])|(?P<comment>\#[^\n]*)|"(?P<quoted>(?:\\.|[^"\\])*)"
    |(?P<open>\()|(?P<close>\))|(?P<bare>(?:\\.|\$\{[^}]*\}|[^\s()"\#\\])+)""",
    re.VERBOSE | re.DOTALL,
)
#: Commands of CMake and of the modules that come with pybind11, nanobind, PyTorch and CUDA, whose first argument
#: names a target and whose others list its sources. Projects wrap them in functions named after what they make.
_TARGETS = re.compile(r".*(_extension_target|_add_library|_add_module|add_library|python_extension)$")
_KEYWORD = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class _Argument:
    text: str
    line: int
    column: int
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class _Command:
    name: str
    arguments: tuple[_Argument, ...]
    end_line: int
    conditions: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Target:
    """A target while its file is being read."""

    name: _Argument
    command: _Command
    sources: list[str]
    languages: set[str]
    defines: dict[str, None] = field(default_factory=dict)
    include_dirs: list[str] = field(default_factory=list)


def read_cmake(checkout: Checkout, file: str) -> tuple[Extension, ...]:
    """Return the extensions that a CMakeLists.txt builds, in the order of the text.

    Raises:
        SourceError: if the file cannot be read.
    """
    folder = posixpath.dirname(file)
    variables: dict[str, list[tuple[str, tuple[tuple[int, int], ...]]]] = {}
    targets: dict[str, _Target] = {}
    for command in _commands(checkout.read_text(file)):
        words = command.arguments
        if command.name == "set" and words:
            # What another branch of the same if has set stays beside it: nobody knows which one CMake would take.
            kept = [entry for entry in variables.get(words[0].text, []) if _exclusive(entry[1], command.conditions)]
            variables[words[0].text] = kept + _expand(command, words[1:], variables)
        elif command.name == "list" and len(words) > 1 and words[0].text == "APPEND":
            variables.setdefault(words[1].text, []).extend(_expand(command, words[2:], variables))
        elif command.name == "file" and len(words) > 2 and words[0].text in ("GLOB", "GLOB_RECURSE"):
            # A later glob into the same name replaces the earlier one, as it does when CMake runs.
            recursive = words[0].text == "GLOB_RECURSE"
            patterns = _expand(command, words[2:], variables)
            variables[words[1].text] = [(_recursive(text) if recursive else text, why) for text, why in patterns]
        elif _TARGETS.fullmatch(command.name) and words:
            _define(command, variables, targets)
        elif command.name in ("target_sources", "target_include_directories", "target_compile_definitions"):
            _add(command, variables, targets)
    return tuple(_extension(checkout, file, folder, target) for target in targets.values() if target.sources)


def _define(command: _Command, variables: _Variables, targets: dict[str, _Target]) -> None:
    name, *rest = command.arguments
    sections = _sections(command, rest, variables)
    texts = [text for part in sections.values() for text, _ in part]
    sources = [text for text in texts if text.endswith(UNIT_SUFFIXES)]
    languages = {text.upper() for text, _ in sections.get("LANGUAGE", ())}
    target = _Target(name, command, sources, languages)
    for text, why in (entry for part in sections.values() for entry in part):
        if text.startswith("-D") and "$" not in text and set(why) <= set(command.conditions):
            target.defines[text[2:]] = None
    targets[name.text] = target


def _add(command: _Command, variables: _Variables, targets: dict[str, _Target]) -> None:
    target = targets.get(command.arguments[0].text) if command.arguments else None
    if target is None:
        return
    for part in _sections(command, list(command.arguments[1:]), variables).values():
        for text, why in part:
            if command.name == "target_sources":
                target.sources.extend([text] if text.endswith(UNIT_SUFFIXES) else [])
            elif command.name == "target_include_directories":
                target.include_dirs.append(text)
            elif "$" not in text and set(command.conditions) | set(why) <= set(target.command.conditions):
                target.defines[text.removeprefix("-D")] = None


def _extension(checkout: Checkout, file: str, folder: str, target: _Target) -> Extension:
    files = find_files(checkout, _paths(target.sources, folder))
    location = Location(file, target.name.line, target.name.column, target.command.end_line)
    return Extension(
        name=target.name.text,
        backend="rocm" if target.languages == {"HIP"} else "cuda",
        location=location,
        sources=files.found,
        include_dirs=find_folders(checkout, _paths(target.include_dirs, folder)),
        defines=tuple(target.defines),
        package_dir=folder,
        diagnostics=tuple(Diagnostic(location, message) for message in describe(files)),
    )


def _exclusive(one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]) -> bool:
    return any(a == b and in_a != in_b for a, in_a in one for b, in_b in other)


def _paths(texts: list[str], folder: str) -> list[str]:
    paths: list[str] = []
    for text in texts:
        plain = re.sub(r"\$\{(CMAKE_(CURRENT_)?(SOURCE|LIST)_DIR|PROJECT_SOURCE_DIR)\}/?", "", text)
        whole = inside(folder, re.sub(r"\$\{[^}]*\}|\$<[^>]*>", "*", plain))
        if whole is not None:
            paths.append(whole)
    return paths


def _recursive(pattern: str) -> str:
    head, slash, tail = pattern.rpartition("/")
    return f"{head}{slash}**/{tail}"


_Entry = tuple[str, tuple[tuple[int, int], ...]]
_Variables = dict[str, list[_Entry]]


def _expand(command: _Command, words: tuple[_Argument, ...] | list[_Argument], variables: _Variables) -> list[_Entry]:
    """Return the words with variables replaced, each with the conditions under which it is there."""
    entries: list[_Entry] = []
    for word in words:
        whole = re.fullmatch(r"\$\{(\w+)\}", word.text)
        if whole and whole[1] in variables:
            entries.extend(variables[whole[1]])
            continue

        def known(reference: re.Match[str]) -> str:
            values = variables.get(reference[1], [])
            return values[0][0] if len(values) == 1 else reference[0]

        text = re.sub(r"\$\{(\w+)\}", known, word.text)
        parts = [text] if word.quoted and ";" not in text else text.split(";")
        entries.extend((part, command.conditions) for part in parts if part)
    return entries


def _sections(command: _Command, words: list[_Argument], variables: _Variables) -> dict[str, list[_Entry]]:
    """Return the words after each keyword, ``SOURCES a b LANGUAGE c``; those before the first one under no name."""
    sections: dict[str, list[_Entry]] = {"": []}
    current = ""
    takes_keywords = command.name != "target_compile_definitions"
    for word in words:
        is_scope = word.text in ("PRIVATE", "PUBLIC", "INTERFACE")
        if not word.quoted and (is_scope or (takes_keywords and _KEYWORD.fullmatch(word.text))):
            current = word.text
            sections.setdefault(current, [])
        else:
            sections[current].extend(_expand(command, [word], variables))
    return sections


def _commands(text: str) -> Iterator[_Command]:
    """Yield the commands, each with the ``if`` branches around it."""
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    line = 0
    depth = 0
    name = ""
    arguments: list[_Argument] = []
    stack: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(text):
        while line + 1 < len(starts) and starts[line + 1] <= token.start():
            line += 1
        if token["comment"] or (token["bracket"] and token["bracket"].startswith("#")):
            continue
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
            if depth == 0:
                _branch(name, stack, token.start())
                yield _Command(name, tuple(arguments), line + 1, tuple(stack))
        elif depth == 0:
            name, arguments = (token["bare"] or "").lower(), []
        elif depth > 0:
            quoted = token["quoted"] is not None
            word = token["quoted"] if quoted else (token["bare"] or token["bracket"])
            arguments.append(_Argument(word, line + 1, token.start() - starts[line] + 1, quoted))


def _branch(name: str, stack: list[tuple[int, int]], at: int) -> None:
    if name in ("if", "foreach", "while", "function", "macro"):
        stack.append((at, 0))
    elif name in ("else", "elseif") and stack:
        block, branch = stack.pop()
        stack.append((block, branch + 1))
    elif name in ("endif", "endforeach", "endwhile", "endfunction", "endmacro") and stack:
        stack.pop()
