"""A broker's resource discovery, put together."""

from __future__ import annotations

from tocsin.broker.port import BrokerPort
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.options import DEFAULTS, DiscoveryOptions
from tocsin.overlay.region_index import RegionIndex
from tocsin.overlay.time_of_day import Zones
from tocsin.services.discovery.service import ResourceDiscovery


def open_discovery(
    port: BrokerPort, broker: str, zones: Zones, options: DiscoveryOptions = DEFAULTS
) -> ResourceDiscovery:
    """Its resources are found from now on, those on disk too. `broker`: the id of this broker."""
    core = DiscoveryCore(broker, options, regions=RegionIndex)
    return ResourceDiscovery(port, core, zones)
