"""TocsinError: the root of the one error tree, and the catalogue of all that grows on it."""

from __future__ import annotations

from typing import ClassVar


class TocsinError(Exception):
    """Something a person can act on."""

    code: ClassVar[str] = "T000"
    http_status: ClassVar[int] = 400
    exit_code: ClassVar[int] = 1

    def __init__(self, problem: str, *, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem} [{self.code}]. {self.remedy}"


def catalogue() -> dict[str, type[TocsinError]]:
    """Every error by its code."""
    found: dict[str, type[TocsinError]] = {}
    waiting = list(TocsinError.__subclasses__())
    while waiting:
        error = waiting.pop()
        waiting.extend(error.__subclasses__())
        assert error.code not in found, error
        found[error.code] = error
    return dict(sorted(found.items()))
