"""`tocsin pipeline report --html`: what the tables say, as one page a person would look at."""

from tocsin.cli.report.report import TITLE, report

__all__ = ["TITLE", "report"]
