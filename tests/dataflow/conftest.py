"""Kernels of releases, opened once for each file of tests that changes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.dataflow.mutants import Subject, Subjects, subject
from tests.releases import release


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subjects]:
    """Yield what opens a release's kernel of a role: each one once, when it is first asked for."""
    opened: dict[tuple[str, str], Subject] = {}
    with ExitStack() as stack:

        def get(version: str, role: str) -> Subject:
            if (version, role) not in opened:
                scratch = tmp_path_factory.mktemp(role)
                opened[version, role] = stack.enter_context(subject(release(version), role, scratch))
            return opened[version, role]

        yield get


@pytest.fixture(scope="module")
def forward(subjects: Subjects) -> Subject:
    """Return the forward kernel of release 2.8.3."""
    return subjects("2.8.3", "forward")


@pytest.fixture(scope="module")
def backward(subjects: Subjects) -> Subject:
    """Return the backward kernel of release 2.8.3."""
    return subjects("2.8.3", "backward")
