"""Whose token is believed, and whose is not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OctKey

from access.issuer import MODELS, OpenIdIssuer, SigningKey, base64url, compact
from tocsin.access.sign_in.issuer import Issuer
from tocsin.access.sign_in.jws import SIZE_MAX, BadKeySet, BadToken, KeySet, read_key_set
from tocsin.access.sign_in.openid import LEEWAY_S, VERIFIED_MAX, OpenId, credential_key
from tocsin.errors import NotSignedIn

RSA = SigningKey("RS256", kid="first")
OTHER = SigningKey("RS256", kid="first")  # another key by the same name
URL = "https://sso.example.org/realms/lab"
OTHER_URL = "https://login.example.net"


def now_ns() -> int:
    return time.time_ns()


@dataclass
class FixedKeys:
    """The keys of issuers, as a test has them."""

    sets: dict[str, KeySet | None]
    asked: list[str] = field(default_factory=list)

    def of(self, issuer: str) -> KeySet | None:
        return self.sets.get(issuer)

    def wanted(self, issuer: str) -> None:
        self.asked.append(issuer)


def key_set(*keys: SigningKey | dict[str, Any]) -> KeySet:
    jwks = [each.public if isinstance(each, SigningKey) else each for each in keys]
    return read_key_set(json.dumps({"keys": jwks}).encode())


def claims(**more: Any) -> dict[str, Any]:
    now_s = int(time.time())
    found = {"iss": URL, "sub": "alice", "aud": "tocsin", "iat": now_s, "exp": now_s + 300}
    return {name: value for name, value in (found | more).items() if value is not None}


def open_id(*keys: SigningKey | dict[str, Any], **named: Any) -> OpenId:
    issuer = Issuer(**({"issuer": URL, "audience": "tocsin"} | named))
    return OpenId([issuer], FixedKeys({URL: key_set(*(keys or (RSA,)))}))


def why_not(openid: OpenId, token: str, at_ns: int | None = None) -> str:
    """The exact reason for which a token is refused; its holder does not learn it."""
    with pytest.raises(NotSignedIn) as refused:
        openid.sign_in(token, now_ns() if at_ns is None else at_ns)
    cause = refused.value.__cause__
    assert isinstance(cause, BadToken)
    assert str(cause) not in str(refused.value)
    return str(cause)


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


# Keys


def test_a_key_that_is_not_known_is_asked_for_and_said_to_be_coming() -> None:
    keys = FixedKeys({URL: key_set(RSA)})
    openid = OpenId([Issuer(URL, "tocsin")], keys)
    new = SigningKey("RS256", kid="second")

    with pytest.raises(NotSignedIn, match="Try again"):
        openid.sign_in(new.token(claims()), now_ns())
    assert keys.asked == [URL]

    keys.sets[URL] = key_set(RSA, new)
    assert openid.sign_in(new.token(claims()), now_ns())
    assert keys.asked == [URL]


def test_nobody_signs_in_before_there_are_keys() -> None:
    keys = FixedKeys({URL: None})
    with pytest.raises(NotSignedIn, match="Try again"):
        OpenId([Issuer(URL, "tocsin")], keys).sign_in(RSA.token(claims()), now_ns())
    assert keys.asked == [URL]


def test_what_is_wrong_with_a_token_starts_no_request_for_keys() -> None:
    keys = FixedKeys({URL: key_set(RSA)})
    openid = OpenId([Issuer(URL, "tocsin")], keys)
    for token in (
        OTHER.token(claims()),
        RSA.token(claims(aud="x")),
        RSA.token(claims(iss=OTHER_URL), kid="unknown"),
        RSA.token(claims(), kid="unknown", crit=["b64"]),
    ):
        why_not(openid, token)
    assert keys.asked == []


def test_a_key_that_is_withdrawn_ends_what_it_signed_also_what_was_verified() -> None:
    keys = FixedKeys({URL: key_set(RSA)})
    openid = OpenId([Issuer(URL, "tocsin")], keys)
    token = RSA.token(claims())
    assert openid.sign_in(token, now_ns())

    keys.sets[URL] = key_set(SigningKey("ES256", kid="second"))

    assert "kid" in why_not(openid, token)


def test_a_token_without_a_kid_needs_an_issuer_with_one_key_for_it() -> None:
    token = compact({"alg": "RS256"}, claims(), RSA.sign)
    assert open_id(RSA, SigningKey("ES256")).sign_in(token, now_ns())
    assert "2 keys" in why_not(open_id(RSA, SigningKey("RS256")), token)
    assert "2 keys" in why_not(open_id(RSA, OTHER), RSA.token(claims()))


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


# Attacks


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", "", None, ["RS256"], {"a": 1}])
def test_a_token_without_a_signature_is_refused(name: object) -> None:
    for signature in (b"", b"x"):
        token = compact({"alg": name, "kid": "first"}, claims(), lambda _, s=signature: s)
        assert "algorithm" in why_not(open_id(), token)
    signed = compact({"alg": "RS256", "kid": "first"}, claims(), lambda _: b"")
    assert "signature" in why_not(open_id(), signed)


@pytest.mark.parametrize("size", [256, 384, 512])
def test_the_public_key_is_no_shared_secret(size: int) -> None:
    """The classic confusion: what is published is taken for the secret of an HMAC."""
    public = RSA.key.public_key
    pem = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    der = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    jwk = json.dumps(RSA.public).encode()
    modulus = base64.urlsafe_b64decode(RSA.public["n"] + "==")
    for secret in (pem, pem.strip(), der, jwk, modulus, RSA.public["n"].encode(), b""):
        token = compact(
            {"alg": f"HS{size}", "kid": "first"},
            claims(),
            lambda signed, k=secret: hmac.new(k, signed, f"sha{size}").digest(),
        )
        assert "algorithm" in why_not(open_id(), token)


def test_a_shared_secret_among_the_keys_of_an_issuer_is_never_used() -> None:
    secret = OctKey.import_key(b"0" * 32).as_dict() | {"kid": "s", "alg": "HS256", "use": "sig"}
    token = compact(
        {"alg": "HS256", "kid": "s"},
        claims(),
        lambda signed: hmac.new(b"0" * 32, signed, hashlib.sha256).digest(),
    )
    assert "algorithm" in why_not(open_id(RSA, secret), token)
    assert "kind" in key_set(RSA, secret).skipped[0]


@pytest.mark.parametrize(
    "algorithm", ["RS512", "PS256", "ES256", "ES512", "EdDSA", "ES256K", "Ed448"]
)
def test_an_algorithm_must_fit_the_key(algorithm: str) -> None:  # fmt: skip
    token = compact({"alg": algorithm, "kid": "first"}, claims(), RSA.sign)
    assert "first" in why_not(open_id(), token) or "algorithm" in why_not(open_id(), token)


def test_a_key_without_an_algorithm_is_for_those_of_its_kind() -> None:
    jwk = {name: value for name, value in RSA.public.items() if name != "alg"}
    for algorithm in ("RS384", "PS512"):
        same = SigningKey(algorithm, kid="first", key=RSA.key)
        assert open_id(jwk).sign_in(same.token(claims()), now_ns())
    ec = SigningKey("ES256", kid="first")
    assert "does not fit" in why_not(open_id(jwk), ec.token(claims()))


@pytest.mark.parametrize("name", ["jku", "x5u"])
def test_the_address_of_a_key_in_a_header_is_never_asked(name: str) -> None:
    with OpenIdIssuer() as attacker:
        address = f"{attacker.url}/keys"
        forged = attacker.key.token(claims(), kid="first", **{name: address})
        unknown = attacker.key.token(claims(), **{name: address})
        assert "signature" in why_not(open_id(), forged)
        assert "kid" in why_not(open_id(), unknown)
        assert attacker.asked == []
    # Some issuers say there where their keys are: it is of no use, and no harm.
    assert open_id().sign_in(RSA.token(claims(), **{name: address}), now_ns())


def test_a_key_in_a_header_is_refused() -> None:
    forged = OTHER.token(claims(), jwk=OTHER.public)
    assert "'jwk'" in why_not(open_id(), forged)
    assert "signature" in why_not(open_id(), OTHER.token(claims(), x5c=["MIIB"]))


@pytest.mark.parametrize("crit", [["b64"], ["exp"], [], "b64", None])
def test_what_a_header_calls_critical_is_refused(crit: object) -> None:
    assert "'crit'" in why_not(open_id(), RSA.token(claims(), crit=crit))
    assert "'b64'" in why_not(open_id(), RSA.token(claims(), b64=False))


@pytest.mark.parametrize("kid", ["../../etc/passwd", "' OR 1=1 --", "first\x00", "", "x" * 3000])
def test_a_strange_kid_is_an_unknown_one(kid: str) -> None:
    assert "kid" in why_not(open_id(), RSA.token(claims(), kid=kid))


@pytest.mark.parametrize("kid", [5, ["first"], {"kid": "first"}, True])
def test_a_kid_that_is_no_text_is_refused(kid: object) -> None:
    assert "kid" in why_not(open_id(), RSA.token(claims(), kid=kid))


def test_a_token_that_is_too_long_is_refused_before_it_is_read() -> None:
    token = RSA.token(claims(padding="x" * SIZE_MAX))
    assert OpenId.looks_like(token)
    assert "characters" in why_not(open_id(), token)


def test_a_payload_that_was_changed_is_refused() -> None:
    head, payload, signature = RSA.token(claims()).split(".")
    changed = base64url(json.dumps(claims(sub="root")).encode())
    assert "signature" in why_not(open_id(), f"{head}.{changed}.{signature}")
    other_head = base64url(json.dumps({"alg": "RS256", "kid": "first", "typ": "JWT"}).encode())
    assert "signature" in why_not(open_id(), f"{other_head}.{payload}.{signature}")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b'"iss"',
        b"{",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"[" * 2800 + b"]" * 2800,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b'{"iss": NaN}',
        b'{"exp": 1e999}',
        b'{"exp": ' + b"9" * 4400 + b"}",
        b'{"iss": "\\ud800"}',
        b"{} {}",
    ],
    ids=range(14),
)
def test_a_payload_that_is_no_plain_json_object_is_refused(payload: bytes) -> None:
    token = compact({"alg": "RS256", "kid": "first"}, payload, RSA.sign)
    assert "payload" in why_not(open_id(), token) or "issuer" in why_not(open_id(), token)


@pytest.mark.parametrize("depth", [5, 400, 900])
@pytest.mark.parametrize("name", ["aud", "groups", "exp", "sub", "iss", "nbf"])
def test_deep_claims_are_refused_as_others_of_the_wrong_kind(name: str, depth: int) -> None:
    inner = "[" * depth + "]" * depth
    text = json.dumps(claims(**{name: "@"})).replace('"@"', inner)
    token = compact({"alg": "RS256", "kid": "first"}, text.encode(), RSA.sign)
    assert why_not(open_id(), token)


@pytest.mark.parametrize("name", ["iss", "aud", "sub", "exp"])
def test_a_claim_that_comes_twice_is_refused(name: str) -> None:
    good = json.dumps(claims())
    escaped = f"\\u{ord(name[0]):04x}{name[1:]}"
    for twice in (name, escaped):
        payload = f'{{"{twice}": "root", {good[1:]}'.encode()
        token = compact({"alg": "RS256", "kid": "first"}, payload, RSA.sign)
        assert "twice" in why_not(open_id(), token)
    head = b'{"alg": "none", "alg": "RS256", "kid": "first"}'
    assert "twice" in why_not(open_id(), compact(head, claims(), RSA.sign))


def variants() -> Iterator[str]:
    good = RSA.token(claims())
    head, payload, signature = good.split(".")
    yield from ("", ".", "..", "a", "a.b", good + ".", "." + good, good + "." + signature)
    yield from (f"{head}..{signature}", f".{payload}.{signature}", f"{head}.{payload}")
    yield from (f" {good}", f"{good}\n", good + "=", good.replace(".", ". "), good + "\x00")
    yield from (f"{head}=.{payload}.{signature}", f"{head}.{payload}.{signature}A")
    yield from (good.replace("-", "+").replace("_", "/") + "+", good[:-1] + "é", good + "ß")
    yield json.dumps({"protected": head, "payload": payload, "signature": signature})


@pytest.mark.parametrize("text", list(variants()), ids=range(len(list(variants()))))
def test_what_is_no_token_in_the_compact_form_is_refused(text: str) -> None:
    assert why_not(open_id(), text)


def test_a_signature_is_written_in_one_way_only() -> None:
    """The last character of base64 has bits that are not used."""
    good = RSA.token(claims())
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    same = good[:-1] + letters[letters.index(good[-1]) ^ 1]
    assert base64.urlsafe_b64decode(same.split(".")[2] + "==") == base64.urlsafe_b64decode(
        good.split(".")[2] + "=="
    )
    assert "as it is written" in why_not(open_id(), same)


@given(st.text())
def test_garbage_is_refused(text: str) -> None:
    assert why_not(open_id(), text)


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=80))
def test_garbage_in_three_parts_is_refused(head: bytes, payload: bytes, signature: bytes) -> None:
    text = ".".join(map(base64url, (head, payload, signature)))
    assert OpenId.looks_like(text) == bool(head)
    assert why_not(open_id(), text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["iss", "sub", "aud", "exp", "nbf", "iat", "groups"]), JSON))
def test_whatever_a_signed_token_says_it_is_refused_or_a_principal(changed: dict[str, Any]) -> None:
    token = RSA.token(claims() | changed)
    try:
        principal, credential = open_id().sign_in(token, now_ns())
    except NotSignedIn:
        return
    assert principal.name.isprintable()
    assert credential.expires_ns is not None


@given(st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "cty", "x5c"]), JSON))
def test_whatever_a_header_says_nobody_but_the_issuer_signs(changed: dict[str, Any]) -> None:
    assert why_not(open_id(), OTHER.token(claims(), **changed))


# What looks like one


def test_a_token_of_the_broker_does_not_look_like_one_of_an_issuer() -> None:
    assert OpenId.looks_like(RSA.token(claims()))
    assert OpenId.looks_like("e30.e30.")  # also one without a signature, to be refused as such
    for text in ("tcs_" + "0" * 24 + "_" + "a" * 43, "", "a.b", "a.b.c.d.e", "a.b.c=", "a.b.ü"):
        assert not OpenId.looks_like(text)


def number(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8))


EC = SigningKey("ES256", kid="ec").public
EDWARDS = SigningKey("EdDSA", kid="ed").public
WITHOUT_ALG = {name: value for name, value in RSA.public.items() if name != "alg"}


@pytest.mark.parametrize(
    ("jwk", "why"),
    [
        (RSA.key.as_dict(private=True) | {"kid": "leaked"}, "private part"),
        (RSA.public | {"use": "enc"}, "not for signatures"),
        (WITHOUT_ALG | {"key_ops": ["encrypt"]}, "not for signatures"),
        (WITHOUT_ALG | {"key_ops": "verify"}, "not for signatures"),
        (RSA.public | {"kid": 5}, "kid"),
        (RSA.public | {"alg": "RSA-OAEP"}, "algorithm"),
        (RSA.public | {"alg": "HS256"}, "algorithm"),
        (RSA.public | {"alg": "none"}, "algorithm"),
        (RSA.public | {"alg": ["RS256"]}, "algorithm"),
        (RSA.public | {"n": number(2**1023 + 1)}, "1024 bits"),
        (RSA.public | {"n": number(2**8200 + 1)}, "8201 bits"),
        (RSA.public | {"n": "A" * 100_000}, "too long"),
        (RSA.public | {"n": 5}, "not a text"),
        (RSA.public | {"n": "a+b="}, "base64url"),
        (RSA.public | {"n": number(65537**129)}, "factored"),
        (RSA.public | {"e": number(2**64 + 1)}, "exponent"),
        (RSA.public | {"e": number(1)}, "cannot be read"),
        (RSA.public | {"e": number(2)}, "cannot be read"),
        ({"kty": "RSA"}, "cannot be read"),
        (EC | {"x": EC["y"], "y": EC["x"]}, "cannot be read"),
        (EC | {"crv": "P-384"}, "cannot be read"),
        (EC | {"crv": "secp256k1"}, "secp256k1"),
        (EC | {"crv": ["P-256"]}, "cannot be read"),
        (EC | {"alg": "ES384"}, "algorithm"),
        (EDWARDS | {"crv": "X25519"}, "X25519"),
        (EDWARDS | {"x": "AAAA"}, "cannot be read"),
        (EDWARDS | {"alg": "ES256"}, "algorithm"),
        ({"kty": "oct", "k": "AAAA"}, "oct"),
        ({"kty": ["RSA"]}, "kind"),
        ({}, "kind"),
        ("RSA", "object"),
        (None, "object"),
    ],
)
def test_a_key_that_must_not_sign_tokens_is_passed_over(jwk: Any, why: str) -> None:
    good = SigningKey("ES512", kid="good")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # some libraries only warn
        found = key_set(good, jwk)
        with pytest.raises(BadKeySet, match="none of its keys"):
            key_set(jwk)

    assert [each.kid for each in found.keys] == ["good"]
    assert why in found.skipped[0]


def test_what_else_is_said_of_a_key_does_not_matter() -> None:
    jwk = RSA.public | {
        "x5c": ["MIIB"],
        "x5t": 5,
        "x5u": "nowhere",
        "nbf": 1,
        "key_ops": ["verify"],
    }
    assert open_id(jwk).sign_in(RSA.token(claims()), now_ns())
    for algorithm in ("EdDSA", "Ed25519"):  # two names of one algorithm
        key = SigningKey("EdDSA", kid="ed")
        token = compact({"alg": algorithm, "kid": "ed"}, claims(), key.sign)
        assert open_id(key).sign_in(token, now_ns())
