"""Withdrawals: the creator takes an advertisement back. Whoever knows of it keeps no advertisement
of that version or an earlier one, until the withdrawn one would have ended.

A withdrawal shows by itself that it is the creator's, since the UUID follows from the key. So it
counts also where the advertisement was never seen, and keeps it out.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.access.delegation import statements
from tocsin.access.delegation.keys import read_spki
from tocsin.access.delegation.protected import is_topic_uuid
from tocsin.access.sign_in.certificates import entity_id
from tocsin.errors import AdvertisementEnded, BadSignedStatement
from tocsin.event.instant import LATEST_NS
from tocsin.topics.advertisement import SALT_BYTES, VERSION_MAX, Advertisement, topic_uuid
from tocsin.topics.envelope import is_eid
from tocsin.topics.identity import Identity

WITHDRAWAL_KIND: Final = "tocsin-topic-withdrawal+jws"
CLOCK_SKEW_NS: Final = 300 * 10**9


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True):
    """What the creator signs."""

    uuid: str
    version: int  # this one, and all before it
    withdrawn_ns: int
    expires_ns: int  # when the advertisement would have ended, and this is forgotten
    origin: str
    salt: bytes
    spki: bytes  # of the creator

    @property
    def creator(self) -> str:
        return entity_id(self.spki)


def withdraw(advertisement: Advertisement, identity: Identity, now_ns: int) -> str:
    """The creator's withdrawal, signed."""
    assert advertisement.creator.eid == identity.eid, "others cannot"
    statement = Withdrawal(
        uuid=advertisement.uuid,
        version=advertisement.version,
        withdrawn_ns=now_ns,
        expires_ns=advertisement.expires_ns,
        origin=advertisement.origin,
        salt=advertisement.salt,
        spki=identity.entity.spki,
    )
    return statements.sign(WITHDRAWAL_KIND, statement, identity.signing)


def read_withdrawal(text: str, now_ns: int) -> Withdrawal:
    """A withdrawal by the creator of the topic. Raises BadSignedStatement or BadCredential."""
    signed = statements.parse(WITHDRAWAL_KIND, text)
    found = statements.content(WITHDRAWAL_KIND, signed, Withdrawal)
    key = read_spki(found.spki)
    statements.check(WITHDRAWAL_KIND, signed, key)
    if not is_eid(found.origin) or len(found.salt) != SALT_BYTES or not is_topic_uuid(found.uuid):
        raise _bad("its UUID, its salt or the id of its node is malformed")
    if found.uuid != topic_uuid(found.origin, key.thumbprint, found.salt):
        raise _bad(f"the topic {found.uuid} is not that of {key.eid}")
    if not 1 <= found.version <= VERSION_MAX or not 0 <= found.expires_ns <= LATEST_NS:
        raise _bad("its version or its end is impossible")
    if found.withdrawn_ns > now_ns + CLOCK_SKEW_NS:
        raise _bad("it is of the future")
    return found


def check_not_withdrawn(version: int, withdrawal: Withdrawal) -> None:
    """Raise AdvertisementEnded for an advertisement, of the same topic, that was withdrawn."""
    if version <= withdrawal.version:
        raise AdvertisementEnded(
            f"version {version} of the topic {withdrawal.uuid} was withdrawn",
            remedy=f"Its creator {withdrawal.creator} can advertise a later version.",
        )


def _bad(why: str) -> BadSignedStatement:
    return BadSignedStatement(
        f"a withdrawal is refused: {why}",
        remedy="Only the creator of a topic can withdraw it, with the key that it was made with.",
    )
