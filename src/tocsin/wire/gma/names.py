"""Namespaces of the protocol, and the names of events (paper 002, sections 3.1 and 4.1)."""

from __future__ import annotations

import msgspec

from tocsin.event.xml_name import TYPES, escaped_name, name_of_type, name_uri

EVENTS = "http://www.gridforum.org/Performance/Events"
PARAMETERS = "http://www.gridforum.org/Performance/EventParameters"
PROTOCOL = "http://www.gridforum.org/Performance/Protocol"
EXTENSION = "urn:tocsin:gma:1"  # ours; others may ignore what is in it
XSI = "http://www.w3.org/2001/XMLSchema-instance"
XSD = "http://www.w3.org/2001/XMLSchema"

NAME_CHARS_MAX = 256  # of events and their elements
NAMESPACE_CHARS_MAX = 1_024

TIME_STAMP = "TimeStamp"
HOST_NAME = "HostName"
PERIOD = "Period"

# The paper's text and one example add a word to the name that all the other examples use.
_OTHER_SPELLINGS = {"UptimeCPULoadEvent": "UptimeCPULoad"}
# Its examples put events, and the parameters of a query, into other namespaces than its text.
_GRID_FORUM = frozenset({EVENTS, PARAMETERS, PROTOCOL})
# What a message itself consists of. The examples and the text put it into the protocol's namespace;
# without any it is meant, too.
_OWN = frozenset({"SubscriptionID", "Return", "ReturnDetail", "Error", "ErrorDetail"})


class EventName(msgspec.Struct, frozen=True, order=True):
    """What kind of event: a name in the namespace of the group that defined it."""

    local: str
    namespace: str = EVENTS

    @property
    def type(self) -> str:
        """The same as one word: the type of such events in the broker."""
        return name_uri((self.namespace, self.local))

    @property
    def is_grid_forum(self) -> bool:
        return self.namespace == EVENTS

    def __str__(self) -> str:
        """As `read_name` reads it."""
        if self.is_grid_forum and not _is_type(self.local):
            return self.local
        return f"{{{self.namespace}}}{self.local}"


def event_name(namespace: str, local: str) -> EventName:
    """The name as we write it, however the paper's examples and text spelled it."""
    if namespace in _GRID_FORUM:
        return EventName(_OTHER_SPELLINGS.get(local, local))
    return EventName(local, namespace)


def is_canonical(namespace: str, local: str) -> bool:
    """True if an element with this name is spelled as we would write it."""
    if namespace == EVENTS:
        return local not in _OTHER_SPELLINGS
    return namespace not in _GRID_FORUM


def is_own(namespace: str, local: str) -> bool:
    """True if in a message an element with this name is part of that, and never an event."""
    return namespace == EXTENSION or (namespace in (PROTOCOL, "") and local in _OWN)


def name_of(event_type: str) -> EventName:
    """The name of events of this type; the name's `type` is the type again, unless that is so long
    that it had to be cut."""
    namespace, local = name_of_type(event_type)
    fits = len(local) <= NAME_CHARS_MAX and len(namespace) <= NAMESPACE_CHARS_MAX
    if fits and is_canonical(namespace, local) and not is_own(namespace, local):
        return EventName(local, namespace)
    return EventName(escaped_name(event_type)[:NAME_CHARS_MAX], TYPES)


def read_name(text: str) -> EventName:
    """A name as people write it: UptimeCPULoad, {urn:lab}Temperature, or an event's type."""
    if text.startswith("{") and "}" in text:
        namespace, _, local = text[1:].partition("}")
        return event_name(namespace, local)
    if _is_type(text):
        return name_of(text)
    return event_name(EVENTS, text)


def _is_type(text: str) -> bool:
    return ":" in text or "." in text
