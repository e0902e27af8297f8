"""What the root's setup.py calls the distribution."""

from __future__ import annotations

import ast

from tracer.python.conditions import fold
from tracer.python.files import Files
from tracer.python.flow import follow


def distribution_name(files: Files) -> str:
    """Return the name that the root's setup.py gives the distribution, as a package would be spelled; or nothing."""
    if "setup.py" not in files.names or (module := files.try_module("setup.py")) is None:
        return ""
    body = follow(module.top, {})
    for call, env in body.calls:
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        for keyword in call.keywords if called == "setup" else ():
            if keyword.arg == "name":
                value = fold(keyword.value, env, body.env)
                return value.replace("-", "_") if isinstance(value, str) else ""
    return ""
