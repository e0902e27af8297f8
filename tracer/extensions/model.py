"""What an extension module is."""

from __future__ import annotations

from tracer.model import Diagnostic, Location
from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class Extension:
    """One compiled module that a checkout builds.

    Attributes:
        name: the module's name as the build states it; dotted where it lives in a package. A ``*`` stands for a part
            that the build computes.
        backend: ``cuda`` or ``rocm``.
        location: where the name stands in setup.py or CMakeLists.txt.
        sources: the translation units that a build without any option lists, in its order, as far as they exist; no
            headers. Where the building machine decides, both answers are listed.
        include_dirs: folders inside the checkout that the build searches for headers, as far as they exist.
        defines: macros, as ``NAME`` or ``NAME=VALUE``, that a build without any option or environment sets.
        package_dir: folder of the build description, ``""`` for the root.
        diagnostics: what the build lists and the checkout does not have, and what could not be understood.
    """

    name: str
    backend: str
    location: Location
    sources: tuple[str, ...]
    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    package_dir: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
