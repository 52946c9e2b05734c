"""EventSigner: signs what a program or a command publishes."""

from __future__ import annotations

from typing import Final

from tocsin.store.identity_directory import open_identity
from tocsin.topics.identity import Identity
from tocsin.topics.signed_event import sign_event
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.read import read_events
from tocsin.wire.cloudevents.write import structured

_STRUCTURED: Final = "application/cloudevents+json"
_LIMITS: Final = Limits(event_bytes_max=1 << 30)  # the broker says what is too large for it


class EventSigner:
    """By one identity, which is given or in a directory. Raises BadCredential if it is not."""

    def __init__(self, identity: Identity | str) -> None:
        self.identity = open_identity(identity) if isinstance(identity, str) else identity

    def sign(self, event: bytes) -> bytes:
        """A CloudEvent in the JSON format, with its signature. Raises BadEvent, or
        BadEventSignature if it has one."""
        (read,) = read_events(_STRUCTURED, {}, event, _LIMITS)
        return structured(sign_event(read, self.identity))
