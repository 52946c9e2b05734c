"""Faults: the ways in which activities fail. The same fault differs in its numbers and paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tocsin.synth.rows import Kind


@dataclass(frozen=True, slots=True)
class Fault:
    """Its message is `before`, a number, `between`, another number, `after`."""

    kind: Kind
    exit_code: int
    before: str
    between: str
    after: str = ""
    trace: str | None = None


def _trace(line: int, call: str, error: str) -> str:
    return (
        "Traceback (most recent call last):\n"
        f'  File "/opt/flows/steps.py", line {line}, in main\n'
        f"    {call}\n"
        f"{error}"
    )


FAULTS: Final = (
    Fault(Kind.FAILED, 1, "cannot open /scratch/job-", "/part-", ".nc: No such file or directory"),
    Fault(Kind.FAILED, 28, "No space left on device: /scratch/job-", "/tmp.", ""),
    Fault(Kind.OUT_OF_MEMORY, 137, "Killed: process ", " used more than ", " MiB"),
    Fault(Kind.TIMED_OUT, 124, "job ", " exceeded its limit of ", " minutes"),
    Fault(Kind.FAILED, 139, "segmentation fault at address 0x7f", " in thread "),
    Fault(
        *(Kind.FAILED, 1, "ValueError: shape (", ", ", ") does not fit"),
        trace=_trace(88, "grid.reshape(shape)", "ValueError: shape does not fit"),
    ),
    Fault(
        *(Kind.FAILED, 1, "KeyError: station ", " is not in catalogue "),
        trace=_trace(131, "catalogue[station]", "KeyError: station"),
    ),
    Fault(Kind.FAILED, 5, "I/O error reading block ", " of /data/archive/volume-", ".h5"),
    Fault(Kind.FAILED, 110, "connection to 10.0.", " timed out after ", " s"),
    Fault(Kind.FAILED, 2, "checksum of input ", " differs in byte ", ""),
    Fault(Kind.FAILED, 255, "the scheduler lost job ", " on rack ", ""),
    Fault(Kind.FAILED, 3, "the solver did not converge after ", " iterations, residual 0.", ""),
)
