"""Entities: those who sign in with a key, and their grants, at one broker. Imported only where
clients sign in: the library for keys takes a tenth of a second to load."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from tocsin.access.delegation.proof import SECRET_BYTES
from tocsin.access.session import Session
from tocsin.access.sign_in.certificates import Authorities
from tocsin.broker.port import BrokerPort
from tocsin.config import Settings
from tocsin.drivers.access.access_control import AccessControl
from tocsin.errors import ProofRefused
from tocsin.services.topics.grants import TopicGrants
from tocsin.services.topics.sign_in import EntityProof, EntitySignIn, EntityToken
from tocsin.topics.trust import TrustedTdns


@dataclass(frozen=True, slots=True)
class Entities:
    """What endpoints are given of it."""

    sign_in: EntitySignIn
    grants: TopicGrants
    control: AccessControl

    def sign_in_of(self, session: Session, shown: EntityProof) -> EntityToken:
        """Raises ProofRefused, which the audit log has too."""
        try:
            return self.sign_in.sign_in(shown)
        except ProofRefused as error:
            self.control.sign_in_failed(session, "entity", error.problem)
            raise


def open_entities(
    port: BrokerPort,
    control: AccessControl,
    settings: Settings,
    broker: str,
    authorities: Callable[[], Authorities],
) -> Entities | None:
    """None where nobody signs in. `broker`: its id, which proofs are for."""
    if control.entity_tokens is None:
        return None
    pinned = frozenset(settings.topics.trusted_tdns)
    policy = control.service.policy

    def trusted() -> TrustedTdns:
        return TrustedTdns(authorities(), pinned, policy.revoked)

    sign_in = EntitySignIn(
        control.entity_tokens,
        broker,
        secrets.token_bytes(SECRET_BYTES),
        port.runtime.new_id,
        port.runtime.now_ns,
    )
    return Entities(sign_in, TopicGrants(port, policy, trusted), control)
