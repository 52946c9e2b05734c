"""Settings: flags first, then TOCSIN_*, then a file, then defaults; frozen, and handed down."""

from __future__ import annotations

from tocsin.config.entries import split_address
from tocsin.config.loader import (
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
    DialectSettings,
    EventSettings,
    FramesSettings,
    HttpSettings,
    LimitSettings,
    LogSettings,
    MonitorSettings,
    OverlaySettings,
    PegasusSettings,
    PipelineSettings,
    Settings,
    SoapTcpSettings,
    is_loopback,
    tables_directory,
)
