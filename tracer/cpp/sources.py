"""Which translation units an extension has, what each one reads, and with which arguments it is parsed.

All CUDA files of one folder are read as one unit, through a file in memory that includes them one after the other.
Their headers, which are guarded, are then parsed once instead of once a file: all specializations of a release cost as
much as one. C++ files keep a unit each, because the host code defines static functions of the same name.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from tracer.checkout import Checkout
from tracer.cpp import instantiations
from tracer.errors import SourceError
from tracer.extensions import Extension
from tracer.records import dataclass

STUBS = Path(__file__).parent / "stubs"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">]', re.MULTILINE)
_CUDA = (".cu",)
_LANGUAGE = (
    "-x cuda --cuda-gpu-arch=sm_80 --cuda-host-only -nocudainc -nocudalib -nostdinc -nostdinc++ "
    "--no-cuda-version-check -std=c++17 -ferror-limit=0 -Wno-everything -DARCH_SUPPORTS_FLASH"
).split()


@dataclass(frozen=True, slots=True)
class UnitPlan:
    """One unit to parse.

    Attributes:
        name: what to call it in a message.
        main: path of the file to parse, relative to the checkout.
        text: contents of the main file where it exists in memory only.
        arguments: the parser's arguments but for the include folders.
        include_dirs: folders to search for headers, relative to the checkout.
        files: every file of the checkout that it can read, its own sources first.
        key: hash of the contents of all those and of the arguments.
        edited: (file, text) of the files that the parser is shown with other text than they have, at the same offsets.
    """

    name: str
    main: str
    text: str | None
    arguments: tuple[str, ...]
    include_dirs: tuple[str, ...]
    files: tuple[str, ...]
    key: str
    edited: tuple[tuple[str, str], ...] = ()


def plan_units(checkout: Checkout, extension: Extension) -> tuple[UnitPlan, ...]:
    """Return the units of an extension, C++ files first.

    Raises:
        SourceError: a file that a unit reads is binary, too large or no UTF-8 text.
    """
    commands = _compile_commands(checkout.root)
    plans = [_plan(checkout, extension, (source,), commands) for source in extension.sources if not _is_cuda(source)]
    folders: dict[str, list[str]] = {}
    for source in extension.sources:
        if _is_cuda(source):
            folders.setdefault(posixpath.dirname(source), []).append(source)
    plans += [_plan(checkout, extension, tuple(sources), commands) for sources in folders.values()]
    return tuple(plans)


def apart(checkout: Checkout, extension: Extension, sources: Iterable[str]) -> tuple[UnitPlan, ...]:
    """Return one unit for each of ``sources``, for files that cannot be read together."""
    commands = _compile_commands(checkout.root)
    return tuple(_plan(checkout, extension, (source,), commands) for source in sources)


def _is_own(extension: Extension, directory: str) -> bool:
    """Tell whether an include folder holds the extension's own headers.

    Its sources lie in it, or it lies directly in or beside their folder, or near the root of the checkout, as a folder
    does that several extensions share. Anything else, such as ``library/include``, is a library that lies in the
    checkout as a submodule or was shipped with the release: the stub headers stand in for it, so that a checkout reads
    alike with and without it.
    """
    folders = {posixpath.dirname(source) for source in extension.sources}
    holds_sources = any(f"{folder}/".startswith(f"{directory}/") for folder in folders)
    around = folders | {posixpath.dirname(folder) for folder in folders if folder}
    near_the_root = directory.count("/") < 2 and posixpath.basename(directory) != "include"
    return holds_sources or near_the_root or posixpath.dirname(directory) in around


def _is_cuda(source: str) -> bool:
    return source.endswith(_CUDA)


def _plan(
    checkout: Checkout, extension: Extension, sources: tuple[str, ...], commands: dict[str, tuple[str, ...]]
) -> UnitPlan:
    folder = posixpath.dirname(sources[0])
    own = [directory for directory in extension.include_dirs if _is_own(extension, directory)]
    include_dirs = tuple(dict.fromkeys([folder, *own]))
    defines = tuple(f"-D{define}" for define in extension.defines)
    compiled_with = commands.get(sources[0], ())
    arguments = (*_LANGUAGE, *defines, *compiled_with)
    contents = _reachable(checkout, sources, include_dirs)
    if len(sources) == 1:
        name, main, text = sources[0], sources[0], None
    else:
        name = f"the {len(sources)} CUDA files of {folder or 'the root folder'}"
        main = posixpath.join(folder, "flashtracer_all_of_this_folder.cu")
        text = "".join(f'#include "{posixpath.basename(source)}"\n' for source in sources)
    digest = hashlib.sha256(repr((arguments, include_dirs, text)).encode())
    for file, content in contents.items():
        digest.update(f"{file}\0{len(content)}\0".encode())
        digest.update(content.encode())
    shown = ((file, instantiations.without(content)) for file, content in contents.items())
    edited = tuple((file, content) for file, content in shown if content is not None)
    return UnitPlan(name, main, text, arguments, include_dirs, tuple(contents), digest.hexdigest(), edited)


def _reachable(checkout: Checkout, sources: tuple[str, ...], include_dirs: tuple[str, ...]) -> dict[str, str]:
    """Return the files of the checkout that the sources include, whatever the preprocessor will say, with contents.

    What is not found is a library's header: its stub stands elsewhere.
    """
    contents: dict[str, str] = {}
    waiting = list(reversed(sources))
    missing: set[str] = set()
    while waiting:
        file = waiting.pop()
        if file in contents:
            continue
        contents[file] = checkout.read_text(file)
        for match in _INCLUDE.finditer(contents[file]):
            included = match.group(1)
            for folder in (posixpath.dirname(file), *include_dirs):
                candidate = posixpath.normpath(posixpath.join(folder, included))
                if candidate in contents:
                    break
                if candidate in missing or candidate.startswith(".."):
                    continue
                if checkout.exists(candidate):
                    waiting.append(candidate)
                    break
                missing.add(candidate)
    return contents


@lru_cache(maxsize=8)
def _compile_commands(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the macros and the language standard of each file in ``compile_commands.json``, where there is one."""
    for place in (root / "compile_commands.json", root / "build" / "compile_commands.json"):
        if not place.is_file():
            continue
        try:
            entries = json.loads(place.read_text(encoding="utf-8"))
            return dict(_compile_command(root, entry) for entry in entries)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            raise SourceError(
                f"{place.name} is no compilation database ({place}); regenerate it, or remove it: it is not needed"
            ) from None
    return {}


def _compile_command(root: Path, entry: dict[str, object]) -> tuple[str, tuple[str, ...]]:
    directory, file = Path(str(entry["directory"])), Path(str(entry["file"]))
    words = entry.get("arguments") or str(entry["command"]).split()
    assert isinstance(words, list)
    path = (directory / file).resolve()
    relative = path.relative_to(root.resolve()).as_posix() if path.is_relative_to(root.resolve()) else str(path)
    kept = []
    previous = ""
    for word in map(str, words):
        if previous == "-D":
            kept.append(f"-D{word}")
        elif re.match(r"-D\w|-std=c\+\+|--?U\w", word):
            kept.append(word)
        previous = word
    return relative, tuple(kept)


def leaves_first(checkout: Checkout, files: tuple[str, ...]) -> list[str]:
    """Return files in an order in which each comes after the files that it includes."""
    by_name: dict[str, list[str]] = {}
    for file in files:
        by_name.setdefault(posixpath.basename(file), []).append(file)
    includes = {
        file: [
            other
            for match in _INCLUDE.finditer(checkout.read_text(file))
            for other in by_name.get(posixpath.basename(match.group(1)), ())
        ]
        for file in files
    }
    ordered: dict[str, None] = {}
    open_files: set[str] = set()
    stack = [(file, False) for file in reversed(files)]
    while stack:
        file, done = stack.pop()
        if done:
            ordered[file] = None
        elif file not in open_files:
            open_files.add(file)
            stack.append((file, True))
            stack += [(other, False) for other in includes[file] if other not in open_files]
    return list(ordered)


def truncated_file(checkout: Checkout, files: Iterable[str]) -> tuple[str, int] | None:
    """Return the first file whose braces or comments do not close, and the line where the open one begins.

    Only asked when the parser already complained: a header may legally open a brace that another one closes.
    """
    for file in files:
        line = _unclosed(checkout.read_text(file))
        if line is not None:
            return file, line
    return None


_LEXEME = re.compile(
    r'//[^\n]*|/\*.*?\*/|/\*|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|[{}]|\n[ \t]*#[^\n]*',
    re.DOTALL,
)


def _unclosed(text: str) -> int | None:
    """Return the line of the outermost brace or comment that does not close; None when all do.

    Of alternatives that the preprocessor chooses between, only the first is counted.
    """
    open_braces: list[int] = []
    skipping = 0
    branches: list[bool] = []
    for match in _LEXEME.finditer("\n" + text):
        token = match.group()
        directive = re.match(r"\n[ \t]*#[ \t]*(\w+)", token)
        if directive:
            word = directive.group(1)
            if word in ("if", "ifdef", "ifndef"):
                branches.append(False)
            elif word in ("else", "elif") and branches and not branches[-1]:
                branches[-1] = True
                skipping += 1
            elif word == "endif" and branches and branches.pop():
                skipping -= 1
        elif skipping:
            continue
        elif token == "/*":
            return text.count("\n", 0, match.start()) + 1
        elif token == "{":
            open_braces.append(match.start() - 1)
        elif token == "}" and open_braces:
            open_braces.pop()
    return text.count("\n", 0, open_braces[0]) + 1 if open_braces else None
