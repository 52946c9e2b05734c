"""A site with an authority, and a broker that knows clients by their certificates."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest

from served import Served
from tls_site import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def broker(site: Site) -> Iterator[Served]:
    with site.broker("--pegasus", "127.0.0.1:0") as running:
        yield running
        assert "Traceback" not in running.said()


@pytest.fixture(scope="module")
def alice(site: Site) -> ssl.SSLContext:
    return site.context(site.issue("alice"))
