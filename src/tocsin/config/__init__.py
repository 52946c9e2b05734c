"""Settings: flags first, then TOCSIN_*, then a file, then defaults; frozen, and handed down."""

from __future__ import annotations

from tocsin.config.auth_tables import AccessRules, AuthSettings, WsSecuritySettings
from tocsin.config.certificates import CertificateSettings
from tocsin.config.entries import OFF, is_loopback, split_address
from tocsin.config.loader import (
    CHOICES,
    FILE_NAME,
    FILE_ONLY,
    NOT_SETTINGS,
    PREFIX,
    RULE_TABLES,
    Origins,
    find_file,
    keys,
    load,
    read_rules,
)
from tocsin.config.openid import OpenIdSettings
from tocsin.config.overlay_tables import OverlaySettings
from tocsin.config.tables import (
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
    PegasusSettings,
    PipelineSettings,
    Settings,
    SoapTcpSettings,
    tables_directory,
)
