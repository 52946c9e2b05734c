"""Signatures in one form alone: of parts of this message, by their wsu:Id, in the exclusive
canonical form, with a certificate that came along.

A verifier of XML signatures says that something in the message was signed; what, and whether it is
what a reader of the message looks at, is decided here, by the places of the elements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lxml import etree

from tocsin.wire.soap.envelope import Envelope, elements, split
from tocsin.wire.soap.names import WSSE
from tocsin.wire.wss.faults import FaultName, security_fault
from tocsin.wire.wss.messages import Reference, Signature
from tocsin.wire.wss.names import DS, EXCLUSIVE, ID, X509_V3
from tocsin.wire.wss.values import binary_value, by_name, canonical

Element = etree._Element

REFERENCES_MAX: Final = 16  # Body, Timestamp, and the headers of WS-Addressing are ten
PREFIXES_MAX: Final = 64
_NAME: Final = re.compile(r"#[\w.\-]{1,256}")
_PREFIX: Final = re.compile(r"[\w.\-]{1,64}|#default")

_PARTS: Final = frozenset({(DS, "SignedInfo"), (DS, "SignatureValue"), (DS, "KeyInfo")})
_OF_REFERENCE: Final = frozenset({(DS, "Transforms"), (DS, "DigestMethod"), (DS, "DigestValue")})
_OF_X509_DATA: Final = frozenset({(DS, "X509Certificate"), (DS, "X509IssuerSerial")})
_WITH_IDS: Final = etree.XPath(
    "//@*[translate(local-name(), 'DI', 'di') = 'id'][contains($wanted, concat('|', ., '|'))]"
)


def read_signature(
    envelope: Envelope,
    security: Element,
    element: Element,
    token: Element | None,
    signatures: frozenset[str],
    digests: frozenset[str],
) -> Signature:
    """The signature; a SoapFault for one of another form."""
    parts = by_name(element, _PARTS, "InvalidSecurity")
    info, value, key = (
        _required(parts, (DS, name)) for name in ("SignedInfo", "SignatureValue", "KeyInfo")
    )
    binary_value(value, fault="InvalidSecurity")
    form, method, *references = [*elements(info), None, None]
    if form is None or split(form.tag) != (DS, "CanonicalizationMethod"):
        raise _wrong("SignedInfo does not begin with its CanonicalizationMethod")
    if method is None or split(method.tag) != (DS, "SignatureMethod") or len(method):
        raise _wrong("SignedInfo has no SignatureMethod")
    _prefixes(form, "CanonicalizationMethod")
    algorithm = _algorithm(method, signatures)
    listed = [each for each in references if each is not None]
    if not 1 <= len(listed) <= REFERENCES_MAX:
        raise _wrong(f"the signature has {len(listed)} references")
    named = [_reference(each, digests) for each in listed]
    targets = _targets(envelope, security, [name for name, _ in named])
    return Signature(
        element=element,
        signed_info=canonical(info),
        method=algorithm,
        certificate=_certificate(key, token),
        references=tuple(
            Reference(target, prefixes)
            for target, (_, prefixes) in zip(targets, named, strict=True)
        ),
    )


def _reference(element: Element, digests: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """The id that it names, and the prefixes of its transform."""
    if split(element.tag) != (DS, "Reference"):
        raise _wrong(f"SignedInfo has {split(element.tag)[1][:80]!r}")
    uri = element.get("URI", "")
    if not _NAME.fullmatch(uri):
        raise _wrong(f"the reference {uri[:100]!r} is not to an Id in this message")
    parts = by_name(element, _OF_REFERENCE, "InvalidSecurity")
    transforms = elements(_required(parts, (DS, "Transforms")))
    if len(transforms) != 1 or split(transforms[0].tag) != (DS, "Transform"):
        raise security_fault(
            "UnsupportedAlgorithm",
            f"the reference {uri[:100]!r} has {len(transforms)} transforms",
            "Use one, exclusive canonicalization.",
        )
    _algorithm(_required(parts, (DS, "DigestMethod")), digests)
    binary_value(_required(parts, (DS, "DigestValue")), fault="InvalidSecurity")
    return uri[1:], _prefixes(transforms[0], "Transform")


def _targets(envelope: Envelope, security: Element, names: Sequence[str]) -> list[Element]:
    """The elements with these ids. Each is the only one that has it, by whatever attribute that
    anybody might take for an id, and stands where it is read: the Body, a header block, or what is
    in the Security header."""
    if len(set(names)) != len(names):
        raise _wrong("two references are to the same Id")
    root = envelope.body.getparent()
    assert root is not None
    found: dict[str, list[etree._ElementUnicodeResult]] = {name: [] for name in names}
    for attribute in _WITH_IDS(root, wanted=f"|{'|'.join(names)}|"):
        found.setdefault(str(attribute), []).append(attribute)
    targets: list[Element] = []
    for name in names:
        if len(found[name]) != 1:
            raise _unsigned(f"{len(found[name])} elements have the Id {name[:100]!r}")
        [attribute] = found[name]
        target = attribute.getparent()
        if target is None or attribute.attrname != ID:
            raise _unsigned(f"the Id {name[:100]!r} is not a wsu:Id")
        parent = target.getparent()
        if target is not envelope.body and parent is not envelope.header and parent is not security:
            raise _unsigned(f"what has the Id {name[:100]!r} is not a part that is read")
        targets.append(target)
    return targets


def _certificate(key: Element, token: Element | None) -> bytes:
    """The DER form of the certificate that KeyInfo names or holds."""
    named = _only_child(key, (WSSE, "SecurityTokenReference"))
    kind = "" if named is None or len(named) != 1 else split(named[0].tag)[1]
    if named is not None and kind == "Reference" and split(named[0].tag)[0] == WSSE:
        if token is None or named[0].get("URI") != f"#{token.get(ID, '')}":
            raise _unavailable("its reference is to no BinarySecurityToken in the header")
        return _of_type(token)
    if token is not None:
        raise security_fault(
            "InvalidSecurity",
            "the certificate in the header is not the one that the signature names",
            "Send the one that signed.",
        )
    if named is not None and kind == "KeyIdentifier" and split(named[0].tag)[0] == WSSE:
        return _of_type(named[0])
    if named is not None and kind == "X509Data" and split(named[0].tag)[0] == DS:
        held = by_name(named[0], _OF_X509_DATA).get((DS, "X509Certificate"))
        if held is not None:
            return binary_value(held)
    raise _unavailable("its KeyInfo does not hold the certificate")


def _of_type(element: Element) -> bytes:
    kind = element.get("ValueType", "")
    if kind != X509_V3:
        if split(element.tag)[1] == "KeyIdentifier":
            raise _unavailable(f"it is named by {kind[:200]!r} alone")
        raise security_fault(
            "UnsupportedSecurityToken",
            f"the token is of the type {kind[:200]!r}",
            "Send an X.509 certificate, of the type #X509v3.",
        )
    return binary_value(element)


def _prefixes(element: Element, what: str) -> tuple[str, ...]:
    """Those of InclusiveNamespaces, in an element that asks for the exclusive form."""
    algorithm = element.get("Algorithm", "")
    if algorithm != EXCLUSIVE:
        raise security_fault(
            "UnsupportedAlgorithm",
            f"the {what} is {algorithm[:200]!r}",
            "Use exclusive canonicalization without comments.",
        )
    if not len(element):
        return ()
    inside = _only_child(element, (EXCLUSIVE, "InclusiveNamespaces"))
    if inside is None or len(inside):
        raise _wrong(f"the {what} has parameters that are not known")
    prefixes = inside.get("PrefixList", "").split()
    if len(prefixes) > PREFIXES_MAX or not all(map(_PREFIX.fullmatch, prefixes)):
        raise _wrong(f"the {what} has a list of prefixes that is too long, or has no prefixes")
    return tuple(prefixes)


def _algorithm(element: Element, allowed: frozenset[str]) -> str:
    named = element.get("Algorithm", "")
    if named not in allowed or len(element):
        raise security_fault(
            "UnsupportedAlgorithm",
            f"the {split(element.tag)[1]} is {named[:200]!r}, which is not taken",
            "Use RSA or ECDSA with SHA-256, and digests by SHA-256.",
        )
    return named


def _only_child(element: Element, key: tuple[str, str]) -> Element | None:
    children = elements(element)
    return children[0] if len(children) == 1 and split(children[0].tag) == key else None


def _required(parts: dict[tuple[str, str], Element], key: tuple[str, str]) -> Element:
    if key not in parts:
        raise _wrong(f"the signature has no {key[1]}")
    return parts[key]


def _wrong(problem: str, fault: FaultName = "InvalidSecurity") -> Exception:
    return security_fault(fault, problem, "Sign as the X.509 token profile 1.1 says.")


def _unsigned(problem: str) -> Exception:
    return security_fault(
        "FailedCheck", problem, "Sign the Body, the Timestamp and header blocks, by wsu:Id."
    )


def _unavailable(problem: str) -> Exception:
    return security_fault(
        "SecurityTokenUnavailable",
        f"the certificate that signed is not there: {problem}",
        "Send it along, as a BinarySecurityToken or X509Certificate.",
    )
