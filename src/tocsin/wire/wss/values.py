"""Texts and binary values of a Security header, read strictly: an element with a text has nothing
but the text, so that what is read is all that stands there."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from lxml import etree

from tocsin.event.instant import xs_date_time_ns
from tocsin.wire.soap.envelope import elements, split
from tocsin.wire.wss.faults import FaultName, security_fault
from tocsin.wire.wss.names import BASE64

Element = etree._Element

TEXT_CHARS_MAX: Final = 16 << 10  # a password may be a token of an issuer
BINARY_CHARS_MAX: Final = 96 << 10  # a certificate has at most 64 kB
TIME_CHARS_MAX: Final = 64


def text_value(
    element: Element,
    *,
    chars_max: int = TEXT_CHARS_MAX,
    fault: FaultName = "InvalidSecurityToken",
) -> str:
    """The text of an element without the white space around it."""
    name = split(element.tag)[1][:80]
    text = element.text or ""
    if len(element):
        raise security_fault(fault, f"{name} holds another element", "Send its text alone.")
    if len(text) > chars_max:
        raise security_fault(fault, f"{name} has {len(text)} characters", f"At most {chars_max}.")
    return text.strip()


def binary_value(element: Element, *, fault: FaultName = "InvalidSecurityToken") -> bytes:
    """The bytes that an element has in base64."""
    name = split(element.tag)[1][:80]
    encoding = element.get("EncodingType", BASE64)
    if encoding != BASE64:
        raise security_fault(
            "UnsupportedSecurityToken",
            f"{name} is encoded as {encoding[:200]!r}",
            "Send it as base64.",
        )
    text = text_value(element, chars_max=BINARY_CHARS_MAX, fault=fault)
    try:
        found = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise security_fault(fault, f"{name} is not base64", "Send it as base64.") from None
    if not found:
        raise security_fault(fault, f"{name} is empty", "Send it as base64.")
    return found


def time_value(element: Element) -> int:
    """The moment that an element names, in nanoseconds."""
    name = split(element.tag)[1][:80]
    text = text_value(element, chars_max=TIME_CHARS_MAX, fault="InvalidSecurity")
    found = xs_date_time_ns(text)
    if found is None:
        raise security_fault(
            "InvalidSecurity",
            f"{name} is {text!r}, which is not a time",
            "Write it in UTC, as 2026-06-01T12:00:00Z.",
        )
    return found


def canonical(element: Element, prefixes: Sequence[str] = ()) -> bytes:
    """The exclusive canonical form, without comments. The declarations of these prefixes are in it
    wherever they are used."""
    return etree.tostring(
        element,
        method="c14n",
        exclusive=True,
        with_comments=False,
        inclusive_ns_prefixes=list(prefixes) or None,
    )


def by_name(
    parent: Element,
    known: frozenset[tuple[str, str]],
    fault: FaultName = "InvalidSecurityToken",
) -> dict[tuple[str, str], Element]:
    """The children, each of which is of the known ones and comes once."""
    found: dict[tuple[str, str], Element] = {}
    for child in elements(parent):
        key = split(child.tag)
        inside = f"{key[1][:80]!r} in {split(parent.tag)[1][:80]}"
        if key not in known:
            raise security_fault(fault, f"there is no {inside}", "Leave it out.")
        if key in found:
            raise security_fault(fault, f"there are two {inside}", "Send one.")
        found[key] = child
    return found
