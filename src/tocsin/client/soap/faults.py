"""Faults as a client meets them: read out of an answer, raised as an error."""

from __future__ import annotations

from typing import Final

from lxml import etree

from tocsin.errors import SoapRefused
from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.names import SOAP11, SOAP12, SOAP_NAMESPACES, TOCSIN
from tocsin.wire.soap.slices import cut_out

Element = etree._Element

REASON_CHARS_MAX: Final = 2_000
_REMEDY: Final = (
    "The words are those of the service that was asked; its documentation may say more."
)
_IN_SOAP11: Final = {"Client": "Sender", "Server": "Receiver"}
_GONE: Final = ("ResourceUnknown", "UnknownSubscription")
_GONE_CODES: Final = frozenset({"T302", "T303"})


def is_fault(envelope: Envelope) -> bool:
    """True if the body holds a Fault."""
    content = envelope.content
    return content is not None and split(content.tag) == (SOAP_NAMESPACES[envelope.soap], "Fault")


def fault_error(envelope: Envelope, status: int) -> SoapRefused:
    """The error that a Fault is."""
    fault = envelope.content
    assert fault is not None
    if envelope.soap == "1.1":
        code, subcode = _codes11(fault)
        reason, detail = text_of(fault.find("faultstring")), fault.find("detail")
    else:
        code, subcode = _codes12(fault)
        reason = text_of(fault.find(f"{{{SOAP12}}}Reason/{{{SOAP12}}}Text"))
        detail = fault.find(f"{{{SOAP12}}}Detail")
    parts = [] if detail is None else elements(detail)
    problem, remedy, our_code = _broker_error(parts)
    name = subcode[1] if subcode else code
    return SoapRefused(
        (problem or reason or f"the service answered with the fault {name}")[:REASON_CHARS_MAX],
        remedy=remedy or _REMEDY,
        status=status,
        broker_code=our_code,
        fault_code=code,
        subcode=subcode,
        reason=reason[:REASON_CHARS_MAX],
        detail=b"".join(piece for part in parts for piece in cut_out(envelope, [part])),
    )


def is_gone(error: SoapRefused) -> bool:
    """True if the fault says that there is no such subscription or box any more."""
    if error.broker_code in _GONE_CODES:
        return True
    names = [error.subcode[1] if error.subcode else "", error.detail.decode("utf-8", "replace")]
    return any(word in text for text in names for word in _GONE)


def _codes11(fault: Element) -> tuple[str, tuple[str, str] | None]:
    """SOAP 1.1 has one place for both: a code of the specification's own hides the general one."""
    place = fault.find("faultcode")
    name = _resolved(place)
    if name is None:
        return "", None
    if name[0] in (SOAP11, ""):
        word = name[1].partition(".")[0]
        return _IN_SOAP11.get(word, word), None
    return "", name


def _codes12(fault: Element) -> tuple[str, tuple[str, str] | None]:
    code = fault.find(f"{{{SOAP12}}}Code")
    general = _resolved(None if code is None else code.find(f"{{{SOAP12}}}Value"))
    inner = None if code is None else code.find(f"{{{SOAP12}}}Subcode")
    own: tuple[str, str] | None = None
    while inner is not None:
        own = _resolved(inner.find(f"{{{SOAP12}}}Value")) or own
        inner = inner.find(f"{{{SOAP12}}}Subcode")
    return general[1] if general else "", own


def _resolved(place: Element | None) -> tuple[str, str] | None:
    """The name that an element's text is, with its prefix looked up."""
    text = text_of(place)
    if place is None or not text:
        return None
    prefix, colon, local = text.rpartition(":")
    return place.nsmap.get(prefix if colon else None) or "", local


def _broker_error(parts: list[Element]) -> tuple[str, str, str | None]:
    """Problem, remedy and code, if it is a Tocsin broker that answered."""
    for part in parts:
        for found in part.iter(f"{{{TOCSIN}}}Error"):
            problem = text_of(found.find(f"{{{TOCSIN}}}Problem"))
            remedy = text_of(found.find(f"{{{TOCSIN}}}Remedy"))
            return problem, remedy, found.get("code")
    return "", "", None
