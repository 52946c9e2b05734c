"""The messages of the original's MsgBoxService, requests and answers, read."""

from __future__ import annotations

from lxml import etree

from tocsin.wire.msgbox.write import NAMESPACES
from tocsin.wire.soap.envelope import Envelope, blocks, elements, split, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.slices import cut_out

Element = etree._Element


def named_box(envelope: Envelope) -> str | None:
    """The box that a request names in its body, or in a header echoed from a reference."""
    for place in (*elements(envelope.message), *blocks(envelope)):
        namespace, name = split(place.tag)
        if name == "MsgBoxId" and namespace in NAMESPACES and text_of(place):
            return text_of(place)
    return None


def box_id(envelope: Envelope) -> str:
    """The id of the box that was made."""
    return text_of(_part(envelope, "MsgBoxId"))


def succeeded(envelope: Envelope) -> bool:
    """The status in an answer."""
    return text_of(_part(envelope, "status")) == "true"


def messages(envelope: Envelope) -> list[bytes]:
    """The messages taken, each as it was sent to the box."""
    return cut_out(envelope, elements(_part(envelope, "messages")))


def dropped(envelope: Envelope) -> int:
    """How many messages the box reports as dropped since the last request."""
    for block in blocks(envelope):
        if split(block.tag)[1] == "Dropped" and text_of(block).isdecimal():
            return int(text_of(block))
    return 0


def _part(envelope: Envelope, wanted: str) -> Element:
    content = envelope.content
    for child in elements(content) if content is not None else ():
        namespace, name = split(child.tag)
        if name == wanted and namespace in NAMESPACES:
            return child
    raise SoapFault("Receiver", f"the answer of the message box service has no {wanted}")
