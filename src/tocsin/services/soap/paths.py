"""Where SOAP is answered: its own paths, and those that old clients know."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from tocsin.wire.soap import names
from tocsin.wire.soap.envelope import Envelope, blocks, split, text_of

WHOLE: Final = ("/soap", "/wsman", "/wsman-anon/identify")
PREFIXES: Final = ("/soap/", "/wsman/", "/axis2/services/", "/onvif/")
# Where a message that is the notification itself is published. At the others there are protocols
# whose clients send only requests.
_PUBLISHES: Final = ("/soap/", "/axis2/services/")
ID_CHARS_MAX: Final = 128

_OURS = re.compile(r"/soap/(subscriptions|boxes|registrations)/([^/]+)/?")
_BOX = re.compile(r"/axis2/services/MsgBoxService/clientid/([^/]+)/?")
_TOPIC = re.compile(r"/topic/(.+)")

# The header blocks by which our references name what they are about.
_IDENTIFIERS: Final = frozenset(
    {
        (names.WSE04, "Identifier"),
        (names.WSE11, "Identifier"),
        (names.WSN10, "Identifier"),
        (names.TOCSIN, "SubscriptionId"),
        (names.TOCSIN, "RegistrationId"),
        (names.TOCSIN, "BoxId"),
    }
)


@dataclass(frozen=True, slots=True)
class SoapPath:
    """What a path leads to. `kind` is subscriptions, boxes, registrations or empty."""

    kind: str = ""
    resource: str | None = None
    topic: str | None = None


def parse_path(path: str) -> SoapPath:
    """What the path names."""
    found = _OURS.fullmatch(path)
    if found:
        return SoapPath(found[1], unquote(found[2])[:ID_CHARS_MAX])
    found = _BOX.fullmatch(path)
    if found:
        return SoapPath("boxes", unquote(found[1])[:ID_CHARS_MAX])
    found = _TOPIC.search(path)
    return SoapPath(topic=unquote(found[1]).strip("/") or None) if found else SoapPath()


def identifier(envelope: Envelope) -> str | None:
    """The id in a header block that was echoed from a reference of ours."""
    for block in blocks(envelope):
        if split(block.tag) in _IDENTIFIERS:
            return text_of(block)[:ID_CHARS_MAX] or None
    return None


def is_soap_path(path: str) -> bool:
    """True if SOAP is answered at this path."""
    return path in WHOLE or path.startswith(PREFIXES)


def takes_bare_notifications(path: str) -> bool:
    """True if a body in no specification's namespace is an event here."""
    return path == "/soap" or path.startswith(_PUBLISHES)
