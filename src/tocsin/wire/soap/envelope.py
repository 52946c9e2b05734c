"""SOAP envelopes, 1.1 and 1.2: taken apart, checked, and put together."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec
from lxml import etree

from tocsin import safexml
from tocsin.wire.soap.fault import SoapFault, quoted
from tocsin.wire.soap.names import (
    BR13_ACTIONS,
    PROPERTIES13_ACTIONS,
    ROLE_NEXT,
    ROLE_ULTIMATE,
    SOAP11,
    SOAP12,
    SOAP_NAMESPACES,
    SOAP_VERSIONS,
    TOCSIN,
    WSA_NAMESPACES,
    WSE04,
    WSE11,
    WSMAN,
    WSN10,
    WSN13_ACTIONS,
    WSRM10,
    WSRM11,
    WSSE,
)

Element = etree._Element

# Header blocks that we act on, or that we may pass over without doing the sender wrong: where
# nobody needs to sign in, cameras' clients send security headers that nobody asked for.
UNDERSTOOD: Final = frozenset(
    {*WSA_NAMESPACES, WSE04, WSE11, WSMAN, WSN10, WSRM10, WSRM11, WSSE, TOCSIN}
)
HEADER_BLOCKS_MAX: Final = 100
HEADER_ELEMENTS_MAX: Final = 2_000  # each block may be looked for among all of them
TAGS_MAX: Final = 400_000  # in one message; 8 MB of notifications have fewer
TAGS_KEPT: Final = 4_096  # names taken apart; real peers use a few hundred
TAG_CHARS_KEPT: Final = 512


class Envelope(msgspec.Struct, frozen=True):
    """One SOAP message. `raw` is what was parsed, in UTF-8, for those who keep payloads exactly."""

    soap: str
    header: Element | None
    body: Element
    content: Element | None  # the body's first element
    raw: bytes

    @property
    def message(self) -> Element:
        """What a reader reads: the content, or the body where only an action says what it is."""
        return self.body if self.content is None else self.content


def read_envelope(data: bytes) -> Envelope:
    """The message; raises BadXml, or a SoapFault that says what kind of envelope it is not."""
    raw = safexml.to_utf8(data)
    tags = raw.count(b"<")
    if tags > TAGS_MAX:
        raise SoapFault("Sender", f"the message has {tags} tags; at most {TAGS_MAX} are read")
    root = safexml.parse(raw, what="the message")
    namespace, name = split(root.tag)
    if name != "Envelope":
        raise SoapFault("Sender", f"the message is not a SOAP envelope: its root is {name[:80]!r}")
    soap = SOAP_VERSIONS.get(namespace)
    if soap is None:
        raise SoapFault("VersionMismatch", f"{namespace[:200]!r} is neither SOAP 1.1 nor SOAP 1.2")
    header = body = None
    for child in root:
        part = split(child.tag)
        if part == (namespace, "Body"):
            body = child
            break
        if part == (namespace, "Header"):
            header = child
    if body is None:
        raise SoapFault("Sender", "the envelope has no Body")
    if header is not None and len(header) > HEADER_BLOCKS_MAX:
        raise SoapFault("Sender", f"the envelope has more than {HEADER_BLOCKS_MAX} header blocks")
    if header is not None and tags > HEADER_ELEMENTS_MAX and _COUNT(header) > HEADER_ELEMENTS_MAX:
        raise SoapFault("Sender", f"the header has more than {HEADER_ELEMENTS_MAX} elements")
    return Envelope(soap, header, body, first_element(body), raw)


_COUNT: Final = etree.XPath("count(.//*)")


def _split(tag: object) -> tuple[str, str]:
    assert isinstance(tag, str), "safexml leaves out comments and processing instructions"
    if tag[:1] != "{":
        return "", tag
    namespace, _, name = tag[1:].partition("}")
    return namespace, name


_split_before: Callable[[object], tuple[str, str]] = lru_cache(maxsize=TAGS_KEPT)(_split)


def split(tag: object) -> tuple[str, str]:
    """Namespace and local name of an element's tag."""
    # A stranger may send namespaces of a megabyte each: those are not remembered.
    if isinstance(tag, str) and len(tag) <= TAG_CHARS_KEPT:
        return _split_before(tag)
    return _split(tag)


def first_element(parent: Element) -> Element | None:
    """The first child, if there is one."""
    return parent[0] if len(parent) else None


def elements(parent: Element) -> list[Element]:
    """The children; all of them are elements, since safexml leaves out the rest."""
    return list(parent)


def text_of(element: Element | None) -> str:
    """An element's text without the white space around it."""
    return "" if element is None else (element.text or "").strip()


def blocks(envelope: Envelope) -> list[Element]:
    """The header's blocks."""
    return [] if envelope.header is None else elements(envelope.header)


def check_understood(envelope: Envelope, understood: frozenset[str] = UNDERSTOOD) -> None:
    """Refuse a message with a header block that must be understood, meant for us, and is not of
    one of these namespaces."""
    if envelope.header is None or b"mustUnderstand" not in envelope.raw:
        return
    namespace = SOAP_NAMESPACES[envelope.soap]
    role = f"{{{namespace}}}{'actor' if envelope.soap == '1.1' else 'role'}"
    unknown = [
        block
        for block in elements(envelope.header)
        if block.get(f"{{{namespace}}}mustUnderstand", "0").strip() in ("1", "true")
        and split(block.tag)[0] not in understood
        and block.get(role, "") in ROLE_NEXT | ROLE_ULTIMATE
        and not is_reference(block)
    ]
    if unknown:
        names = ", ".join(split(block.tag)[1][:80] for block in unknown)
        raise SoapFault(
            "MustUnderstand",
            f"header blocks with mustUnderstand are not supported: {names}",
            headers=_not_understood(unknown) if envelope.soap == "1.2" else b"",
        )


def is_reference(block: Element) -> bool:
    """True for what we or another gave out in a reference and is echoed."""
    return any(block.get(f"{{{wsa}}}IsReferenceParameter") for wsa in WSA_NAMESPACES)


def _not_understood(unknown: list[Element]) -> bytes:
    """The NotUnderstood headers of SOAP 1.2 part 1, section 5.4.8."""
    return b"".join(_not_understood_block(*split(block.tag)) for block in unknown)


def _not_understood_block(namespace: str, name: str) -> bytes:
    start = b'<s:NotUnderstood xmlns:s="%b"' % SOAP12.encode()
    if not namespace:  # a prefix cannot stand for none
        return b'%b qname="%b"/>' % (start, quoted(name))
    return b'%b xmlns:q="%b" qname="q:%b"/>' % (start, quoted(namespace), quoted(name))


# What the broker offers to whoever speaks an unknown SOAP (SOAP 1.2 part 1, section 5.4.7).
UPGRADE: Final = (
    f'<s:Upgrade xmlns:s="{SOAP12}"><s:SupportedEnvelope xmlns:v="{SOAP12}" qname="v:Envelope"/>'
    f'<s:SupportedEnvelope xmlns:v="{SOAP11}" qname="v:Envelope"/></s:Upgrade>'
).encode()

_BEGIN: Final = {
    version: f'<?xml version="1.0" encoding="utf-8"?><s:Envelope xmlns:s="{namespace}">'.encode()
    for version, namespace in SOAP_NAMESPACES.items()
}


def write_envelope(soap: str, *, header: bytes = b"", body: bytes = b"") -> bytes:
    """An envelope around header blocks and a body that declare their own namespaces."""
    if header:
        header = b"<s:Header>%b</s:Header>" % header
    return b"%b%b<s:Body>%b</s:Body></s:Envelope>" % (_BEGIN[soap], header, body)


def envelope_start(soap: str) -> bytes:
    """Everything before the header blocks, for those who put a message together piece by piece."""
    return _BEGIN[soap] + b"<s:Header>"


BODY_START: Final = b"</s:Header><s:Body>"
ENVELOPE_END: Final = b"</s:Body></s:Envelope>"


def content_type(soap: str, action: str = "") -> str:
    """The HTTP headers of a message of this version."""
    if soap == "1.1":
        return "text/xml; charset=utf-8"
    tail = f'; action="{_header_safe(action)}"' if action else ""
    return f"application/soap+xml; charset=utf-8{tail}"


def http_headers(soap: str, action: str) -> list[tuple[str, str]]:
    """The HTTP headers of a request with a message of this version."""
    headers = [("content-type", content_type(soap, action))]
    if soap == "1.1":
        named = "" if action.startswith(_UNBOUND) else _header_safe(action)
        headers.append(("soapaction", f'"{named}"'))
    return headers


# The WSDLs of WS-Notification 1.3 bind no SOAPAction, and several port types share an operation.
# Apache CXF drops a Notify, having said 202, that names another port type than its own.
_UNBOUND: Final = (f"{WSN13_ACTIONS}/", f"{BR13_ACTIONS}/", f"{PROPERTIES13_ACTIONS}/")


def _header_safe(action: str) -> str:
    """An action as it may stand between quotes in a header: what may not is percent-encoded."""
    return "".join(
        char if " " < char < "\x7f" and char not in '"\\' else _percent(char) for char in action
    )


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))
