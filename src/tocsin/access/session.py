"""Session: who asks, by which endpoint, and from where. It goes along in every call of the port."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.event.subscription import Owner


class Principal(msgspec.Struct, frozen=True):
    """Somebody who can be granted rights: a person, a program, or the broker itself."""

    name: str
    groups: frozenset[str] = frozenset()  # those that its credential names
    is_internal: bool = False  # of this process; no credential makes one


ANONYMOUS = Principal("anonymous")
BROKER = Principal("broker", is_internal=True)
RESERVED = frozenset({ANONYMOUS.name, BROKER.name})
"""Names that no credential may have."""
ENTITIES = "entity-"
"""What the names of those begin with who sign in with nothing but a key, and no others."""


def is_reserved(name: str) -> bool:
    """Whether nobody can be called so by a credential of the site."""
    return name in RESERVED or name.startswith(ENTITIES)


def entity_principal(entity_id: str) -> str:
    return ENTITIES + entity_id


class CredentialKind(StrEnum):
    """What somebody signed in with."""

    TOKEN = "token"
    CERTIFICATE = "certificate"
    OPENID = "openid"
    ENTITY = "entity"  # a proof of its key, by which it got a token for a while


class Credential(msgspec.Struct, frozen=True):
    """One credential, of which no secret is kept. Its key is what is revoked."""

    kind: CredentialKind
    key: str  # as in token/4f2a; of a certificate, its issuer's key and its serial number
    expires_ns: int | None = None
    entity_id: str = ""  # that follows from the key, if the holder has proved to have one


class Session(msgspec.Struct, frozen=True):
    """One caller. The endpoint is the listener's name, the peer its address as host:port."""

    principal: Principal
    endpoint: str
    peer: str = ""
    credential: Credential | None = None

    @property
    def is_signed_in(self) -> bool:
        return self.credential is not None

    def is_owner(self, owner: Owner | None) -> bool:
        """Whether the caller made what this is kept with."""
        return self.is_signed_in and owner is not None and owner.name == self.principal.name

    @property
    def owner(self) -> Owner:
        """What is kept of the caller with whatever it makes."""
        principal, credential = self.principal, self.credential
        return Owner(
            name=principal.name,
            groups=tuple(sorted(principal.groups)),
            credential="" if credential is None else credential.key,
            entity_id="" if credential is None else credential.entity_id,
            is_internal=principal.is_internal,
        )


def as_owner(
    owner: Owner | None, endpoint: str, peer: str = "", expires_ns: int | None = None
) -> Session:
    """Whoever made something, later: in what it then signed in with, which `expires_ns` ends."""
    if owner is None or not owner.credential:
        return anonymous(endpoint, peer)
    kind = CredentialKind(owner.credential.partition("/")[0])
    return Session(
        Principal(owner.name, frozenset(owner.groups)),
        endpoint,
        peer,
        Credential(kind, owner.credential, expires_ns, owner.entity_id),
    )


def anonymous(endpoint: str, peer: str = "") -> Session:
    """Somebody who has shown no credential."""
    return Session(ANONYMOUS, endpoint, peer)


def internal(service: str) -> Session:
    """A service of the broker that acts by itself: a sweep, a heartbeat, a renewal."""
    return Session(BROKER, service)
