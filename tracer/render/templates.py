"""Finds and fills the Jinja2 templates."""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tracer.render.escape import Markdown, code, link, words

if TYPE_CHECKING:
    from jinja2 import Environment

_SECTIONS = "report/"


def folder() -> str:
    """Return the folder of the templates: in the installed package, or beside it in a repository."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "templates")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(package), "templates")


def fill(name: str, values: Mapping[str, object], templates: str | None = None) -> str:
    """Fill a Markdown template.

    Whatever a template shows is escaped unless it is `Markdown`, so that forgetting a filter cannot let text from a
    checkout through. Filters: ``code`` for names and paths, ``link`` for an address.

    Args:
        name: of the template, such as ``report.md.j2``.
        values: what the template may show; ``sections`` is added, the names of all section templates in order.
        templates: the folder to read them from; the program's own if None.
    """
    environment = _environment(templates or folder())
    sections = sorted(name for name in environment.list_templates() if name.startswith(_SECTIONS))
    text = environment.get_template(name).render({**values, "sections": sections})
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _environment(templates: str) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(templates),
        autoescape=False,  # It escapes for HTML; `finalize` escapes for Markdown.
        finalize=_escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["code"] = lambda value: code(str(value))
    environment.filters["link"] = lambda text, address: link(
        text if isinstance(text, Markdown) else words(text), address
    )
    return environment


def _escaped(value: object) -> str:
    return value if isinstance(value, Markdown) else words(str(value))
