"""The control messages of one process, with its settings."""

from __future__ import annotations

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.config import Settings
from tocsin.services.control.bus import ControlBus


def open_control(port: BrokerPort, broker: str, settings: Settings) -> ControlBus:
    """`broker`: the id of this one."""
    return ControlBus(port, broker, settings.overlay.control_options(), entity_of)


def entity_of(session: Session) -> str:
    """The entity that has proved to be one in this session, by the key of its certificate."""
    return ""
