"""The documents that XPath filters of one event are asked about, each made and parsed at most once.

`payload` is the event as one element. `envelope` is that element in a SOAP envelope that nobody
sent, for expressions that begin at Envelope. `topic` is the event's topic as elements inside each
other, in a wstop:TopicSet and alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from lxml import etree

from tocsin.errors import BadXml
from tocsin.event.event import Event
from tocsin.event.xml_form import escaped, payload_xml
from tocsin.event.xpath_cost import BYTES_PER_NODE, Size
from tocsin.safexml import DEPTH_MAX, depth_exceeds, parse

ENVELOPES = {
    "1.1": "http://schemas.xmlsoap.org/soap/envelope/",
    "1.2": "http://www.w3.org/2003/05/soap-envelope",
}
ADDRESSING = "http://www.w3.org/2005/08/addressing"
NOTIFICATION = "http://www.ibm.com/xmlns/stdwip/web-services/WS-BaseNotification"
ENVELOPE_NAMESPACES = frozenset(
    {
        *ENVELOPES.values(),
        ADDRESSING,
        "http://schemas.xmlsoap.org/ws/2003/03/addressing",
        "http://schemas.xmlsoap.org/ws/2004/03/addressing",
        "http://schemas.xmlsoap.org/ws/2004/08/addressing",
        NOTIFICATION,
    }
)
TOPICS = "http://docs.oasis-open.org/wsn/t-1"
ENVELOPE_LEVELS = 2  # around the payload

_DELIMITERS = bytes.maketrans(b"<>/=:\"'", b"       ")
_DEPTHS_ASKED = (8, 16, 32, 64)
_NODES = etree.XPath("count(//node()) + count(//@*)")
_LEVEL = re.compile(r"[^\W\d][\w.-]*")


class Document:
    """One document: its root, the names that can be in it, and how large it is."""

    def __init__(self, xml: bytes) -> None:
        self._xml = xml

    @cached_property
    def root(self) -> etree._Element | None:
        """None if it cannot be read, which no document that we wrote is, unless it is too deep."""
        try:
            return parse(self._xml, depth_max=DEPTH_MAX + ENVELOPE_LEVELS)
        except BadXml:
            return None

    @cached_property
    def words(self) -> frozenset[bytes]:
        """Every local name of an element or attribute is among these, and so is much else."""
        return frozenset(self._xml.translate(_DELIMITERS).split())

    @cached_property
    def rough_size(self) -> Size:
        """Not less than the exact size, and known without a walk."""
        opened = self._xml.count(b"<")
        nodes = 2 * opened + self._xml.count(b"=") + len(self._xml) // BYTES_PER_NODE + 1
        return Size(nodes, min(self._xml.count(b"</") + 2, DEPTH_MAX + ENVELOPE_LEVELS))

    @cached_property
    def exact_size(self) -> Size:
        """What rough_size is a guess at."""
        root = self.root
        if root is None:
            return self.rough_size
        depth = next((each for each in _DEPTHS_ASKED if not depth_exceeds(root, each)), DEPTH_MAX)
        found = _NODES(root)
        assert isinstance(found, float)
        # XPath does not count declarations, but its namespace axis finds them.
        nodes = int(found) + self._xml.count(b"xmlns") + len(self._xml) // BYTES_PER_NODE + 1
        return Size(nodes, depth + ENVELOPE_LEVELS)


@dataclass(frozen=True, slots=True)
class TopicDocument:
    """A topic as nested elements."""

    root: etree._Element
    innermost: etree._Element


class Documents:
    """The documents of one event."""

    def __init__(self, event: Event) -> None:
        self._event = event
        self._envelopes: dict[tuple[str, str], Document] = {}

    @cached_property
    def payload(self) -> Document:
        return Document(payload_xml(self._event))

    @cached_property
    def topics(self) -> tuple[TopicDocument, ...]:
        """In a TopicSet and alone; none for an event whose topic cannot be elements."""
        levels = self._event.topic.split("/")
        if not all(map(_LEVEL.fullmatch, levels)):
            return ()
        namespaces = _topic_namespaces(self._event, len(levels))
        topic_set = etree.Element(f"{{{TOPICS}}}TopicSet")
        try:
            return _nested(levels, namespaces, topic_set), _nested(levels, namespaces, None)
        except ValueError:  # a publisher may have called anything a namespace
            return ()

    def envelope(self, soap: str, wsa: str) -> Document:
        key = soap, wsa
        if key not in self._envelopes:
            self._envelopes[key] = Document(self._envelope_xml(soap, wsa))
        return self._envelopes[key]

    def _envelope_xml(self, soap: str, wsa: str) -> bytes:
        event = self._event
        head = (
            f'<s:Envelope xmlns:s="{ENVELOPES[soap]}" xmlns:a="{escaped(wsa or ADDRESSING)}"'
            f' xmlns:t="{NOTIFICATION}"><s:Header><a:Action>{escaped(event.type)}</a:Action>'
            f"<a:MessageID>{escaped(event.id)}</a:MessageID>"
            f"<t:Topic>{escaped(event.topic)}</t:Topic></s:Header><s:Body>"
        )
        return b"".join((head.encode(), payload_xml(event), b"</s:Body></s:Envelope>"))


def _nested(
    levels: list[str], namespaces: list[str], outer: etree._Element | None
) -> TopicDocument:
    is_topic = {f"{{{TOPICS}}}topic": "true"}
    inner = outer
    for level, namespace in zip(levels, namespaces, strict=True):
        tag = f"{{{namespace}}}{level}" if namespace else level
        element = etree.Element(tag, is_topic)
        if inner is not None:
            inner.append(element)
        inner = element
        outer = element if outer is None else outer
    assert outer is not None
    assert inner is not None
    return TopicDocument(outer, inner)


def _topic_namespaces(event: Event, count: int) -> list[str]:
    """For each level, as the publisher's expression bound its prefixes; else of the root alone."""
    *bindings, expression = str(event.extensions.get("wstopic", "")).split(" ")
    bound = dict(each.split("=", 1) for each in bindings if "=" in each)
    levels = expression.split("/")
    if expression and len(levels) == count:
        return [bound.get(each.rpartition(":")[0], "") for each in levels]
    root = event.extensions.get("topicns", "")
    return [str(root), *[""] * (count - 1)]
