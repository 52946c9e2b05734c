"""A certificate for links over TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from pki import own_files


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A throw-away certificate for this machine, which is its own authority."""
    folder = tmp_path_factory.mktemp("tls")
    own_files(folder, "localhost")
    return folder
