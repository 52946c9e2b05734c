"""What a host tells about itself, as performance events: probes, and the monitor that asks them."""

from __future__ import annotations

from tocsin.client.host.monitor import Monitor
from tocsin.client.host.probes import NAMESPACE, PROBES, Probe

__all__ = ["NAMESPACE", "PROBES", "Monitor", "Probe"]
