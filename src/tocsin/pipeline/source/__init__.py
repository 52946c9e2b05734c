"""The Spark data source `tocsin`: events of an archive, or of a running broker, as a DataFrame."""

from __future__ import annotations

from tocsin.pipeline.source.data_source import TocsinSource
from tocsin.pipeline.source.register import register, session

__all__ = ["TocsinSource", "register", "session"]
