"""The Spark data source `tocsin`: events of an archive, or of a running broker, as a DataFrame."""

from __future__ import annotations

from tocsin.pipeline.source.plain import archived
from tocsin.pipeline.source.spark import TocsinSource, register

__all__ = ["TocsinSource", "archived", "register"]
