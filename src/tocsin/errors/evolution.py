"""T33: workflow files, and what is recorded of their versions."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class BadWorkflowFile(TocsinError):
    """A workflow file is invalid, or refers to a file outside of the allowed directory.

    Files are read, never run. What they include must lie in the workflow's directory, or in the one
    that --root names, because the text of what is recorded is published.
    """

    code = "T330"
    exit_code = 2
