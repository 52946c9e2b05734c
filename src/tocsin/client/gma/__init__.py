"""Producers and consumers of performance events (the Grid Forum's protocol), for programs.

from tocsin.client.gma import Consumer, Producer
"""

from tocsin.client.gma.consumer import Consumer
from tocsin.client.gma.feed import Feed
from tocsin.client.gma.producer import Producer
from tocsin.client.gma.subscription import Subscription
from tocsin.event.value import Quantity
from tocsin.wire.gma.messages import Element, PerformanceEvent
from tocsin.wire.gma.names import EventName

__all__ = [
    "Consumer",
    "Element",
    "EventName",
    "Feed",
    "PerformanceEvent",
    "Producer",
    "Quantity",
    "Subscription",
]
