"""Which project a folder holds, in which version, and where its public repository is — from its own files."""

from __future__ import annotations

import ast
import os
import posixpath
import re
from pathlib import Path

from tracer.errors import CheckoutError, nearest
from tracer.records import dataclass

_CUDA_SUFFIXES = (".cu", ".cuh")
#: How deep below csrc/ the CUDA sources of an extension stand; deeper ones belong to a vendored library's own tests.
_CUDA_DEPTH = 3
_SMALL = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Identity:
    """What the files of a checkout say about it.

    Attributes:
        flavour: the distribution's name, spelled out: ``flash-attention``, ``vllm-flash-attention``, ….
        version: the version, or None.
    """

    flavour: str
    version: str | None


def identify(root: Path) -> Identity:
    """Return flavour and version of the checkout at ``root``.

    Raises:
        CheckoutError: if the folder does not hold Python packages and CUDA sources as a checkout does.
    """
    require_checkout(root)
    metadata = _package_info(root)
    name = metadata.get("Name") or _setup_keyword(root, "name")
    packages = _packages(root)
    if not name and packages:
        name = packages[0]
    version = _stated_version(root, packages, name) or metadata.get("Version") or _setup_keyword(root, "version")
    return Identity(_flavour(name), version)


def require_checkout(root: Path) -> None:
    """Raise CheckoutError, saying what is missing and what to do, unless ``root`` is a checkout."""
    if is_checkout(root):
        return
    for parent in list(root.parents)[:8]:
        if is_checkout(parent):
            inside = root.relative_to(parent).as_posix()
            raise CheckoutError(f"{root} is the folder {inside} inside a checkout; give its root instead: {parent}")
    try:
        names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in os.scandir(root))
    except OSError as error:
        raise CheckoutError(f"cannot list the folder {root}: {error.strerror}; give a readable checkout") from error
    children = [name.rstrip("/") for name in names if name.endswith("/") and is_checkout(root / name)]
    if children:
        raise CheckoutError(f"{root} is no checkout, but holds {', '.join(children[:3])}; give {root / children[-1]}")
    visible = [name for name in names if not name.startswith(".")]
    found = ", ".join(visible[:6]) + (f" and {len(visible) - 6} more" if len(visible) > 6 else "")
    if "csrc/" in names:
        raise CheckoutError(
            f"no CUDA sources (.cu) in {root / 'csrc'}; found {_listing(root / 'csrc')}; give the root of a "
            "flash-attention checkout whose csrc/ is complete"
        )
    python = _packages(root) or tuple(name for name in visible if name.endswith(".py"))
    if python:
        raise CheckoutError(
            f"only the Python side in {root} ({', '.join(python[:3])}), no csrc/ folder with CUDA sources: an "
            "installed package has none; give the root of a source checkout, or pypi:VERSION for a release"
        )
    raise CheckoutError(
        f"no csrc/ folder with CUDA sources in {root}; found {found or 'an empty folder'}; give the root of a "
        "flash-attention checkout, or pypi:VERSION for a release"
    )


def is_checkout(root: Path) -> bool:
    """Tell whether a folder holds CUDA sources where a flash-attention or PyTorch checkout has them."""
    if _has_cuda(root / "csrc", _CUDA_DEPTH):
        return True
    # PyTorch keeps its copy among the native operators instead of in a csrc/ folder in the root.
    operators = root / "aten" / "src" / "ATen" / "native"
    return operators.is_dir() and any(_has_cuda(folder, 2) for folder in operators.glob("transformers/**/flash_attn"))


def missing_folder(path: Path) -> CheckoutError:
    """Return the error for a folder that does not exist, with the names beside it that are spelled alike."""
    parent = path.parent
    while not parent.is_dir() and parent != parent.parent:
        parent = parent.parent
    try:
        wanted = path.relative_to(parent).parts[0]
        alike = nearest(wanted, [entry.name for entry in os.scandir(parent) if entry.is_dir()])
    except (OSError, IndexError):
        alike = ()
    hint = f"nearest in {parent}: {', '.join(alike)}" if alike else f"nothing in {parent} has a similar name"
    return CheckoutError(f"no such folder: {path}; {hint}; give a checkout's root, FOLDER@REF or pypi:VERSION")


def stated_repository(root: Path) -> str | None:
    """Return the repository's URL that the package metadata or setup.py states, or None."""
    metadata = _package_info(root)
    return tidy_repository(metadata.get("Home-page") or _setup_keyword(root, "url"))


def tidy_repository(url: str | None) -> str | None:
    """Return a repository's URL as one opens it in a browser: https, no credentials, no ``.git``."""
    if not url:
        return None
    scp = re.fullmatch(r"(?:ssh://)?[\w.-]+@([\w.-]+)[:/](?!\d+/)(.+)", url.strip())
    rest = f"{scp[1]}/{scp[2]}" if scp else re.sub(r"^\w+://(?:[^@/]*@)?", "", url.strip())
    if not scp and not re.match(r"(https?|git|ssh)://", url.strip()):
        return None
    rest = rest.rstrip("/").removesuffix(".git")
    return f"https://{rest}" if rest.count("/") >= 2 else None


def stated_tag(root: Path, version: str | None) -> str | None:
    """Return the tag under which the repository holds this release, where setup.py says how tags are made.

    Later releases fetch their prebuilt wheels from ``…/releases/download/<tag>/…`` and build ``<tag>`` from the
    version. Earlier ones say nothing, and a tag guessed from the version would sometimes lead nowhere: there are
    releases on the package index that were never tagged under their version.
    """
    tree = _setup_tree(root)
    if tree is None or not version:
        return None
    constants = _constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            template = _text(node.func.value, constants) or ""
            found = re.search(r"/releases/download/\{(\w+)\}/", template)
            for keyword in node.keywords:
                if found and keyword.arg == found[1] and isinstance(keyword.value, ast.JoinedStr):
                    return _fill(keyword.value, version)
    return None


def _fill(pattern: ast.JoinedStr, version: str) -> str | None:
    """Return an f-string with its one replaced part, the version."""
    variable = [part for part in pattern.values if isinstance(part, ast.FormattedValue)]
    if len(variable) != 1 or "version" not in ast.unparse(variable[0].value).lower():
        return None
    return "".join(str(part.value) if isinstance(part, ast.Constant) else version for part in pattern.values)


def _flavour(name: str | None) -> str:
    words = re.split(r"[-_.]+", (name or "unknown").lower())
    if words == ["torch"]:
        return "pytorch"
    return "-".join("attention" if word == "attn" else word for word in words)


def _packages(root: Path) -> tuple[str, ...]:
    try:
        entries = sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return ()
    return tuple(name for name in entries if name != "tests" and (root / name / "__init__.py").is_file())


def _stated_version(root: Path, packages: tuple[str, ...], name: str | None) -> str | None:
    """Return ``__version__`` of the package that is named like the distribution, else of the first that has one."""
    own = re.sub(r"[-_.]+", "_", name or "").lower()
    for package in sorted(packages, key=lambda candidate: (candidate.lower() != own, candidate)):
        tree = _parse(root / package / "__init__.py")
        version = _constants(tree).get("__version__") if tree else None
        if version:
            return version
    return None


def _package_info(root: Path) -> dict[str, str]:
    """Return the fields of PKG-INFO, which a source archive has; of a repeated field the first."""
    fields: dict[str, str] = {}
    for line in (_small_text(root / "PKG-INFO") or "").splitlines():
        if not line.strip():
            break
        key, colon, value = line.partition(": ")
        if colon and value.strip() not in ("", "UNKNOWN"):
            fields.setdefault(key, value.strip())
    return fields


def _setup_keyword(root: Path, keyword: str) -> str | None:
    tree = _setup_tree(root)
    if tree is None:
        return None
    constants = _constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and posixpath.basename(ast.unparse(node.func).replace(".", "/")) == "setup":
            for argument in node.keywords:
                if argument.arg == keyword:
                    return _text(argument.value, constants)
    return None


def _setup_tree(root: Path) -> ast.Module | None:
    return _parse(root / "setup.py")


def _constants(tree: ast.Module) -> dict[str, str]:
    """Return the module-level names that hold one text, assigned exactly once."""
    texts: dict[str, str] = {}
    several: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in texts:
                several.add(name)
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                texts[name] = node.value.value
    return {name: text for name, text in texts.items() if name not in several}


def _text(node: ast.expr, constants: dict[str, str]) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return constants.get(node.id) if isinstance(node, ast.Name) else None


def _parse(path: Path) -> ast.Module | None:
    text = _small_text(path)
    if text is None:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # An odd setup.py makes the identity less complete, never the checkout unreadable.
        return None


def _small_text(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _SMALL:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _has_cuda(folder: Path, depth: int) -> bool:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return False
    if any(entry.name.endswith(_CUDA_SUFFIXES) for entry in entries):
        return True
    return depth > 1 and any(
        _has_cuda(folder / entry.name, depth - 1) for entry in entries if entry.is_dir(follow_symlinks=False)
    )


def _listing(folder: Path) -> str:
    names = sorted(os.listdir(folder))
    return (", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")) or "nothing"
