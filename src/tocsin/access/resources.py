"""What rights are granted on, beside topics: every kind of resource, and what its names are.

A resource is written `kind/name`, `kind/*` for all of a kind, and `kind` alone where there is but
one. Who publishes is asked for the topic itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tocsin.event.filter import EVERYTHING, Filter
from tocsin.event.filter_text import format_filter
from tocsin.event.subscription import Kind

KINDS: Final[Mapping[str, str]] = {
    "access": "tokens, rules, and the record of decisions",
    "activity": "the history of activities of a type",
    "archive": "how far the log is archived",
    "blackboard": "its concepts, its profile, publishers and subscribers, as in blackboard/profile",
    "box": "a message box, by its id",
    "clock": "what the broker thinks of the machine's clock",
    "deadletter": "a dead letter, by its id",
    "device": "the broker as an ONVIF device",
    "directory": "an entry of the directory, by its id",
    "discovery": "a continuous request for resources, by its id",
    "endpoint": "an endpoint whose messages may be on any topic, as in endpoint/soap",
    "estimates": "how long a planned run will take, and what is left of one under way",
    "events": "the log",
    "files": "which files runs have read and written",
    "filter": "events that pass this filter, as somebody subscribes to them or announces them",
    "gma": "where performance events are taken",
    "ingest": "what other systems have sent",
    "link": "a link to another broker, by its id",
    "overlay": "options of the overlay, as overlay/options",
    "registration": "a registered publisher, by its id",
    "resource": "a resource that can be discovered, by its id",
    "run": "a run of a workflow, by its id",
    "service": "what a service of the broker keeps, by its key",
    "soap": "descriptions of the SOAP services, by SOAP",
    "status": "figures of the broker, without ids or sinks",
    "subscription": "a subscription, by its id",
    "tdn": "topic discovery nodes of a broker, by the broker's id",
    "topic": "the last event on a topic",
    "topics": "the topics that there are",
    "types": "the types of events that there are",
    "workflow": "a workflow, by its name",
}


def kind_of(resource: str) -> str:
    return resource.partition("/")[0]


def filter_resource(filter: Filter) -> str:
    """The events that pass it, in the words of the language of filters."""
    return "filter/everything" if filter == EVERYTHING else f"filter/{format_filter(filter)}"


def subscription_resource(kind: Kind, subscription_id: str) -> str:
    """A subscription, a message box or a place of a link in the log, by its kind."""
    return f"{'subscription' if kind is Kind.PUSH else kind.value}/{subscription_id}"
