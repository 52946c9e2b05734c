"""The child process: started at once, its output passed through, its signals passed on.

Nothing here imports more than the standard library: the command must not wait for us.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tocsin.integrations.command.output import Output

if TYPE_CHECKING:  # it is imported while the command runs
    from tocsin.integrations.command.process_usage import ProcessUsage

# What is passed on. A terminal sends these to the child as well: see `_passes_on`.
PASSED_ON: Final = frozenset(
    {
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGTSTP,
    }
)
WATCHED: Final = PASSED_ON | {signal.SIGCHLD}
SENT_BY_THE_KERNEL: Final = 0x80  # si_code of Ctrl-C, Ctrl-\\ and Ctrl-Z
NOT_FOUND: Final = 127  # as shells have it
NOT_EXECUTABLE: Final = 126
OF_SIGNALS: Final = 128


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended, when, and what it and the processes that it waited for have used."""

    exit_code: int
    """As a shell reports it: 128 and the number of the signal, if one ended it."""
    signal: int | None
    at_ns: int
    used: resource.struct_rusage | None
    problem: str = ""
    """Why it could not be started."""


class Child:
    """A command that runs. Make it before any thread is started."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # or its end would go unnoticed
        before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        self.output = Output()
        self.ended: Ended | None = None
        self.pid: int | None = None
        self.use: ProcessUsage | None = None
        self.started_ns = time.time_ns()
        try:
            self._process = subprocess.Popen(
                command,
                stdout=self.output.stdout,
                stderr=self.output.stderr,
                env=environment,
                close_fds=False,  # job servers and process substitutions pass descriptors on
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
            )
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            problem = f"{command[0]}: {_why(error)}"
            self.ended = Ended(code, None, time.time_ns(), None, problem)
        else:
            self.pid = self._process.pid
        self.output.begin()

    def wait(self, first_and_every_s: tuple[float, float], look: Callable[[], None]) -> Ended:
        """Until it ends; `look` is called every now and then. Signals are passed on meanwhile."""
        first_s, every_s = first_and_every_s
        next_s = time.monotonic() + first_s
        while self.ended is None:
            left_s = next_s - time.monotonic()
            came = signal.sigtimedwait(WATCHED, max(0.0, left_s))
            if came is None:
                next_s = time.monotonic() + every_s
                look()
            elif came.si_signo != signal.SIGCHLD:
                self._pass_on(came)
            self._look_for_end()
        return self.ended

    def _look_for_end(self) -> None:
        assert self.pid is not None
        pid, status, used = os.wait4(self.pid, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            self._process.returncode = code
            ended_by = -code if code < 0 else None
            shown = code if ended_by is None else OF_SIGNALS + ended_by
            self.ended = Ended(shown, ended_by, time.time_ns(), used)

    def _pass_on(self, came: signal.struct_siginfo) -> None:
        assert self.pid is not None
        number = signal.Signals(came.si_signo)
        if came.si_code != SENT_BY_THE_KERNEL:  # or else the terminal sent it to both of us
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
        if number == signal.SIGTSTP:
            os.kill(os.getpid(), signal.SIGSTOP)  # until somebody lets both go on
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGCONT)


def exit_like(ended: Ended) -> int:
    """The exit code; a command that a signal ended has us end by the same one."""
    sys.stdout.flush()
    sys.stderr.flush()
    if ended.signal is not None:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the core that matters is its own
            if ended.signal != signal.SIGKILL:
                signal.signal(ended.signal, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
            os.kill(os.getpid(), ended.signal)
    return ended.exit_code


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "command not found"
    return (error.strerror or str(error)).lower()
