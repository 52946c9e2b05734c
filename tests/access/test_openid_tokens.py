"""Whose token is believed, and whose is not."""

from __future__ import annotations

import time
import warnings

import pytest
from openid_tokens import (
    OTHER,
    OTHER_URL,
    RSA,
    URL,
    FixedKeys,
    claims,
    key_set,
    now_ns,
    open_id,
    why_not,
)

from access.issuer import MODELS, SigningKey
from tocsin.access.sign_in.issuer import Issuer
from tocsin.access.sign_in.openid import LEEWAY_S, VERIFIED_MAX, OpenId, credential_key

# Who somebody is


def test_a_token_of_the_issuer_signs_its_subject_in_until_it_ends() -> None:
    token_claims = claims(exp=int(time.time()) + 60)

    principal, credential = open_id().sign_in(RSA.token(token_claims, typ="at+jwt"), now_ns())

    assert principal.name == "alice"
    assert principal.groups == frozenset()
    assert not principal.is_internal
    assert credential.kind == "openid"
    assert credential.key == credential_key(URL, "alice")
    assert credential.key.startswith("openid/")
    assert credential.key.endswith("/alice")
    assert credential.expires_ns == token_claims["exp"] * 10**9


@pytest.mark.parametrize(
    "algorithm",
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
     "Ed25519"],
)  # fmt: skip
def test_every_asymmetric_algorithm_is_verified(algorithm: str) -> None:
    key = SigningKey(algorithm)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        principal, _ = open_id(key).sign_in(key.token(claims()), now_ns())
    assert principal.name == "alice"

    signed, _, signature = key.token(claims()).rpartition(".")
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    assert "signature" in why_not(open_id(key), f"{signed}.{flipped}")


@pytest.mark.parametrize("typ", [None, "JWT", "jwt", "at+jwt", "application/at+jwt"])
def test_types_of_access_tokens_are_accepted(typ: str | None) -> None:
    header = {} if typ is None else {"typ": typ}
    assert open_id().sign_in(RSA.token(claims(), **header), now_ns())


@pytest.mark.parametrize("typ", ["logout+jwt", "dpop+jwt", "secevent+jwt", "JWE", ""])
def test_tokens_for_other_purposes_are_refused(typ: str) -> None:
    assert "type" in why_not(open_id(), RSA.token(claims(), typ=typ))


def test_a_logout_token_without_a_type_is_refused() -> None:
    events = {"http://schemas.openid.net/event/backchannel-logout": {}}
    assert "event" in why_not(open_id(), RSA.token(claims(events=events)))


def test_the_name_and_the_groups_come_from_configured_claims_with_the_prefix() -> None:
    openid = open_id(
        name_claim="preferred_username", groups_claim="realm_access.roles", prefix="lab:"
    )
    token = RSA.token(
        claims(preferred_username="bob", realm_access={"roles": ["ops", "users"]}, groups=["no"])
    )

    principal, credential = openid.sign_in(token, now_ns())

    assert principal.name == "lab:bob"
    assert principal.groups == {"lab:ops", "lab:users"}
    assert credential.key.endswith("/alice")  # the subject, which is never given to somebody else


def test_a_claim_may_have_dots_in_its_name() -> None:
    openid = open_id(groups_claim="https://example.org/groups")
    token = RSA.token(claims(**{"https://example.org/groups": "ops"}))

    assert openid.sign_in(token, now_ns())[0].groups == {"ops"}


@pytest.mark.parametrize("verified", [None, False, "true", 1])
def test_an_email_is_a_name_only_if_the_issuer_has_verified_it(verified: object) -> None:
    openid = open_id(name_claim="email")
    email = {"email": "alice@example.org"}

    assert "verified" in why_not(openid, RSA.token(claims(**email, email_verified=verified)))
    good = RSA.token(claims(**email, email_verified=True))
    assert openid.sign_in(good, now_ns())[0].name == "alice@example.org"


@pytest.mark.parametrize(
    "name",
    ["broker", "anonymous", "", " alice", "al\nice", "al\u202eice", "a" * 256, 7, ["a"], None],
)
def test_names_that_nobody_may_have_are_refused(name: object) -> None:
    assert "name" in why_not(
        open_id(name_claim="preferred_username"), RSA.token(claims(preferred_username=name))
    )


def test_a_reserved_name_is_one_with_its_prefix() -> None:
    openid = open_id(prefix="bro")
    assert "'broker'" in why_not(openid, RSA.token(claims(sub="ker")))
    assert open_id(prefix="x-").sign_in(RSA.token(claims(sub="broker")), now_ns())


@pytest.mark.parametrize("groups", [[1], ["a\x00"], {"a": "b"}, [["a"]], [""], 5])
def test_groups_that_are_no_texts_are_refused(groups: object) -> None:
    assert "group" in why_not(open_id(), RSA.token(claims(groups=groups)))


@pytest.mark.parametrize("sub", [None, "", 5, "a\u0000b", "x" * 256])
def test_a_token_without_a_subject_is_refused(sub: object) -> None:
    openid = open_id(name_claim="preferred_username")
    assert "sub" in why_not(openid, RSA.token(claims(preferred_username="bob", sub=sub)))


# Times


def test_a_token_is_refused_from_the_moment_it_ends_also_when_it_was_good_before() -> None:
    openid = open_id()
    end_ns = (int(time.time()) + 60) * 10**9
    token = RSA.token(claims(exp=end_ns // 10**9))
    assert openid.sign_in(token, end_ns - 1)

    assert "expired" in why_not(openid, token, end_ns)
    assert "expired" in why_not(open_id(), token, end_ns)


@pytest.mark.parametrize("exp", [None, "soon", True, [1], 1e300, -1, 2**64])
def test_a_token_without_an_end_is_refused(exp: object) -> None:
    assert "exp" in why_not(open_id(), RSA.token(claims(exp=exp)))


@pytest.mark.parametrize("name", ["nbf", "iat"])
def test_a_token_is_refused_before_its_time_but_clocks_may_differ_a_little(name: str) -> None:
    now_s = int(time.time())
    token = RSA.token(claims(**{name: now_s + 100}))

    assert "not valid yet" in why_not(open_id(), token, now_s * 10**9)
    assert open_id().sign_in(token, (now_s + 100 - LEEWAY_S) * 10**9)
    assert "time" in why_not(open_id(), RSA.token(claims(**{name: "now"})))


# For whom, and by whom


@pytest.mark.parametrize(
    "aud", [None, "", "tocsin2", "TOCSIN", ["a", "b"], [], {"tocsin": 1}, [["tocsin"]]]
)
def test_a_token_for_somebody_else_is_refused(aud: object) -> None:  # fmt: skip
    assert "is for" in why_not(open_id(), RSA.token(claims(aud=aud)))


def test_a_token_for_several_is_accepted() -> None:
    assert open_id().sign_in(RSA.token(claims(aud=["account", "tocsin"])), now_ns())


@pytest.mark.parametrize(
    "iss", [None, "", URL + "/", URL.upper(), URL + "?", "http" + URL[5:], OTHER_URL, 5, [URL]]
)
def test_only_exactly_the_configured_issuer_is_believed(iss: object) -> None:
    assert "issuer" in why_not(open_id(), RSA.token(claims(iss=iss)))


def test_two_issuers_with_one_subject_are_two_principals() -> None:
    second = SigningKey("ES256", kid="first")
    openid = OpenId(
        [Issuer(URL, "tocsin", prefix="lab:"), Issuer(OTHER_URL, "tocsin", prefix="net:")],
        FixedKeys({URL: key_set(RSA), OTHER_URL: key_set(second)}),
    )

    one = openid.sign_in(RSA.token(claims()), now_ns())
    other = openid.sign_in(second.token(claims(iss=OTHER_URL)), now_ns())

    assert one[0].name == "lab:alice"
    assert other[0].name == "net:alice"
    assert one[1].key != other[1].key


def test_a_key_of_one_issuer_signs_nothing_for_another() -> None:
    second = SigningKey("RS256", kid="second")
    keys = FixedKeys({URL: key_set(RSA), OTHER_URL: key_set(second)})
    openid = OpenId(
        [Issuer(URL, "tocsin", prefix="a:"), Issuer(OTHER_URL, "tocsin", prefix="b:")], keys
    )

    assert "kid" in why_not(openid, second.token(claims()))
    assert "signature" in why_not(openid, second.token(claims(), kid="first"))
    assert "signature" in why_not(openid, OTHER.token(claims()))


def test_a_verified_token_is_not_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    openid, token = open_id(), RSA.token(claims())
    first = openid.sign_in(token, now_ns())
    monkeypatch.setattr(MODELS["RS256"].__class__, "verify", lambda *_: False)

    assert openid.sign_in(token, now_ns()) == first
    assert "signature" in why_not(openid, token[:-2] + ("AA" if token[-2:] != "AA" else "BA"))


def test_only_so_many_verified_tokens_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.access.sign_in.openid.VERIFIED_MAX", 3)
    openid = open_id()
    for number in range(10):
        openid.sign_in(RSA.token(claims(sub=f"s{number}")), now_ns())
    assert len(openid._verified) == 3
    assert VERIFIED_MAX >= 1000


# What looks like one


def test_a_token_of_the_broker_does_not_look_like_one_of_an_issuer() -> None:
    assert OpenId.looks_like(RSA.token(claims()))
    assert OpenId.looks_like("e30.e30.")  # also one without a signature, to be refused as such
    for text in ("tcs_" + "0" * 24 + "_" + "a" * 43, "", "a.b", "a.b.c.d.e", "a.b.c=", "a.b.ü"):
        assert not OpenId.looks_like(text)
