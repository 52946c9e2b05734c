"""The monitor of a host, as performance events: probes, and the monitor that asks them."""

from __future__ import annotations

from tocsin.agent.monitor import Monitor
from tocsin.agent.probes import NAMESPACE, PROBES, Probe

__all__ = ["NAMESPACE", "PROBES", "Monitor", "Probe"]
