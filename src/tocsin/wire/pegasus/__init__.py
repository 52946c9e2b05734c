"""Pegasus: the stampede events of its monitoring daemon, in JSON or in the older BP form."""

from tocsin.wire.pegasus.framing import Cutter
from tocsin.wire.pegasus.stampede import Stampede

__all__ = ["Cutter", "Stampede"]
