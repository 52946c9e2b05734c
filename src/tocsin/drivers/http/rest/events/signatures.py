"""What `GET /events?signatures=yes` says of each event."""

from __future__ import annotations

from tocsin.access.sign_in.certificates import Authorities
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.topics.signed_event import signer_of
from tocsin.wire.api.views import SignatureInfo


def signature_info(event: Event, trusted: Authorities) -> SignatureInfo | None:
    try:
        signer = signer_of(event, trusted)
    except TocsinError as error:
        return SignatureInfo(holds=False, problem=error.problem)
    if signer is None:
        return None
    return SignatureInfo(
        holds=True, eid=signer.eid, name=signer.name, certified=signer.is_certified
    )
