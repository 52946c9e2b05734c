"""Settings: flags first, then TOCSIN_*, then a file, then defaults; frozen, and handed down."""

from __future__ import annotations

from tocsin.config.loading import (
    CHOICES,
    FILE_NAME,
    NOT_SETTINGS,
    PREFIX,
    Origins,
    find_file,
    keys,
    load,
)
from tocsin.config.tables import (
    OFF,
    ArchiveSettings,
    BlackboardSettings,
    BoxSettings,
    DeliverySettings,
    EventSettings,
    FramesSettings,
    HttpSettings,
    LimitSettings,
    LogSettings,
    MonitorSettings,
    PegasusSettings,
    Settings,
    SoapTcpSettings,
    is_loopback,
)

__all__ = [
    "CHOICES",
    "FILE_NAME",
    "NOT_SETTINGS",
    "OFF",
    "PREFIX",
    "ArchiveSettings",
    "BlackboardSettings",
    "BoxSettings",
    "DeliverySettings",
    "EventSettings",
    "FramesSettings",
    "HttpSettings",
    "LimitSettings",
    "LogSettings",
    "MonitorSettings",
    "Origins",
    "PegasusSettings",
    "Settings",
    "SoapTcpSettings",
    "find_file",
    "is_loopback",
    "keys",
    "load",
]
