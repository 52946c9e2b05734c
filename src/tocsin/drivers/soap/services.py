"""Which services answer at the SOAP door of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.drivers.soap.boxes import BoxService
from tocsin.drivers.soap.brokered import BrokeredService
from tocsin.drivers.soap.describing import DescribingService
from tocsin.drivers.soap.desk import Desk, Service
from tocsin.drivers.soap.eventing import EventingService
from tocsin.drivers.soap.notification import NotificationService
from tocsin.drivers.soap.onvif import OnvifService
from tocsin.drivers.soap.own_boxes import OwnBoxes
from tocsin.drivers.soap.properties import PropertiesService
from tocsin.drivers.soap.registrations import Registrations
from tocsin.drivers.soap.reliable import Reliable

if TYPE_CHECKING:
    from tocsin.drivers.node import Node


def broker_desk(node: Node) -> Desk:
    """Everything that a broker does by SOAP."""
    registrations = Registrations(node)
    properties = PropertiesService(node, registrations)
    services: list[Service] = [
        EventingService(node),
        NotificationService(node),
        BoxService(node),
        OnvifService(node),
        properties,
        DescribingService(),
        BrokeredService(node, registrations, properties),
    ]
    desk = Desk(node, services, reliable=Reliable(node))
    boxes = OwnBoxes(node, desk.answer)
    node.push_into_boxes(boxes.send)
    desk.closes.append(boxes.close)
    return desk
