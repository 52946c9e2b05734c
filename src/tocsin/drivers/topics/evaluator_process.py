"""A process that evaluates XPath or XQuery as the broker sees it: started, asked, and ended.

Synchronous, for the threads that search: whoever asks waits, for so long and no longer.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

import tocsin
from tocsin.drivers.topics.frames import (
    FRAME_BYTES_MAX,
    HEAD,
    Answer,
    Language,
    Ready,
    Refused,
    Task,
    Verdicts,
    frame,
    read_answer,
)

MODULE: Final = "tocsin.drivers.topics.evaluator_main"
START_S_MAX: Final = 30.0  # it takes a fraction of a second; a machine may be very busy
ENDED_S_MAX: Final = 5.0  # after a kill
PIPE_BYTES: Final = 1 << 16


class Stopped(Exception):
    """It did not answer in time, or ended. It is of no use any more."""


class EvaluatorProcess:
    """A child. One task at a time."""

    def __init__(self, language: Language) -> None:
        """OSError if the system does not let us; Stopped if it does not start."""
        self.tasks = 0
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, language],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",  # Saxon says in its errors where it runs
            env=_environment(),
            start_new_session=True,  # keys pressed at the broker's terminal are not for it
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin.fileno()
        self._output = self._process.stdout.fileno()
        os.set_blocking(self._input, False)
        os.set_blocking(self._output, False)
        try:
            if not isinstance(self._answer(time.monotonic() + START_S_MAX), Ready):
                raise Stopped("it did not start")
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, task: Task, limit_s: float) -> Verdicts | Refused:
        """Its answer. Raises Stopped if there is none within the time."""
        self.tasks += 1
        until_s = time.monotonic() + limit_s
        self._send(frame(task), until_s)
        answer = self._answer(until_s)
        if isinstance(answer, Ready):
            raise Stopped("it started again")
        return answer

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDED_S_MAX)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _send(self, data: bytes, until_s: float) -> None:
        left = memoryview(data)
        while left:
            self._wait(self._input, select.POLLOUT, until_s)
            try:
                left = left[os.write(self._input, left[:PIPE_BYTES]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise Stopped(f"it takes no tasks: {error.strerror}") from None

    def _answer(self, until_s: float) -> Answer:
        (size,) = HEAD.unpack(self._receive(HEAD.size, until_s))
        if size > FRAME_BYTES_MAX:
            raise Stopped("it answered nonsense")
        try:
            answer: Answer = read_answer(self._receive(size, until_s))
        except msgspec.DecodeError:
            raise Stopped("it answered nonsense") from None
        return answer

    def _receive(self, size: int, until_s: float) -> bytes:
        received = bytearray()
        while len(received) < size:
            self._wait(self._output, select.POLLIN, until_s)
            try:
                read = os.read(self._output, min(size - len(received), PIPE_BYTES))
            except BlockingIOError:
                continue
            if not read:
                raise Stopped(f"it ended{self._code()}")
            received += read
        return bytes(received)

    def _wait(self, descriptor: int, event: int, until_s: float) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        if not poll.poll(max(0.0, until_s - time.monotonic()) * 1_000):
            raise Stopped("it took too long")

    def _code(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            return f" with {self._process.wait(ENDED_S_MAX)}"
        return ""


def _environment() -> dict[str, str]:
    """Where our modules are, and nothing else of ours."""
    here = str(Path(tocsin.__file__).parent.parent)
    return {"PYTHONPATH": here, "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
