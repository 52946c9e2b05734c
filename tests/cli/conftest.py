"""One real broker for the tests of the command line, and topics of their own for each test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from served import Served, served
from tocsin.cli.main import run

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"test/{os.urandom(6).hex()}"


@pytest.fixture
def in_process(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process; its exit code, output and errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([*arguments])
        written = capsys.readouterr()
        return code, written.out, written.err

    return call


@pytest.fixture
def tocsin(in_process: Command, broker: Served) -> Command:
    """Runs a command at the broker."""
    return lambda *arguments: in_process(*arguments, "--broker", broker.url)
