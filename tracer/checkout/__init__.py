"""A folder, a git ref or a release, opened as a :class:`Checkout`: its files, flavour, version and permalinks."""

from __future__ import annotations

from tracer.checkout.folder import Checkout
from tracer.checkout.opening import open_checkout

__all__ = ["Checkout", "open_checkout"]
