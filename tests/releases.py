"""Real releases for tests: fetched through flashtracer's own ``pypi:`` opening and kept in its cache between runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.checkout import Checkout, open_checkout
from tracer.errors import CheckoutError


def release_checkout(version: str) -> Checkout:
    """Return a release as a checkout; a test that cannot get it fails and says why."""
    try:
        return open_checkout(f"pypi:{version}")
    except CheckoutError as error:
        pytest.fail(f"release {version} is needed and cannot be opened: {error}", pytrace=False)


def release(version: str) -> Path:
    """Return the folder with the unpacked source of a release; a test that cannot get it fails and says why."""
    return release_checkout(version).root
