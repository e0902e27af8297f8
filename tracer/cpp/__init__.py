"""C++ and CUDA source as one syntax tree of our own, and the facts that follow from it.

libclang is known in this package and nowhere else. :class:`CppSource` is what the rest of the program talks to.
"""

from __future__ import annotations

from tracer.cpp.source import Binding, CppSource
from tracer.cpp.store import Store

__all__ = ["Binding", "CppSource", "Store"]
