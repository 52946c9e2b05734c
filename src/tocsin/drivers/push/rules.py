"""Where this broker may push to, as its settings have it."""

from __future__ import annotations

from tocsin.broker.delivery.trust import SinkRules, check_trusted
from tocsin.config import Settings, is_loopback


def sink_rules(settings: Settings) -> SinkRules:
    """The rules of its settings; BadSetting if they name no host or network."""
    return SinkRules(
        allow_private=_private_allowed(settings), trusted=check_trusted(settings.delivery.trusted)
    )


def _private_allowed(settings: Settings) -> bool:
    wanted = settings.delivery.private
    if wanted != "auto":
        return wanted == "yes"
    return all(map(is_loopback, settings.addresses().values()))
