"""What an exception says about the activity that it ended. Pure."""

from __future__ import annotations

import shlex
import traceback
from subprocess import CalledProcessError, TimeoutExpired

from tocsin.client.tracking.run import Pairs, head_of, tail_of

KILLED_FOR_MEMORY = 137  # what a shell and a container say of a process that the kernel killed
FRAMES_MAX = 30


def ending_of(error: BaseException) -> str:
    """The concept of an activity that ended by this."""
    if isinstance(error, MemoryError):
        return "ActivityOutOfMemory"
    if isinstance(error, TimeoutError | TimeoutExpired):
        return "ActivityTimedOut"
    if isinstance(error, CalledProcessError) and error.returncode == KILLED_FOR_MEMORY:
        return "ActivityOutOfMemory"
    if not isinstance(error, Exception) and not isinstance(error, SystemExit):
        # KeyboardInterrupt, CancelledError and GeneratorExit: somebody did not want it any more.
        return "ActivityCancelled"
    return "ActivityFailed"


def run_ending_of(error: BaseException) -> str:
    """The concept of a run that ended by this."""
    if isinstance(error, SystemExit):
        return "WorkflowTerminated" if error.code else "WorkflowCompleted"
    return "WorkflowTerminated" if isinstance(error, Exception) else "WorkflowAborted"


def fault_pairs(error: BaseException | str) -> Pairs:
    """The diagnosis: message, trace, and of a command its line, exit code and last words."""
    if isinstance(error, str):
        return {"ErrorMessage": head_of(error)}
    words = _shown(error)
    pairs = {"ErrorMessage": head_of(words or type(error).__name__)}
    if error.__traceback__ is not None:
        pairs["ErrorTrace"] = tail_of(_trace(error))
    if isinstance(error, SystemExit):
        pairs["ExitCode"] = str(error.code if isinstance(error.code, int) else 1)
    if isinstance(error, CalledProcessError):
        pairs["ExitCode"] = str(error.returncode)
    if isinstance(error, CalledProcessError | TimeoutExpired):
        pairs["CommandLine"] = head_of(_command(error.cmd))
        if last_words := _text(error.stderr) or _text(error.output):
            pairs["LogTail"] = tail_of(last_words)
    return pairs


def _shown(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # of a __str__ that somebody wrote
        return type(error).__name__


def _trace(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error, limit=-FRAMES_MAX))
    except Exception:  # the same
        return ""


def _command(command: object) -> str:
    if isinstance(command, list | tuple):
        return shlex.join(str(part) for part in command)
    return _text(command)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
