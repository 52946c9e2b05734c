"""The filling process as the broker sees it: started, asked, and ended."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import tocsin
from tocsin.drivers.archive.messages import (
    LINE_BYTES_MAX,
    SAMPLE_ROWS_MAX,
    Failed,
    Roll,
    Rolled,
    Samples,
    WriterOptions,
    encode,
    read_answer,
)

MODULE: Final = "tocsin.drivers.archive.writer_main"
ANSWER_S_MAX: Final = 600.0  # ten files and a merge take seconds; a disk that hangs takes for ever
CLOSING_S: Final = 1.0  # for the file that it writes; a cut in the middle does no harm
KILLED_S: Final = 2.0  # ends nearly any process; one that waits for a disk that hangs goes on
SAID_BYTES_MAX: Final = 4_096  # of its last words


class WriterProcess:
    """A child that fills the archive. One question at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._input = process.stdin
        self._output = process.stdout
        self._said = b""
        self._listening = asyncio.ensure_future(self._listen(process.stderr))

    @classmethod
    async def start(cls, options: WriterOptions) -> Self:
        """OSError if the system does not let us."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the directory that we were started in is nobody's library
            "-m",
            MODULE,
            encode(options).decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(),
            limit=LINE_BYTES_MAX,
            start_new_session=True,  # keys pressed at the broker's terminal are not for it
        )
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, task: Roll) -> Rolled | Failed:
        """Its answer, or what kept it from answering."""
        try:
            self._input.write(encode(task) + b"\n")
            line = await asyncio.wait_for(self._output.readline(), ANSWER_S_MAX)
        except TimeoutError:
            return Failed(
                "T404",
                f"the archive process did not answer for {ANSWER_S_MAX:.0f} s",
                "Check the disk.",
            )
        except (OSError, ValueError) as error:
            return Failed(
                "T000",
                f"the archive process does not take requests: {error}",
                "It is started again.",
            )
        if line:
            answer: Rolled | Failed = read_answer(line)
            return answer
        code = await self._ended(CLOSING_S)
        await asyncio.wait({self._listening}, timeout=CLOSING_S)
        words = self._said.decode(errors="replace").strip()
        ended = "no longer answers" if code is None else f"ended with {code}"
        return Failed(
            "T000", f"the archive process {ended}. {words}".strip(), "It is started again."
        )

    def keep(self, kind: str, rows: list[dict[str, Any]]) -> None:
        """Have these rows written down. Not answered."""
        with suppress(OSError):
            for start in range(0, len(rows), SAMPLE_ROWS_MAX):
                some = Samples(kind, rows[start : start + SAMPLE_ROWS_MAX])
                self._input.write(encode(some) + b"\n")

    async def close(self) -> bool:
        """Let it finish what it writes, if that is quick. False if not even a kill ended it."""
        with suppress(OSError):
            self._input.close()
        code = await self._ended(CLOSING_S)
        if code is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            code = await self._ended(KILLED_S)
        self._listening.cancel()
        return code is not None

    async def _ended(self, limit_s: float) -> int | None:
        """Its exit code; None if it goes on for so long."""
        try:
            return await asyncio.wait_for(self._process.wait(), limit_s)
        except TimeoutError:
            return None

    async def _listen(self, errors: asyncio.StreamReader) -> None:
        while read := await errors.read(SAID_BYTES_MAX):
            self._said = (self._said + read)[-SAID_BYTES_MAX:]


def _environment() -> dict[str, str]:
    """Ours, and such that the child finds the same Tocsin as we did."""
    ours = str(Path(tocsin.__file__).parent.parent)
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{ours}{os.pathsep}{known}" if known else ours}
