"""Commands in processes of their own, at a pipe or at a terminal, and what the log has."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]


def spawn(broker, *arguments: str, **options) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TOCSIN_BROKER": broker.url}
    return subprocess.Popen(
        [sys.executable, "-m", "tocsin", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    )


def log(tocsin, topic: str, *options: str) -> list[str]:
    code, out, _ = tocsin("sub", topic, "--all", "--exit-at-end", *options)
    assert code == 0
    return out.splitlines()


def at_terminal(*arguments: str, typed: bytes = b"", **environment: str) -> tuple[int, str]:
    """Run a command at a terminal of its own; its exit code and all that appeared there."""
    outside, inside = pty.openpty()
    values = {"PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", **environment}
    running = subprocess.Popen(
        [sys.executable, "-m", "tocsin", *arguments],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, **values},
        start_new_session=True,
    )
    os.close(inside)
    os.write(outside, typed)
    shown = b""
    with suppress(OSError):  # how a terminal says that nobody is there any more
        while part := os.read(outside, 65_536):
            shown += part
    os.close(outside)
    return running.wait(30), shown.decode()
