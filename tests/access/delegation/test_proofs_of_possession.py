"""Proofs of possession: for one purpose, one broker, one nonce, one grant, and once."""

from __future__ import annotations

import pytest
from granting import ALICE, BOB, NOW_NS, granted
from hypothesis import given
from hypothesis import strategies as st

from tocsin.access.delegation import proof, statements
from tocsin.access.delegation.chain import GRANT_KIND
from tocsin.access.delegation.proof import (
    CHANCE_BYTES,
    NONCE_LIFETIME_NS,
    PRESENT_GRANT,
    PROOF_KIND,
    SIGN_IN,
    Nonces,
    check_proof,
    prove,
)
from tocsin.errors import Busy, ProofRefused

HERE = "broker-1"
GRANT = statements.digest(granted()[-1])


def nonces() -> Nonces:
    return Nonces(b"s" * 32)


def nonce(of: Nonces, number: int = 0, at_ns: int = NOW_NS) -> str:
    return of.issue(number.to_bytes(CHANCE_BYTES), at_ns)


def test_the_holder_of_the_key_proves_it() -> None:
    known = nonces()
    text = prove(ALICE, PRESENT_GRANT, HERE, nonce(known), GRANT)

    check_proof(text, ALICE.public, PRESENT_GRANT, HERE, known, NOW_NS, GRANT)


def test_a_proof_counts_once() -> None:
    known = nonces()
    once = nonce(known)
    text = prove(ALICE, SIGN_IN, HERE, once)

    check_proof(text, ALICE.public, SIGN_IN, HERE, known, NOW_NS)

    with pytest.raises(ProofRefused, match="used already"):
        check_proof(text, ALICE.public, SIGN_IN, HERE, known, NOW_NS + 1)
    with pytest.raises(ProofRefused, match="used already"):  # by another proof, too
        check_proof(prove(BOB, SIGN_IN, HERE, once), BOB.public, SIGN_IN, HERE, known, NOW_NS)


def test_a_refused_proof_does_not_use_up_the_nonce() -> None:
    known = nonces()
    once = nonce(known)

    with pytest.raises(ProofRefused):
        check_proof(prove(BOB, SIGN_IN, HERE, once), ALICE.public, SIGN_IN, HERE, known, NOW_NS)

    check_proof(prove(ALICE, SIGN_IN, HERE, once), ALICE.public, SIGN_IN, HERE, known, NOW_NS)


@pytest.mark.parametrize(
    ("purpose", "audience", "grant", "why"),
    [
        (SIGN_IN, HERE, GRANT, "for the purpose 'sign-in'"),
        (PRESENT_GRANT, "broker-2", GRANT, "for 'broker-2'"),
        (PRESENT_GRANT, HERE, "", "about another grant"),
        (PRESENT_GRANT, HERE, statements.digest("x"), "about another grant"),
    ],
)
def test_a_proof_is_for_what_it_says_and_nothing_else(
    purpose: str, audience: str, grant: str, why: str
) -> None:
    known = nonces()
    text = prove(ALICE, purpose, audience, nonce(known), grant)

    with pytest.raises(ProofRefused, match=why):
        check_proof(text, ALICE.public, PRESENT_GRANT, HERE, known, NOW_NS, GRANT)


def test_a_proof_by_another_key_or_of_another_kind_is_none() -> None:
    known = nonces()
    said = proof.Proof(SIGN_IN, HERE, nonce(known))

    for text in (
        prove(BOB, SIGN_IN, HERE, nonce(known)),
        statements.sign(GRANT_KIND, said, ALICE),
        granted()[0],
        "",
        "a.b.c",
    ):
        with pytest.raises(ProofRefused):
            check_proof(text, ALICE.public, SIGN_IN, HERE, known, NOW_NS)


@pytest.mark.parametrize("at_ns", [NOW_NS - 1, NOW_NS + NONCE_LIFETIME_NS])
def test_a_nonce_ends_and_has_not_begun_before_it_was_drawn(at_ns: int) -> None:
    known = nonces()

    known.check(nonce(known), NOW_NS + NONCE_LIFETIME_NS - 1)
    with pytest.raises(ProofRefused, match="too old"):
        known.use(nonce(known), at_ns)


def test_a_nonce_of_another_broker_is_refused() -> None:
    with pytest.raises(ProofRefused, match="not of this broker"):
        nonces().use(nonce(Nonces(b"t" * 32)), NOW_NS)


@given(text=st.text(max_size=120) | st.text("ABCabc019-_", max_size=60))
def test_no_nonce_can_be_made_up(text: str) -> None:
    with pytest.raises(ProofRefused):
        nonces().use(text, NOW_NS)


@given(at=st.integers(0, 53))
def test_no_character_of_a_nonce_can_be_changed(at: int) -> None:
    known = nonces()
    good = nonce(known)
    changed = good[:at] + ("A" if good[at] != "A" else "B") + good[at + 1 :]

    with pytest.raises(ProofRefused):
        known.use(changed, NOW_NS)
    with pytest.raises(ProofRefused):
        known.use(good + "A", NOW_NS)


def test_used_nonces_are_bounded_and_forgotten_when_they_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proof, "USED_MAX", 3)
    known = nonces()
    for number in range(3):
        known.use(nonce(known, number), NOW_NS)

    with pytest.raises(Busy):
        known.use(nonce(known, 3), NOW_NS)

    later_ns = NOW_NS + NONCE_LIFETIME_NS
    known.use(nonce(known, 4, later_ns), later_ns)
    with pytest.raises(ProofRefused, match="too old"):
        known.use(nonce(known, 0), later_ns)
    assert PROOF_KIND != GRANT_KIND
