"""C++ and CUDA source as one syntax tree of our own, and the facts that follow from it.

libclang is known in this package and nowhere else. :class:`CppSource` is what the rest of the program talks to. The
names are loaded when first used: the parser process, which lives in this package too, needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracer.cpp.source import Binding, CppSource
    from tracer.cpp.store import Store

__all__ = ["Binding", "CppSource", "Store"]


def __getattr__(name: str) -> Any:
    """Load a name from its module."""
    if name in ("Binding", "CppSource"):
        from tracer.cpp import source

        return getattr(source, name)
    if name == "Store":
        from tracer.cpp.store import Store

        return Store
    raise AttributeError(f"module 'tracer.cpp' has no attribute '{name}'")
