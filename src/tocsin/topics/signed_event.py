"""Signed events: who published an event can be checked wherever it is read, and however it came.

The signature is an extension attribute, so that every protocol and file that keeps those keeps it:
a detached JWS (RFC 7515, appendix F) over what the publisher said of the event and a hash of its
payload. Its header carries the publisher's certificate, which says whose key it is, and names the
extension attributes that are signed too. Attributes that are added on the way are not.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from cryptography import x509
from cryptography.x509.oid import NameOID

from tocsin.access.delegation import statements
from tocsin.access.delegation.keys import base64url
from tocsin.access.sign_in import jws
from tocsin.access.sign_in.certificates import Authorities, readable
from tocsin.errors import BadEventSignature, TocsinError
from tocsin.event.event import Event, is_json
from tocsin.event.value import Scalar
from tocsin.topics.identity import Identity, certified_key
from tocsin.wire.cloudevents import typed
from tocsin.wire.cloudevents.write import canonical_text

ATTRIBUTE: Final = "signature"
KIND: Final = "tocsin-event+jws"
SIGNATURE_CHARS_MAX: Final = 8 << 10  # what an attribute may have
CERTIFICATE_BYTES_MAX: Final = 4 << 10
SIGNED_EXTENSIONS_MAX: Final = 64

_JSON_SPACE: Final = b" \t\r\n"


class Signer(msgspec.Struct, frozen=True):
    """Who signed an event. The id follows from the key; the name is what the certificate says."""

    eid: str
    name: str
    is_certified: bool  # by an authority that the reader trusts: then the name can be believed


def sign_event(event: Event, identity: Identity) -> Event:
    """The event with its signature. Raises BadEventSignature for one that cannot be signed."""
    if ATTRIBUTE in event.extensions:
        raise _refused("it is signed already", "Publish the event as it is.")
    names = sorted(event.extensions)
    header: dict[str, object] = {
        "alg": identity.signing.algorithm,
        "typ": KIND,
        "x5c": [base64.b64encode(identity.certificate).decode("ascii")],
    }
    if names:
        header["ext"] = names
    first = base64url(statements.canonical(header))
    signature = identity.signing.sign(f"{first}.{_payload(event, names)}".encode("ascii"))
    text = f"{first}..{base64url(signature)}"
    if len(text) > SIGNATURE_CHARS_MAX:
        raise _refused(
            f"its signature has {len(text)} characters, more than {SIGNATURE_CHARS_MAX}",
            "Use a shorter certificate, or fewer extension attributes.",
        )
    return msgspec.structs.replace(event, extensions={**event.extensions, ATTRIBUTE: text})


def signer_of(event: Event, trusted: Authorities | None = None) -> Signer | None:
    """Who signed the event; None if nobody did. Raises BadEventSignature if what it says is not
    what was signed, or cannot be checked."""
    text = event.extensions.get(ATTRIBUTE)
    if text is None:
        return None
    certificate, signed = _parse(event, text)
    try:
        key = certified_key(certificate)
        jws.check_signature(signed, key.verification)
    except jws.BadToken:
        raise _refused("it was changed after it was signed, or another key signed it") from None
    except TocsinError as error:
        raise _refused(error.problem) from None
    is_certified = trusted is not None and trusted.has_signed(certificate)
    return Signer(key.eid, _name(certificate), is_certified)


def _parse(event: Event, text: Scalar) -> tuple[bytes, jws.Signed]:
    """The certificate, and the signature with what it is over."""
    if not isinstance(text, str) or len(text) > SIGNATURE_CHARS_MAX:
        raise _refused("the signature is not a text, or is too long")
    first, _, last = text.partition("..")
    try:
        header = jws.json_object(jws.decoded(first, "header"), "header")
        names = _names(header.get("ext", []))
        certificate = _certificate(header)
        compact = f"{first}.{_payload(event, names)}.{last}"
        signed = statements.parse(KIND, compact, len(compact))
    except (jws.BadToken, ValueError) as error:
        raise _refused(str(error)) from None
    except TocsinError as error:
        raise _refused(error.problem) from None
    return certificate, signed


def _names(found: object) -> list[str]:
    if not isinstance(found, list) or len(found) > SIGNED_EXTENSIONS_MAX:
        raise jws.BadToken("the signed attributes are not a list, or too many")
    if any(not isinstance(name, str) or name == ATTRIBUTE for name in found):
        raise jws.BadToken("a signed attribute is not a name")
    if found != sorted(set(found)):
        raise jws.BadToken("the signed attributes are not in order")
    return found


def _certificate(header: Mapping[str, Any]) -> bytes:
    chain = header.get("x5c")
    if not isinstance(chain, list) or len(chain) != 1 or not isinstance(chain[0], str):
        raise jws.BadToken("its header has no certificate, or more than one")
    if len(chain[0]) > CERTIFICATE_BYTES_MAX * 4 // 3 + 4:
        raise jws.BadToken(f"the certificate has more than {CERTIFICATE_BYTES_MAX} bytes")
    try:
        return base64.b64decode(chain[0], validate=True)
    except binascii.Error:
        raise jws.BadToken("the certificate is not base64") from None


def _payload(event: Event, names: list[str]) -> str:
    """What is signed, which is not sent: whoever has the event makes it again."""
    # What the forms of a CloudEvent do not tell apart is written in one way here: no payload and
    # an empty one, no content type and JSON, white space around a JSON text.
    data, media_type = event.data or None, event.datacontenttype
    if data is not None and is_json(media_type):
        data, media_type = data.strip(_JSON_SPACE), media_type or "application/json"
    said: dict[str, object] = {
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "topic": event.topic,
        "time": event.time,
        "subject": event.subject,
        "datacontenttype": media_type,
        "dataschema": event.dataschema,
        "attributes": typed.written(event.attributes) if event.attributes else None,
        "data": None if data is None else base64url(hashlib.sha256(data).digest()),
        "extensions": {name: _text(event.extensions.get(name)) for name in names},
    }
    return base64url(statements.canonical(said))


def _text(value: Scalar | None) -> str | None:
    """As a header has it: there a number is a text."""
    return None if value is None else canonical_text(value)


def _name(certificate: bytes) -> str:
    with readable("the certificate"):
        subject = x509.load_der_x509_certificate(certificate).subject
    found = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def _refused(
    why: str, remedy: str = "Do not trust what it says; ask its publisher for it."
) -> BadEventSignature:
    return BadEventSignature(f"the signature of an event does not hold: {why}", remedy=remedy)
