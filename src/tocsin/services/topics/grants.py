"""TopicGrants: what owners of topics have granted, as entities present it to this broker.

A grant is presented once, by its holder, and kept until it ends: from then on the holder has its
rights in every session that it signs in to with its key, at every endpoint. Everything is checked
here, from the signatures alone; nobody else is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tocsin.access.decision import Action
from tocsin.access.delegation.chain import DelegatedRight as Chain
from tocsin.access.delegation.chain import (
    TopicOwner,
    read_chain,
)
from tocsin.access.delegation.keys import read_spki
from tocsin.access.delegation.revocations import (
    RevocationList,
    check_right,
    newer,
    read_revocations,
)
from tocsin.access.policy.delegated import DelegatedRight
from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import Right
from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.errors import (
    AdvertisementEnded,
    GrantRefused,
    NoSuchCredential,
    QuotaReached,
    TocsinError,
)
from tocsin.event.instant import LATEST_NS
from tocsin.event.topic import TopicPattern
from tocsin.event.topic_levels import MANY
from tocsin.topics.advertisement import Advertisement, SignedAdvertisement, check_valid, verify
from tocsin.topics.trust import TrustedTdns

GRANTS: Final = "topics/grant/"
REVOCATIONS: Final = "topics/revocations/"
GRANTS_MAX: Final = 10_000
GRANTS_OF_ENTITY_MAX: Final = 200
REVOCATIONS_MAX: Final = 10_000
SWEEP_S: Final = 600.0

_SERVICE = internal("topics")
# Who may subscribe to a topic may read what is in the log of it: it could begin there.
_READS: Final = frozenset({Action.SUBSCRIBE, Action.READ})


class PresentedGrant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The advertisement of a topic, and a chain of grants from its owner. Without grants: for the
    owner itself."""

    advertisement: SignedAdvertisement
    grants: tuple[str, ...] = ()


class PresentedRevocations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A list that the owner of the topic has signed."""

    advertisement: SignedAdvertisement
    revocations: str


class _KeptList(msgspec.Struct, frozen=True):
    """A list as it is kept, with what it is checked by: the node that made the advertisement may
    not be trusted any more by the time of a restart."""

    topic: str
    owner: bytes  # SubjectPublicKeyInfo, DER
    revocations: str
    until_ns: int


class Grant(msgspec.Struct, frozen=True):
    """A grant that was checked."""

    id: str
    entity_id: str  # of its holder
    owner: TopicOwner
    chain: Chain | None  # None: the owner's own
    advertised_until_ns: int

    @property
    def expires_ns(self) -> int:
        ends_ns = self.advertised_until_ns
        return ends_ns if self.chain is None else min(ends_ns, self.chain.expires_ns)

    @property
    def topic(self) -> str:
        return self.owner.topic if self.chain is None else self.chain.topic

    @property
    def operations(self) -> frozenset[Action]:
        own = frozenset({Action.PUBLISH, Action.SUBSCRIBE})
        return own if self.chain is None else self.chain.operations


class TopicGrants:
    """See the module. `trusted`: which topic discovery nodes are believed, at each moment."""

    def __init__(
        self,
        port: BrokerPort,
        policy: Policy,
        trusted: Callable[[], TrustedTdns],
    ) -> None:
        self._port = port
        self._runtime = port.runtime
        self._own = port.own(_SERVICE)
        self._policy = policy
        self._delegated = policy.delegated
        self._trusted = trusted
        self._grants: dict[str, Grant] = {}
        self._of_topic: dict[str, set[str]] = {}
        self._revocations: dict[str, RevocationList] = {}
        # As long as a grant that a list names may be presented, by whatever advertisement.
        self._revocations_until_ns: dict[str, int] = {}
        self._lost_lists: set[str] = set()  # topics whose list is damaged: no grant is believed
        self._restore()
        self._runtime.call_later(SWEEP_S, self._sweep)

    # Presenting

    async def present(self, session: Session, presented: PresentedGrant) -> Grant:
        """Keep it; returns once that is on disk. Raises GrantRefused, BadAdvertisement and others
        for what does not hold, also if somebody else than the holder presents it."""
        holder = self._entity_of(session)
        found = self._read(presented)
        self._check_now(found)
        if found.entity_id != holder:
            raise GrantRefused(
                f"the grant is of {found.entity_id}, and {holder} presents it",
                remedy="Sign in with the key of its holder.",
            )
        if found.id in self._grants:
            return found
        self._check_room(holder)
        key = GRANTS + found.id
        with self._port.registering(session, key):
            await self._port.keep_table(_SERVICE, {key: msgspec.json.encode(presented)})
        self._add(found)
        return found

    async def revoke(self, session: Session, presented: PresentedRevocations) -> RevocationList:
        """Go by this list from now on; anybody may bring it who is signed in, since the owner has
        signed it. Returns once it is on disk. Raises BadSignedStatement and others."""
        self._entity_of(session)
        owner, advertisement = self._owner(presented.advertisement)
        check_valid(advertisement, self._runtime.now_ns())
        found = read_revocations(presented.revocations, owner, self._runtime.now_ns())
        known = self._revocations.get(found.uuid)
        until_ns = max(advertisement.expires_ns, found.needed_until_ns)
        record = _KeptList(owner.topic, owner.key.spki, presented.revocations, until_ns)
        key, kept = REVOCATIONS + found.uuid, msgspec.json.encode(record)
        if newer(known, found) is None and self._own.kept(key).get(key) == kept:
            return found
        if known is None and len(self._revocations) >= REVOCATIONS_MAX:
            raise QuotaReached(
                f"there are {REVOCATIONS_MAX} lists of revoked grants",
                remedy="Wait until the advertisements of some of the topics have ended.",
            )
        # At once: if the disk fails now, it holds all the same.
        self._set_revocations(found, until_ns)
        for grant_id in self._of_topic.get(found.uuid, ()):
            self._give(self._grants[grant_id])
        await self._port.keep_table(_SERVICE, {key: kept})
        return found

    def grants(self, session: Session) -> list[Grant]:
        """All, for who may read or manage access, else the caller's own."""
        if any(self._port.may(session, each, "access") for each in (Action.READ, Action.MANAGE)):
            return list(self._grants.values())
        holder = self._entity_of(session)
        return [each for each in self._grants.values() if each.entity_id == holder]

    async def forget(self, session: Session, grant_id: str) -> None:
        """Its holder does not want it any more, or who manages access does not."""
        found = {each.id: each for each in self.grants(session)}.get(grant_id)
        if found is None:
            raise NoSuchCredential(
                f"there is no grant {grant_id[:64]!r}",
                remedy="`tocsin topics grants` lists those there are.",
            )
        self._remove(grant_id)
        await self._port.keep_table(_SERVICE, {GRANTS + grant_id: None})

    def explain(self, entity_id: str, operation: Action, topic: str) -> list[str]:
        """Why each grant of an entity does not give a right to a topic, of those that are about
        it or what is near; empty if one gives it."""
        reasons: list[str] = []
        for grant in self._grants.values():
            if grant.entity_id != entity_id:
                continue
            try:
                self._check_now(grant)
            except TocsinError as error:
                reasons.append(error.problem)
                continue
            right = _right(grant)
            if operation in right.actions and right.topic.matches(topic):
                return []
        return reasons

    # Checking

    def check_entity(self, session: Session) -> None:
        """Raise NotSignedIn or GrantRefused before anything that was sent is read."""
        self._entity_of(session)

    def _entity_of(self, session: Session) -> str:
        """Whose session it is. Raises NotSignedIn, and GrantRefused for who has shown no key."""
        credential = session.credential
        if credential is None:
            self._port.check(session, Action.MANAGE, "access")
        self._policy.validate(session)
        if credential is not None and credential.entity_id:
            return credential.entity_id
        raise GrantRefused(
            f"{session.principal.name} has not signed in with a key",
            remedy="Grants are for keys: show the certificate of the key on the connection, or "
            "prove to have it (POST /topics/sign-in).",
        )

    def _owner(self, signed: SignedAdvertisement) -> tuple[TopicOwner, Advertisement]:
        found = verify(signed, self._trusted(), self._runtime.now_ns())
        return TopicOwner(found.uuid, found.topic, found.creator.key), found

    def _read(self, presented: PresentedGrant) -> Grant:
        """What it is, at whatever time it holds."""
        owner, advertisement = self._owner(presented.advertisement)
        ends_ns = advertisement.expires_ns
        if not presented.grants:
            return Grant(advertisement.hash, owner.key.eid, owner, None, ends_ns)
        chain = read_chain(presented.grants, owner)
        return Grant(chain.hash, chain.holder.eid, owner, chain, ends_ns)

    def _check_now(self, grant: Grant) -> None:
        now_ns, known = self._runtime.now_ns(), self._revocations.get(grant.owner.uuid)
        if now_ns >= grant.advertised_until_ns:
            raise AdvertisementEnded(
                f"the advertisement of the topic {grant.owner.uuid} has expired",
                remedy=f"Its creator {grant.owner.key.eid} can advertise a new version.",
            )
        if grant.chain is None:
            return
        if grant.owner.uuid in self._lost_lists:
            raise GrantRefused(
                f"the list of revoked grants of the topic {grant.owner.uuid} is damaged",
                remedy="The owner of the topic has to bring it again.",
            )
        check_right(grant.chain, known, now_ns)

    def _check_room(self, holder: str) -> None:
        if self._delegated.count_of(holder) >= GRANTS_OF_ENTITY_MAX:
            raise QuotaReached(
                f"{holder} has {GRANTS_OF_ENTITY_MAX} grants here",
                remedy="Forget some: DELETE /topics/grants/ID.",
            )
        if len(self._grants) >= GRANTS_MAX:
            raise QuotaReached(
                f"there are {GRANTS_MAX} grants at this broker",
                remedy="Try again when some of them have ended.",
            )

    # What is kept

    def _restore(self) -> None:
        """What cannot be checked any more is named, and not gone by."""
        for key, value in self._own.kept(REVOCATIONS).items():
            uuid = key.removeprefix(REVOCATIONS)
            try:
                record = msgspec.json.decode(value, type=_KeptList)
                owner = TopicOwner(uuid, record.topic, read_spki(record.owner))
                # Of the future it was not when it came, whatever the clock says now.
                found = read_revocations(record.revocations, owner, LATEST_NS)
                self._set_revocations(found, record.until_ns)
            except (TocsinError, msgspec.MsgspecError) as error:
                self._lost_lists.add(uuid)
                self._note(key, error)
        for key, value in self._own.kept(GRANTS).items():
            try:
                self._add(self._read(msgspec.json.decode(value, type=PresentedGrant)))
            except (TocsinError, msgspec.MsgspecError) as error:
                self._note(key, error)

    def _note(self, key: str, error: Exception) -> None:
        problem = error.problem if isinstance(error, TocsinError) else str(error)
        self._runtime.note("info", "a grant is not gone by any more", kept=key, why=problem[:300])

    def _add(self, grant: Grant) -> None:
        self._grants[grant.id] = grant
        uuid, until_ns = grant.owner.uuid, grant.advertised_until_ns
        self._of_topic.setdefault(uuid, set()).add(grant.id)
        if uuid in self._revocations:
            known_ns = self._revocations_until_ns[uuid]
            self._revocations_until_ns[uuid] = max(known_ns, until_ns)
        self._give(grant)

    def _give(self, grant: Grant) -> None:
        """The right that follows from it, if it holds now: until it ends, or the list that does not
        name it is out of date."""
        try:
            self._check_now(grant)
        except TocsinError:
            self._delegated.drop(GRANTS + grant.id)
            return
        known = self._revocations.get(grant.owner.uuid) if grant.chain is not None else None
        ends_ns = grant.expires_ns if known is None else min(grant.expires_ns, known.expires_ns)
        right = msgspec.structs.replace(_right(grant), expires_ns=ends_ns)
        what = "its owner" if grant.chain is None else f"grant {grant.chain.links[-1].id}"
        reason = f"{what} of the topic {grant.owner.uuid}"
        self._delegated.put(GRANTS + grant.id, DelegatedRight(grant.entity_id, reason, right))

    def _set_revocations(self, found: RevocationList, until_ns: int) -> None:
        self._revocations[found.uuid] = found
        self._revocations_until_ns[found.uuid] = until_ns
        self._lost_lists.discard(found.uuid)

    def _remove(self, grant_id: str) -> None:
        grant = self._grants.pop(grant_id)
        of_topic = self._of_topic[grant.owner.uuid]
        of_topic.discard(grant_id)
        if not of_topic:
            del self._of_topic[grant.owner.uuid]
        self._delegated.drop(GRANTS + grant_id)

    def _sweep(self) -> None:
        now_ns = self._runtime.now_ns()
        over = [each.id for each in self._grants.values() if each.expires_ns <= now_ns]
        for grant_id in over:
            self._remove(grant_id)
        ended = [uuid for uuid, ends_ns in self._revocations_until_ns.items() if ends_ns <= now_ns]
        for uuid in ended:
            del self._revocations[uuid], self._revocations_until_ns[uuid]
        if over or ended:
            gone = [GRANTS + each for each in over] + [REVOCATIONS + each for each in ended]
            self._runtime.spawn(self._port.keep_table(_SERVICE, dict.fromkeys(gone)))
        if not self._runtime.is_stopping:
            self._runtime.call_later(SWEEP_S, self._sweep)


def _right(grant: Grant) -> Right:
    actions = grant.operations
    if Action.SUBSCRIBE in actions:
        actions |= _READS
    pattern = TopicPattern((*grant.topic.split("/"), MANY))
    return Right(actions, topic=pattern, expires_ns=grant.expires_ns)
