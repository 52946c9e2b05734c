"""The Spark data source `tocsin`: events of an archive, or of a running broker, as a DataFrame."""

from __future__ import annotations

from tocsin.pipeline.source.registering import register, session
from tocsin.pipeline.source.spark import TocsinSource

__all__ = ["TocsinSource", "register", "session"]
