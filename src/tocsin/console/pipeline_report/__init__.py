"""`tocsin pipeline report --html`: what the tables say, as one page a person would look at."""

from tocsin.console.pipeline_report.report import TITLE, report

__all__ = ["TITLE", "report"]
