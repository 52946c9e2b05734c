"""By its name Spark finds this package, and with it the format `tocsin`, without being told.

Spark imports every installed package called `pyspark_...` when it first looks for a source, and an
error here would spoil all the others: so this one is silent where it cannot be had.
"""

from __future__ import annotations

import contextlib

with contextlib.suppress(ImportError):
    from tocsin.pipeline.source import TocsinSource as DefaultSource

    __all__ = ["DefaultSource"]
