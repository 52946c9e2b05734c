"""Grants at a broker: presented by their holders, kept, and gone by at every endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from creating import ALICE, DAY_NS, MALLORY, NOW_NS, NS, TRUSTED, chance, identity, nonce, opened

from manual_runtime import ManualRuntime
from tocsin.access.decision import Action
from tocsin.access.delegation.chain import Terms, TopicOwner, first_link, next_link, read_chain
from tocsin.access.delegation.proof import SIGN_IN, prove
from tocsin.access.delegation.revocations import sign_revocations
from tocsin.access.policy.policy import Policy
from tocsin.access.session import Session, anonymous
from tocsin.access.sign_in.entity_tokens import LIFETIME_NS, EntityTokens
from tocsin.access.sign_in.sign_in import SignIn
from tocsin.errors import (
    AdvertisementEnded,
    BadAdvertisement,
    BadSignedStatement,
    GrantRefused,
    NoSuchCredential,
    NotAllowed,
    NotSignedIn,
    ProofRefused,
    QuotaReached,
)
from tocsin.event.event import Event
from tocsin.services.topics import grants as service
from tocsin.services.topics.grants import PresentedGrant, PresentedRevocations, TopicGrants
from tocsin.services.topics.sign_in import EntityProof, EntitySignIn
from tocsin.topics.identity import Identity

BOB, CAROL = identity("bob"), identity("carol")
SIGNED, ADVERT = opened()
OWNER = TopicOwner(ADVERT.uuid, ADVERT.topic, ADVERT.creator.key)
BOTH = frozenset({Action.PUBLISH, Action.SUBSCRIBE})


def terms(*operations: Action, **how: Any) -> Terms:
    made = {"begins_ns": NOW_NS - NS, "expires_ns": NOW_NS + DAY_NS, **how}
    return Terms(frozenset(operations) or BOTH, **made)


def to_bob(*operations: Action, **how: Any) -> tuple[str, ...]:
    return (
        first_link(OWNER, ALICE.signing, BOB.signing.public, terms(*operations, **how), nonce("b")),
    )


class Broker:
    """A broker whose rules give nobody anything, at NOW_NS."""

    def __init__(self, store: Any = None) -> None:
        self.time_ns = NOW_NS
        self.policy = Policy(lambda: self.time_ns)
        self.runtime = ManualRuntime(store, access=self.policy)
        self.port = self.runtime.port
        self.port.runtime.now_ns = lambda: self.time_ns  # type: ignore[method-assign]
        self.tokens = EntityTokens(chance("tokens"))
        self.entities = EntitySignIn(
            self.tokens, "broker-1", chance("nonces"), self.runtime.port.runtime.new_id,
            lambda: self.time_ns,
        )  # fmt: skip
        self.grants = TopicGrants(self.port, self.policy, lambda: TRUSTED)

    def session(self, who: Identity) -> Session:
        """Of somebody who has proved to have the key."""
        challenge = self.entities.challenge()
        proof = prove(who.signing, SIGN_IN, challenge.audience, challenge.nonce)
        found = self.entities.sign_in(EntityProof(who.entity.spki, proof))
        principal, credential = SignIn(self.policy, [self.tokens]).by_token(found.token)
        return Session(principal, "http", "127.0.0.1:9", credential)

    def present(self, who: Identity, chain: Sequence[str] = ()) -> service.Grant:
        work = self.grants.present(self.session(who), PresentedGrant(SIGNED, tuple(chain)))
        return self.runtime.run(work)

    def revoke(self, number: int, *ids: str, ends_ns: int = NOW_NS + DAY_NS) -> None:
        found = dict.fromkeys(ids, NOW_NS + DAY_NS)
        text = sign_revocations(ADVERT.uuid, number, found, ALICE.signing, self.time_ns, ends_ns)
        work = self.grants.revoke(self.session(MALLORY), PresentedRevocations(SIGNED, text))
        self.runtime.run(work)

    def may(self, who: Identity, action: Action, topic: str = ADVERT.topic) -> bool:
        if action is Action.PUBLISH:
            try:
                self.policy.decide_events(self.session(who), [Event("1", "/s", "t", topic=topic)])
            except NotAllowed:
                return False
            return True
        return self.policy.allows(self.session(who), action, "events", topic)


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_a_grant_gives_its_holder_what_it_says_and_nothing_else(broker: Broker) -> None:
    assert not broker.may(BOB, Action.PUBLISH)

    found = broker.present(BOB, to_bob(Action.PUBLISH))

    assert (found.entity_id, found.topic) == (BOB.eid, ADVERT.topic)
    assert broker.may(BOB, Action.PUBLISH)
    assert broker.may(BOB, Action.PUBLISH, f"{ADVERT.topic}/below")
    assert not broker.may(BOB, Action.SUBSCRIBE)
    assert not broker.may(BOB, Action.PUBLISH, "lab/radar")
    assert not broker.may(MALLORY, Action.PUBLISH)
    assert not broker.may(ALICE, Action.PUBLISH)


def test_the_owner_presents_the_advertisement_alone(broker: Broker) -> None:
    broker.present(ALICE)

    assert broker.may(ALICE, Action.PUBLISH)
    assert broker.may(ALICE, Action.SUBSCRIBE)
    assert broker.may(ALICE, Action.READ)
    with pytest.raises(GrantRefused, match="presents it"):
        broker.present(MALLORY)


def test_a_grant_that_was_stolen_is_worth_nothing(broker: Broker) -> None:
    with pytest.raises(GrantRefused, match=f"the grant is of {BOB.eid}"):
        broker.present(MALLORY, to_bob())

    assert not broker.may(MALLORY, Action.PUBLISH)
    assert broker.grants.grants(broker.session(MALLORY)) == []


def test_what_is_passed_on_is_narrower_and_ends_with_its_parent(broker: Broker) -> None:
    chain = to_bob(Action.PUBLISH, depth=1)
    narrower = terms(Action.PUBLISH, prefix="north")
    longer = next_link(chain, OWNER, BOB.signing, CAROL.signing.public, narrower, nonce("c"))
    broker.present(BOB, chain)
    broker.present(CAROL, longer)
    assert broker.may(CAROL, Action.PUBLISH, f"{ADVERT.topic}/north")
    assert not broker.may(CAROL, Action.PUBLISH, f"{ADVERT.topic}/south")

    broker.revoke(1, nonce("b"))

    for who in (BOB, CAROL):
        assert not broker.may(who, Action.PUBLISH, f"{ADVERT.topic}/north")
    (why,) = broker.grants.explain(CAROL.eid, Action.PUBLISH, f"{ADVERT.topic}/north")
    assert "link 1 of the chain of grants does not hold: the owner has revoked it" in why


def test_a_list_that_is_out_of_date_ends_all_grants_of_the_topic(broker: Broker) -> None:
    broker.present(BOB, to_bob())
    broker.present(ALICE)
    broker.revoke(1, nonce("other"), ends_ns=NOW_NS + 60 * NS)
    assert broker.may(BOB, Action.PUBLISH)

    broker.time_ns += 60 * NS

    assert not broker.may(BOB, Action.PUBLISH)
    assert broker.may(ALICE, Action.PUBLISH)  # her own is no grant
    broker.revoke(2)
    assert broker.may(BOB, Action.PUBLISH)


def test_an_older_list_does_not_bring_back_what_a_newer_one_revoked(broker: Broker) -> None:
    broker.present(BOB, to_bob())
    broker.revoke(2, nonce("b"))

    with pytest.raises(BadSignedStatement, match="number 1"):
        broker.revoke(1)

    assert not broker.may(BOB, Action.PUBLISH)
    broker.revoke(2, nonce("b"))  # the same again is no error


def test_nobody_else_revokes(broker: Broker) -> None:
    broker.present(BOB, to_bob())
    forged = sign_revocations(
        ADVERT.uuid, 1, {nonce("b"): NOW_NS + DAY_NS}, MALLORY.signing, NOW_NS, NOW_NS + DAY_NS
    )
    presented = PresentedRevocations(SIGNED, forged)

    with pytest.raises(BadSignedStatement):
        broker.runtime.run(broker.grants.revoke(broker.session(MALLORY), presented))
    assert broker.may(BOB, Action.PUBLISH)


def test_a_grant_ends_by_its_time_and_with_the_advertisement(broker: Broker) -> None:
    broker.present(BOB, to_bob(expires_ns=NOW_NS + 60 * NS))
    broker.present(ALICE)
    broker.time_ns += 60 * NS
    assert not broker.may(BOB, Action.PUBLISH)
    assert broker.may(ALICE, Action.PUBLISH)

    broker.time_ns = ADVERT.expires_ns

    assert not broker.may(ALICE, Action.PUBLISH)
    with pytest.raises(AdvertisementEnded):
        broker.present(ALICE)
    broker.grants._sweep()
    broker.runtime.settle()
    assert broker.grants.grants(broker.session(BOB)) == []
    assert broker.port.own(service._SERVICE).kept(service.GRANTS) == {}


def test_grants_and_lists_are_there_after_a_restart(broker: Broker) -> None:
    broker.present(BOB, to_bob())
    chain = first_link(OWNER, ALICE.signing, CAROL.signing.public, terms(), nonce("c"))
    broker.present(CAROL, (chain,))
    broker.revoke(1, nonce("c"))

    again = Broker(broker.runtime.store)

    assert again.may(BOB, Action.PUBLISH)
    assert not again.may(CAROL, Action.PUBLISH)
    with pytest.raises(BadSignedStatement):
        again.revoke(1)


def test_what_is_damaged_on_disk_gives_nothing_and_is_named(broker: Broker) -> None:
    broker.present(BOB, to_bob())
    ((key, value),) = broker.port.own(service._SERVICE).kept(service.GRANTS).items()
    work = broker.port.keep_table(service._SERVICE, {key: value.replace(b"eyJ", b"eyK", 1)})
    broker.runtime.run(work)

    again = Broker(broker.runtime.store)

    assert not again.may(BOB, Action.PUBLISH)


def test_a_list_that_is_damaged_on_disk_ends_all_grants_of_its_topic(broker: Broker) -> None:
    broker.present(BOB, to_bob())
    broker.revoke(1, nonce("other"))
    ((key, value),) = broker.port.own(service._SERVICE).kept(service.REVOCATIONS).items()
    work = broker.port.keep_table(service._SERVICE, {key: value.replace(b"eyJ", b"eyK", 1)})
    broker.runtime.run(work)

    again = Broker(broker.runtime.store)

    assert not again.may(BOB, Action.PUBLISH)
    again.revoke(2)
    assert again.may(BOB, Action.PUBLISH)


def test_a_revoked_grant_does_not_come_back_with_a_later_version(broker: Broker) -> None:
    """The list outlives the advertisement that it came with."""
    chain = to_bob(expires_ns=NOW_NS + 60 * DAY_NS)
    found = sign_revocations(
        ADVERT.uuid, 1, {nonce("b"): NOW_NS + 60 * DAY_NS}, ALICE.signing, NOW_NS,
        NOW_NS + 90 * DAY_NS,
    )  # fmt: skip
    work = broker.grants.revoke(broker.session(ALICE), PresentedRevocations(SIGNED, found))
    broker.runtime.run(work)

    broker.time_ns = ADVERT.expires_ns + DAY_NS
    broker.grants._sweep()
    broker.runtime.settle()

    assert ADVERT.uuid in broker.grants._revocations
    again = Broker(broker.runtime.store)
    again.time_ns = broker.time_ns
    longer = msgspec.structs.replace(ADVERT, expires_ns=NOW_NS + 90 * DAY_NS)
    owner = TopicOwner(longer.uuid, longer.topic, longer.creator.key)
    grant = service.Grant("later", BOB.eid, owner, read_chain(chain, owner), longer.expires_ns)
    with pytest.raises(GrantRefused, match="revoked"):
        again.grants._check_now(grant)
    broker.time_ns = NOW_NS + 60 * DAY_NS
    broker.grants._sweep()
    assert ADVERT.uuid not in broker.grants._revocations


def test_a_topic_of_a_node_that_is_not_trusted_is_nobodys(broker: Broker) -> None:
    rogue = identity("rogue", is_tdn=True)
    from tocsin.access.sign_in.certificates import Authorities
    from tocsin.topics.trust import TrustedTdns

    theirs = TrustedTdns(Authorities(), frozenset({rogue.eid}))
    signed, _ = opened(tdn=rogue, trusted=theirs)

    with pytest.raises(BadAdvertisement, match="not trusted"):
        broker.runtime.run(broker.grants.present(broker.session(ALICE), PresentedGrant(signed)))


def test_who_has_shown_no_key_presents_nothing(broker: Broker) -> None:
    bob = broker.session(BOB)
    assert bob.credential is not None
    over = msgspec.structs.replace(bob.credential, expires_ns=NOW_NS)
    keyless = msgspec.structs.replace(bob.credential, entity_id="")
    for session, error in (
        (anonymous("http"), NotSignedIn),
        (msgspec.structs.replace(bob, credential=None), NotSignedIn),
        (msgspec.structs.replace(bob, credential=keyless), GrantRefused),
        (msgspec.structs.replace(bob, credential=over), NotSignedIn),
    ):
        with pytest.raises(error):
            broker.runtime.run(broker.grants.present(session, PresentedGrant(SIGNED, to_bob())))
        with pytest.raises(error):
            broker.grants.grants(session)


def test_an_entity_has_so_many_grants_at_most(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "GRANTS_OF_ENTITY_MAX", 2)
    for number in range(2):
        link = first_link(OWNER, ALICE.signing, BOB.signing.public, terms(), nonce(str(number)))
        broker.present(BOB, (link,))

    with pytest.raises(QuotaReached, match="has 2 grants"):
        broker.present(BOB, to_bob())
    broker.present(ALICE)
    monkeypatch.setattr(service, "GRANTS_MAX", 3)
    chain = first_link(OWNER, ALICE.signing, CAROL.signing.public, terms(), nonce("c"))
    with pytest.raises(QuotaReached, match="3 grants at this broker"):
        broker.present(CAROL, (chain,))


def test_its_holder_forgets_a_grant_and_nobody_else(broker: Broker) -> None:
    found = broker.present(BOB, to_bob())
    with pytest.raises(NoSuchCredential):
        broker.runtime.run(broker.grants.forget(broker.session(CAROL), found.id))

    broker.runtime.run(broker.grants.forget(broker.session(BOB), found.id))

    assert not broker.may(BOB, Action.PUBLISH)
    assert broker.present(BOB, to_bob()).id == found.id


# Signing in with a key


def test_a_proof_is_for_one_nonce_one_broker_and_one_purpose(broker: Broker) -> None:
    challenge = broker.entities.challenge()
    proof = prove(BOB.signing, SIGN_IN, challenge.audience, challenge.nonce)
    shown = EntityProof(BOB.entity.spki, proof)
    broker.entities.sign_in(shown)

    with pytest.raises(ProofRefused, match="used already"):
        broker.entities.sign_in(shown)
    for wrong in (
        prove(BOB.signing, SIGN_IN, "broker-2", broker.entities.challenge().nonce),
        prove(BOB.signing, "present-grant", "broker-1", broker.entities.challenge().nonce),
        prove(MALLORY.signing, SIGN_IN, "broker-1", broker.entities.challenge().nonce),
        prove(BOB.signing, SIGN_IN, "broker-1", "A" * 54),
    ):
        with pytest.raises(ProofRefused):
            broker.entities.sign_in(EntityProof(BOB.entity.spki, wrong))


def test_the_token_of_an_entity_ends_and_cannot_be_made_up(broker: Broker) -> None:
    sign_in = SignIn(broker.policy, [broker.tokens])
    text, ends_ns = broker.tokens.issue(BOB.eid, broker.time_ns)
    assert ends_ns == broker.time_ns + LIFETIME_NS
    principal, credential = sign_in.by_token(text)
    assert (principal.name, credential.entity_id) == (f"entity-{BOB.eid}", BOB.eid)

    later = text.replace(f"{ends_ns:016x}", f"{ends_ns + 1:016x}")
    for wrong in (
        later,
        text.replace(BOB.eid, CAROL.eid),
        text[:-1],
        text + "A",
        f"tce_{BOB.eid}",
        "tce_",
        EntityTokens(chance("of another broker")).issue(BOB.eid, broker.time_ns)[0],
    ):
        with pytest.raises(NotSignedIn):
            sign_in.by_token(wrong)
    broker.time_ns += LIFETIME_NS
    with pytest.raises(NotSignedIn):
        sign_in.by_token(text)
