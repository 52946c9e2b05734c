"""What the API says of entities and their grants."""

from __future__ import annotations

import msgspec


class SignInChallenge(msgspec.Struct, frozen=True):
    """What a proof of a key has to name, within two minutes."""

    nonce: str
    audience: str


class EntityTokenInfo(msgspec.Struct, frozen=True):
    """A token for who has proved to have a key; sent as Authorization: Bearer."""

    entity_id: str
    token: str
    expires: str


class GrantInfo(msgspec.Struct, frozen=True):
    """A grant that its holder has presented. Without links it is the owner's own."""

    id: str
    holder: str
    owner: str
    uuid: str
    topic: str
    operations: list[str]
    expires: str
    links: list[str]


class GrantList(msgspec.Struct, frozen=True):
    """Grants that this broker goes by."""

    grants: list[GrantInfo]


class RevocationInfo(msgspec.Struct, frozen=True):
    """The list of revoked grants of a topic that the broker goes by."""

    uuid: str
    number: int
    revoked: list[str]
    expires: str
