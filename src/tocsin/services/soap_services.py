"""Which SOAP services a broker has."""

from __future__ import annotations

from tocsin.services.brokered.registrations import Registrations
from tocsin.services.brokered.service import BrokeredService
from tocsin.services.eventing.service import EventingService
from tocsin.services.mailbox.mailboxes import Mailboxes
from tocsin.services.mailbox.service import BoxService
from tocsin.services.notification.onvif import OnvifService
from tocsin.services.notification.properties import PropertiesService
from tocsin.services.notification.service import NotificationService
from tocsin.services.reliable_messaging.receiver import ReliableReceiver
from tocsin.services.soap.context import SoapContext
from tocsin.services.soap.dispatcher import Dispatcher, Service
from tocsin.services.soap.metadata import MetadataService


def broker_dispatcher(context: SoapContext, mailboxes: Mailboxes) -> Dispatcher:
    """Everything that a broker does by SOAP."""
    port = context.port
    registrations = Registrations(port, context.topics)
    properties = PropertiesService(context, registrations)
    services: list[Service] = [
        EventingService(context),
        NotificationService(context),
        BoxService(port.runtime, mailboxes),
        OnvifService(context),
        properties,
        MetadataService(port),
        BrokeredService(context, registrations, properties.handlers),
    ]
    return Dispatcher(context, services, reliable=ReliableReceiver(port, context.consumers))


def mailbox_dispatcher(context: SoapContext, mailboxes: Mailboxes) -> Dispatcher:
    """Message boxes, and nothing else of a broker."""
    return Dispatcher(
        context,
        [BoxService(context.port.runtime, mailboxes)],
        publishes=False,
        reliable=ReliableReceiver(context.port, context.consumers),
    )
