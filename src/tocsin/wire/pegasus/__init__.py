"""Pegasus: the stampede events of its monitoring daemon, in JSON or in the older BP form."""

from tocsin.wire.pegasus.framing import RecordSplitter
from tocsin.wire.pegasus.stampede import Stampede

__all__ = ["RecordSplitter", "Stampede"]
