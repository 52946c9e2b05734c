"""What a test alters of a signed message, and how that is refused."""

from __future__ import annotations

from lxml import etree

from soap.security.signers import (
    Site,
    find,
)
from tocsin.wire.wss import names

DS = f"{{{names.DS}}}"
Element = etree._Element


def fault(root: Element, **call: object) -> str:
    return Site().fault(etree.tostring(root), **call)


def signature_of(root: Element) -> Element:
    return find(root, "Header", "Security", "Signature")


def local(element: Element) -> str:
    return etree.QName(element).localname
