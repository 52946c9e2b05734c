"""A broker where everybody has to sign in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from users import REQUIRED

from access.issuer import OpenIdIssuer
from served import Served, served


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    """One for the tests that need none of their own; each makes its principals' own names."""
    with served(env=REQUIRED) as running:
        yield running


@pytest.fixture
def issuer() -> Iterator[OpenIdIssuer]:
    with OpenIdIssuer() as running:
        yield running
