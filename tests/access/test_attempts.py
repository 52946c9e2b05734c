"""Sign-ins that fail: an address has to wait when it guesses, and nobody else does."""

from __future__ import annotations

import pytest

from tocsin.access.policy.policy import Policy
from tocsin.access.policy.tokens import Token, hash_of, token_text
from tocsin.access.session import Session, anonymous
from tocsin.access.sign_in.attempts import KNOWN_MAX, PEERS_MAX, WAIT_NS_MAX, Attempts, proof_of
from tocsin.access.sign_in.guarded_sign_in import GuardedSignIn
from tocsin.access.sign_in.sign_in import SignIn
from tocsin.errors import NotSignedIn, QuotaReached
from tocsin.event.instant import NS_PER_S

HERE, ELSEWHERE = "192.0.2.1:5000", "192.0.2.2:5000"


def fail(attempts: Attempts, count: int, now_ns: int, peer: str = HERE) -> None:
    for number in range(count):
        attempts.failed(proof_of(peer, b"guess %d at %d" % (number, now_ns)), now_ns)


def wait_s(attempts: Attempts, now_ns: int, peer: str = HERE) -> float:
    """How long the address has to wait; 0 if it need not."""
    try:
        attempts.check(proof_of(peer, b"another"), now_ns)
    except QuotaReached as error:
        return error.retry_after_s or 0.0
    return 0.0


def test_after_ten_guesses_in_a_minute_an_address_has_to_wait_and_others_need_not() -> None:
    attempts = Attempts(10)

    fail(attempts, 9, 0)
    assert wait_s(attempts, 0) == 0
    fail(attempts, 1, 1)

    assert wait_s(attempts, 1) == 30
    assert wait_s(attempts, 1, ELSEWHERE) == 0
    assert wait_s(attempts, 31 * NS_PER_S) == 0


def test_each_wait_is_twice_as_long_as_the_one_before_up_to_an_hour() -> None:
    attempts, now_ns, waits = Attempts(10), 0, []

    for _ in range(12):
        fail(attempts, 10, now_ns)
        waits.append(wait_s(attempts, now_ns))
        now_ns += int(waits[-1] * NS_PER_S)

    assert waits[:4] == [30, 60, 120, 240]
    assert max(waits) * NS_PER_S == WAIT_NS_MAX


def test_who_fails_now_and_then_never_waits() -> None:
    attempts = Attempts(10)

    for minute in range(100):
        fail(attempts, 9, minute * 60 * NS_PER_S)

    assert wait_s(attempts, 99 * 60 * NS_PER_S) == 0


def test_one_wrong_credential_shown_again_is_one_guess_until_it_is_very_often() -> None:
    attempts, wrong = Attempts(10), proof_of(HERE, b"an old token")

    for _ in range(99):
        attempts.failed(wrong, 0)
    assert wait_s(attempts, 0) == 0
    attempts.failed(wrong, 0)

    assert wait_s(attempts, 0) > 0


def test_what_signed_in_before_from_there_is_let_in_meanwhile() -> None:
    attempts, good = Attempts(10), proof_of(HERE, b"good")
    attempts.signed_in(good)

    fail(attempts, 10, 0)

    attempts.check(good, 0)
    assert wait_s(attempts, 0) > 0
    with pytest.raises(QuotaReached):
        attempts.check(proof_of(HERE.replace("5000", "5001"), b"bad"), 0)


def test_an_ipv6_customer_is_one_address() -> None:
    attempts = Attempts(10)

    for number in range(10):
        peer = f"[2001:db8::{number:x}]:80"
        attempts.failed(proof_of(peer, b"guess %d" % number), 0)

    assert wait_s(attempts, 0, "[2001:db8::ffff]:80") > 0
    assert wait_s(attempts, 0, "[2001:db8:0:1::1]:80") == 0


def test_what_is_remembered_of_addresses_and_credentials_is_bounded() -> None:
    attempts = Attempts(10)

    for number in range(max(PEERS_MAX, KNOWN_MAX) + 10):
        peer = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:1"
        attempts.failed(proof_of(peer, b"x"), 0)
        attempts.signed_in(proof_of(peer, b"y"))

    assert len(attempts._peers) == PEERS_MAX
    assert len(attempts._known) == KNOWN_MAX


def test_a_failed_sign_in_is_reported_with_the_caller_and_without_the_secret() -> None:
    told: list[tuple[Session, str, str]] = []
    policy = Policy(lambda: 0)
    policy.set_token(Token("a" * 24, "ann", hash_of("s" * 43), 0))
    guarded = GuardedSignIn(
        lambda refused: SignIn(policy, refused=refused),
        Attempts(3),
        lambda: 0,
        failed=lambda *about: told.append(about),
        waits=lambda *about: told.append(about),
    )
    caller = anonymous("http", HERE)
    wrong = token_text("a" * 24, "w" * 43)

    for header in (f"Bearer {wrong}", wrong, "hunter2"):
        with pytest.raises(NotSignedIn):
            guarded.by_header(header.encode(), caller)
    with pytest.raises(QuotaReached):
        guarded.by_token("one more", caller)

    assert [what for _, what, _ in told] == [
        f"token/{'a' * 24}",
        "authorization",
        "authorization",
        "failed_sign_ins",
    ]
    assert {session for session, _, _ in told} == {caller}
    assert not any(part in str(told) for part in ("w" * 8, "hunter2"))


def test_a_credential_that_has_ended_is_no_guess() -> None:
    policy = Policy(lambda: 10)
    policy.set_token(Token("a" * 24, "ann", hash_of("s" * 43), 0, expires_ns=5))
    guarded = GuardedSignIn(
        lambda refused: SignIn(policy, refused=refused),
        Attempts(1),
        lambda: 0,
        failed=lambda *_: None,
        waits=lambda *_: None,
    )

    for _ in range(100):
        with pytest.raises(NotSignedIn):
            guarded.by_token(token_text("a" * 24, "s" * 43), anonymous("http", HERE))

    assert guarded.failures == 100
