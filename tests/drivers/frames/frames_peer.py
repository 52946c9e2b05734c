"""A peer of the frames door that writes its bytes by hand: nothing here is shared with the product,
so that what is said on the wire is what the paper says."""

from __future__ import annotations

import itertools
import re
import select
import socket
import ssl
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Self
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from served import Served

WAIT_S = 10.0
SILENCE_S = 0.25
DEADLINE_S = 0.5  # of a message, at the broker with little patience
GOOD_LINE = re.compile(r"[0-9-]{10}T[0-9:.]{12}Z (info|warning) ")
EVENTS = "http://www.gridforum.org/Performance/Events"
PARAMETERS = "http://www.gridforum.org/Performance/EventParameters"
PROTOCOL = "http://www.gridforum.org/Performance/Protocol"
EXTENSION = "urn:tocsin:gma:1"

_numbers = itertools.count(1)


def new_name(stem: str = "Load") -> str:
    """A kind of event that no other test has."""
    return f"{stem}{next(_numbers)}"


def framed(message: str | bytes) -> bytes:
    data = message.encode() if isinstance(message, str) else message
    return len(data).to_bytes(4, "big") + data


# Messages


def subscribe(
    name: str,
    request: str = "1",
    own: str = "12",
    parameters: str = "",
    extra: str = "",
    namespace: str = PARAMETERS,
) -> str:
    """`extra` is what follows the parameters: a filter, options."""
    return (
        f'<SubscribeRequest xmlns="{PROTOCOL}" requestID="{request}">\n'
        f"  <SubscriptionID>{own}</SubscriptionID>\n"
        f'  <{name} xmlns="{namespace}">{parameters}</{name}>{extra}\n'
        "</SubscribeRequest>"
    )


def unsubscribe(subscription: str, request: str = "9") -> str:
    return (
        f'<UnsubscribeRequest xmlns="{PROTOCOL}" requestID="{request}">'
        f"<SubscriptionID>{subscription}</SubscriptionID></UnsubscribeRequest>"
    )


def query(
    name: str, request: str = "15", parameters: str = "", extra: str = "", namespace: str = EVENTS
) -> str:
    return (
        f'<QueryRequest xmlns="{PROTOCOL}" requestID="{request}">'
        f'<{name} xmlns="{namespace}">{parameters}</{name}>{extra}</QueryRequest>'
    )


def event_names(request: str = "15") -> str:
    return f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="{request}"/>'


def content(
    name: str, load5: float = 1.6, host: str = "foo.gov", time: str = "2000-11-09T21:51:45Z"
) -> str:
    return (
        f'<{name} xmlns="{EVENTS}">\n  <Load1>1.5</Load1>\n  <Load5>{load5}</Load5>\n'
        f"  <Load15>1.3</Load15>\n  <HostName>{host}</HostName>\n"
        f"  <TimeStamp>{time}</TimeStamp>\n</{name}>"
    )


def event(subscription: str, inner: str, number: str | None = None) -> str:
    numbered = "" if number is None else f' requestID="{number}"'
    return f'<Event xmlns="{PROTOCOL}" subscriptionID="{subscription}"{numbered}>{inner}</Event>'


def options(**reported: str) -> str:
    attributes = "".join(f' {name}="{value}"' for name, value in reported.items())
    return f'<Options xmlns="{EXTENSION}"{attributes}/>'


def filtered(text: str) -> str:
    return f'<Filter xmlns="{EXTENSION}">{escape(text)}</Filter>'


class Said:
    """A message of the broker, as a parser of its own reads it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.root = ElementTree.fromstring(data)
        self.namespace, _, self.kind = self.root.tag[1:].partition("}")

    def text(self, local: str) -> str | None:
        return self.root.findtext(f"{{{PROTOCOL}}}{local}")

    @property
    def request(self) -> str | None:
        return self.root.get("requestID")

    @property
    def returned(self) -> str | None:
        return self.text("Return")

    @property
    def detail(self) -> str:
        return self.text("ReturnDetail") or ""

    @property
    def subscription(self) -> str:
        """Which one it is about; a place of its own in each message."""
        found = self.root.get("subscriptionID") or self.text("SubscriptionID")
        assert found, self.data
        return found

    @property
    def options(self) -> dict[str, str]:
        mark = f"{{{EXTENSION}}}"
        found = {name: text for name, text in self.root.attrib.items() if name.startswith(mark)}
        return {name.removeprefix(mark): text for name, text in found.items()}

    @property
    def context(self) -> dict[str, str]:
        found = self.root.find(f"{{{EXTENSION}}}Context")
        return {} if found is None else dict(found.attrib)

    @property
    def content(self) -> ElementTree.Element:
        """The event's own element."""
        own = (f"{{{PROTOCOL}}}", f"{{{EXTENSION}}}")
        (found,) = (each for each in self.root if not each.tag.startswith(own))
        return found

    def value(self, local: str) -> str | None:
        """Of the event, whatever namespace its elements are in."""
        return self.content.findtext(f"{{*}}{local}")

    @property
    def names(self) -> set[tuple[str, str]]:
        """Of an EventNamesReply: name and namespace of each event."""
        found = self.root.findall(f"{{{PROTOCOL}}}Event")
        return {(each.attrib["name"], each.attrib["namespace"]) for each in found}


class Peer:
    """One connection."""

    def __init__(
        self,
        address: str,
        tls: ssl.SSLContext | None = None,
        *,
        room: int | None = None,
        source: str = "",
    ) -> None:
        """`room` is how many bytes its own system takes before they are read, `source` where it
        comes from."""
        host, _, port = address.rpartition(":")
        opened = socket.socket()
        if room is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        opened.settimeout(WAIT_S)
        if source:
            opened.bind((source, 0))
        opened.connect((host, int(port)))
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.name = "{}:{}".format(*opened.getsockname())
        self.socket = opened if tls is None else tls.wrap_socket(opened, server_hostname=host)
        self._buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *messages: str | bytes) -> None:
        self.socket.sendall(b"".join(map(framed, messages)))

    def raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def take(self, wait_s: float = WAIT_S) -> Said | None:
        """The next message, or None if the broker hung up; TimeoutError if neither comes."""
        deadline = time.monotonic() + wait_s
        while True:
            size = int.from_bytes(self._buffer[:4], "big") + 4
            if len(self._buffer) >= max(size, 5):
                message, self._buffer = self._buffer[4:size], self._buffer[size:]
                return Said(message)
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self.socket.recv(1 << 18)
            except ConnectionError:
                return None
            if not data:
                return None
            self._buffer += data

    def hears(self, kind: str) -> Said:
        """The next message, which is of this kind."""
        said = self.take()
        assert said is not None, f"the broker hung up before a {kind}"
        assert said.kind == kind, said.data
        assert said.namespace == PROTOCOL
        return said

    def ask(self, message: str | bytes) -> Said:
        """Send a request; the next message is the reply to it."""
        self.send(message)
        said = self.take()
        assert said is not None, "the broker hung up"
        return said

    def open(self, message: str) -> Said:
        """Subscribe, which must work."""
        reply = self.ask(message)
        assert (reply.kind, reply.returned) == ("SubscribeReply", "Success"), reply.data
        return reply

    def hears_nothing(self, for_s: float = SILENCE_S) -> bool:
        """True if the connection is still there, and silent."""
        if self._buffer:
            return False
        readable, _, _ = select.select([self.socket], [], [], for_s)
        return not readable

    def is_hung_up_on(self) -> bool:
        """True if the broker says goodbye at most, then ends the connection."""
        while (said := self.take()) is not None:
            if said.kind != "UnsubscribeRequest":
                return False
        return True


def producing(broker: Served, name: str, *, nonce: str = "") -> tuple[Peer, str]:
    """A producer that has subscribed, and the id that its events carry."""
    agreed = options(role="producer", **({"acknowledge": nonce} if nonce else {}))
    peer = Peer(broker.frames)
    return peer, peer.open(subscribe(name, extra=agreed)).subscription


def publish(broker: Served, name: str, *contents: str) -> None:
    """These are on disk when this returns."""
    with Peer(broker.frames) as peer:
        nonce = f"n{next(_numbers)}.{time.time_ns()}"
        extra = options(role="producer", acknowledge=nonce)
        own = peer.open(subscribe(name, extra=extra)).subscription
        peer.send(*(event(own, each, f"e{n}") for n, each in enumerate(contents)))
        for number, _ in enumerate(contents):
            reply = peer.hears("EventReply")
            assert (reply.request, reply.returned) == (f"e{number}", "Success"), reply.data


# What the broker's other sides say


def stored(broker: Served, name: str, namespace: str = EVENTS) -> list[dict[str, object]]:
    """All events of that kind in the log, oldest first."""
    found: list[dict[str, object]] = []
    after = 0
    asked = {"limit": "1000", "filter": f"type = '{namespace}/{name}'"}
    while True:
        query = urllib.parse.urlencode({**asked, "after": str(after)})
        status, page = broker.call("GET", f"/events?{query}")
        assert status == 200, page
        found += page["events"]
        if page["next"] == after:
            return found
        after = page["next"]


def noted(broker: Served, words: str, peer: Peer | None = None, wait_s: float = WAIT_S) -> str:
    """The last line of the log with these words, and about this peer, as soon as there is one."""
    deadline = time.monotonic() + wait_s
    about = "" if peer is None else f'peer="{peer.name}"'
    while True:
        lines = broker.said().splitlines()
        found = [line for line in lines if words in line and about in line]
        if found:
            return found[-1]
        if time.monotonic() > deadline:
            raise AssertionError(f"no {words!r} in: {broker.said()[-2000:]}")
        time.sleep(0.02)


def complaints(broker: Served) -> list[str]:
    """Connectors of the log that tell of a failure of ours."""
    return [line for line in broker.said().splitlines() if not GOOD_LINE.match(line)]


def answers(broker: Served) -> bool:
    """True if the broker serves others as if nothing had happened."""
    with Peer(broker.frames) as peer:
        return peer.ask(event_names()).returned == "Success"


def resident_bytes(broker: Served) -> int:
    pages = int(Path(f"/proc/{broker.pid}/statm").read_text().split()[1])
    return pages * 4096


def metric(broker: Served, name: str) -> float:
    with urllib.request.urlopen(f"{broker.url}/metrics", timeout=WAIT_S) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"tocsin_{name} "):
                return float(line.split()[1])
    raise AssertionError(f"there is no metric {name}")
