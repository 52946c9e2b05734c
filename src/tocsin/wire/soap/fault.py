"""Faults: one condition, written in the caller's SOAP version."""

from __future__ import annotations

import re
from typing import Literal
from xml.sax.saxutils import escape

from tocsin.errors import TocsinError
from tocsin.wire.soap.names import SOAP11, SOAP12, TOCSIN, WSA2005

Code = Literal["Sender", "Receiver", "MustUnderstand", "VersionMismatch"]

_IN_SOAP11 = {"Sender": "Client", "Receiver": "Server"}


class SoapFault(Exception):
    """What went wrong, with what a SOAP peer needs to know. `detail` is XML, ready to send."""

    def __init__(
        self,
        code: Code,
        reason: str,
        *,
        subcode: tuple[str, str] | None = None,
        detail: bytes = b"",
        action: str | None = None,
        headers: bytes = b"",
        status: int | None = None,
    ) -> None:
        super().__init__(reason)
        self.code: Code = code
        self.reason = reason
        self.subcode = subcode  # namespace and local name
        self.detail = detail
        self.action = action  # for wsa:Action; None is the addressing version's own
        self.headers = headers  # header blocks that belong to it
        self.status = status  # of HTTP, where the usual one would say too little


_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IN_ATTRIBUTES = {'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}


def escaped(text: str) -> bytes:
    """The text as XML content; what XML cannot hold is shown as replaced."""
    return escape(_FORBIDDEN.sub("\ufffd", text), {"\r": "&#13;"}).encode()


def quoted(text: str) -> bytes:
    """The text as the value of an attribute, between double quotes."""
    return escape(_FORBIDDEN.sub("\ufffd", text), _IN_ATTRIBUTES).encode()


def fault_of(error: TocsinError) -> SoapFault:
    """An error that no specification has a name for, with our code and words in the detail."""
    code: Code = "Sender" if error.http_status < 500 else "Receiver"
    return SoapFault(code, f"{error.problem}. {error.remedy}", detail=detail_of(error))


def detail_of(error: TocsinError) -> bytes:
    """Our own code and words for an error, for the detail of any fault."""
    return b'<t:Error xmlns:t="%b" code="%b">%b%b</t:Error>' % (
        TOCSIN.encode(),
        error.code.encode(),
        b"<t:Problem>%b</t:Problem>" % escaped(error.problem),
        b"<t:Remedy>%b</t:Remedy>" % escaped(error.remedy),
    )


def write_fault(fault: SoapFault, soap: str) -> bytes:
    """The Fault element."""
    return _write11(fault) if soap == "1.1" else _write12(fault)


def _write11(fault: SoapFault) -> bytes:
    # A code of its own takes the place of the general one (WS-Eventing section 4, and others).
    if fault.subcode is not None:
        namespace, name = fault.subcode
        code = b'<faultcode xmlns:f="%b">f:%b</faultcode>' % (quoted(namespace), name.encode())
    else:
        name = _IN_SOAP11.get(fault.code, fault.code)
        code = b"<faultcode>s:%b</faultcode>" % name.encode()
    detail = b"<detail>%b</detail>" % fault.detail if fault.detail else b""
    return b'<s:Fault xmlns:s="%b">%b<faultstring>%b</faultstring>%b</s:Fault>' % (
        SOAP11.encode(),
        code,
        escaped(fault.reason),
        detail,
    )


def _write12(fault: SoapFault) -> bytes:
    subcode = b""
    if fault.subcode is not None:
        namespace, name = fault.subcode
        subcode = b'<s:Subcode><s:Value xmlns:f="%b">f:%b</s:Value></s:Subcode>' % (
            quoted(namespace),
            name.encode(),
        )
    detail = b"<s:Detail>%b</s:Detail>" % fault.detail if fault.detail else b""
    return (
        b'<s:Fault xmlns:s="%b"><s:Code><s:Value>s:%b</s:Value>%b</s:Code>'
        b'<s:Reason><s:Text xml:lang="en">%b</s:Text></s:Reason>%b</s:Fault>'
    ) % (SOAP12.encode(), fault.code.encode(), subcode, escaped(fault.reason), detail)


def http_status(fault: SoapFault, soap: str) -> int:
    """SOAP 1.1 over HTTP knows 500 for every fault; 1.2 answers the sender's with 400."""
    if fault.status is not None:
        return fault.status
    return 400 if soap == "1.2" and fault.code == "Sender" else 500


def fault_action(fault: SoapFault, wsa: str) -> str:
    """The wsa:Action of a message that carries the fault."""
    if fault.action is not None:
        return fault.action
    return f"{wsa}/soap/fault" if wsa == WSA2005 else f"{wsa}/fault"


def addressing_fault(wsa: str, name: str, reason: str, detail: bytes = b"") -> SoapFault:
    """A fault of WS-Addressing itself, by its 2005/08 name."""
    if wsa in ("", WSA2005):
        return SoapFault(
            "Sender", reason, subcode=(WSA2005, name), detail=detail, action=f"{WSA2005}/fault"
        )
    older = {
        "MessageAddressingHeaderRequired": "MessageInformationHeaderRequired",
        "InvalidAddressingHeader": "InvalidMessageInformationHeader",
    }
    known = older.get(
        name, name if name == "ActionNotSupported" else older["InvalidAddressingHeader"]
    )
    return SoapFault("Sender", reason, subcode=(wsa, known), detail=detail, action=f"{wsa}/fault")
