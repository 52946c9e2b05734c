"""A certificate for links over TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A throw-away certificate for this machine, which is its own authority."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", "own.key", "-out", "own.pem", "-days", "2", "-subj",
            "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
        ],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder
