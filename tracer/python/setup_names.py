"""The compiled modules that a checkout's setup.py files name."""

from __future__ import annotations

import ast
import re

from tracer.model import Location
from tracer.python.conditions import fold
from tracer.python.files import Files
from tracer.python.flow import Body, Env, follow
from tracer.python.syntax import Module

_EXTENSION = re.compile(r"\w*Extension\(")


def extension_names(files: Files) -> dict[str, Location]:
    """Return the dotted name of each extension that a setup.py builds, with the place of its name."""
    found: dict[str, Location] = {}
    for file in files.names:
        if file.rpartition("/")[2] == "setup.py" and _EXTENSION.search(files.try_text(file)):
            module = files.try_module(file)
            if module is not None:
                for name, place in _in_module(module):
                    found.setdefault(name, place)
    return found


def distribution_name(files: Files) -> str:
    """Return the name that the root's setup.py gives the distribution, as a package would be spelled; or nothing."""
    if "setup.py" not in files.names or (module := files.try_module("setup.py")) is None:
        return ""
    body = follow(module.top, {})
    for call, env in body.calls:
        if _last_name(call.func) == "setup":
            for keyword in call.keywords:
                if keyword.arg == "name":
                    return _string(keyword.value, env, body).replace("-", "_")
    return ""


def _in_module(module: Module) -> list[tuple[str, Location]]:
    body = follow(module.top, {})
    found = []
    for call, env in body.calls:
        if _last_name(call.func).endswith("Extension"):
            named = [keyword.value for keyword in call.keywords if keyword.arg == "name"] or call.args[:1]
            for node in named:
                name = _string(node, env, body)
                if name:
                    found.append((name, module.place(node)))
    return found


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _string(node: ast.expr, env: Env, body: Body) -> str:
    if isinstance(node, ast.JoinedStr):
        parts = [_string(p.value if isinstance(p, ast.FormattedValue) else p, env, body) for p in node.values]
        return "".join(parts) if all(parts) else ""
    value = fold(node, env, body.env)
    return value if isinstance(value, str) else ""
