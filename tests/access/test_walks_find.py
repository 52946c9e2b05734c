"""The walks with credentials find what they are for: a broker that ignores what is wrong with a
credential, or what is right with it, at any of its listeners."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from frames_conversation import converse
from frames_walk import Tcp, walk_gma, walk_tcp
from http_walk import walk_http
from link_walk import LATER, walk_dialled_link, walk_link
from pegasus_walk import walk_pegasus
from refusing import NOT_SIGNED_IN, Refusing, Walk, refusing
from site_clients import (
    ANONYMOUS,
    BAD,
    BAD_TOKENS,
    ENDS,
    EVERYTHING,
    NOTHING,
    REQUIRED,
    Clients,
    check_answers,
    show_bad,
    show_ending,
    show_good,
    sign_in,
    sign_in_for_a_while,
    site_broker,
)
from soap_walk import walk_soap, walk_soap_tcp
from sockets_walk import SOCKETS, walk_sockets

from tocsin.access.policy import policy
from tocsin.access.policy.grants import Grants
from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import EVERY_RIGHT
from tocsin.access.policy.tokens import parse_token
from tocsin.access.session import ANONYMOUS as NOBODY
from tocsin.access.session import Credential, CredentialKind, Principal, Session
from tocsin.access.sign_in import certificates
from tocsin.access.sign_in.certificates import Authorities, Authority
from tocsin.access.sign_in.sign_in import SignedIn, SignIn
from tocsin.drivers import broker_tls
from tocsin.drivers.frames import connection as frames_connection
from tocsin.drivers.http import server as http_server
from tocsin.drivers.link import connection as link_connection
from tocsin.drivers.listeners import stream_listener
from tocsin.drivers.tls import contexts as tls
from tocsin.drivers.tls.certificates import PeerCertificates
from tocsin.wire.gma import messages as m

X509_V_FLAG_NO_CHECK_TIME = 0x200000
Patch = pytest.MonkeyPatch
Script = Callable[[Clients, Refusing], Awaitable[None]]

FRAMES = frozenset(kind.__name__ for kind in m.REPLY_TO)
# What each walk has to name when nothing is refused, among the rest.
NAMED: dict[Walk, frozenset[str]] = {
    walk_http: frozenset({"GET /events", "POST /subscriptions", "GET /access/audit"}),
    walk_soap: frozenset({"Subscribe", "Notify", "CreatePullPoint", "CreateSequence"}),
    walk_soap_tcp: frozenset({"Subscribe", "Notify", "CreatePullPoint", "CreateSequence"}),
    walk_gma: FRAMES,
    walk_tcp: FRAMES,
    walk_pegasus: frozenset({"a record"}),
    walk_link: frozenset(type(each).__name__ for each in LATER),
    walk_dialled_link: frozenset(type(each).__name__ for each in LATER),
    walk_sockets: SOCKETS | {"publish", "subscribe", "register"},
}
CUT_OFF = (walk_gma, walk_soap_tcp, walk_tcp, walk_pegasus, walk_link, walk_dialled_link)


def run(directory: Path, script: Script) -> None:
    clients = Clients(directory)

    async def main() -> None:
        async with site_broker(clients, directory / "log") as broker:
            await script(clients, broker)

    uvloop.run(main())


async def finds(broker: Refusing, walk: Walk) -> None:
    wrong = await walk(broker)
    named = NAMED[walk] - ({m.EventMessage.__name__} if broker.is_cut_off else set())
    assert {name for name in named if not any(name in each for each in wrong)} == set()


# Credentials that are over, on connections that were made before


def _valid_for_ever(self: Policy, session: Session) -> Grants:
    """That of the product, but for the end of the credential."""
    principal, credential = session.principal, session.credential
    if credential is None:
        return self.grants_of(NOBODY.name, policy.NOBODY, "")
    return self.grants_of(principal.name, principal.groups, credential.key)


def forget_ends(patch: Patch, how: str) -> None:
    if how == "revoked":
        patch.setattr(policy, "is_over", lambda *_: False)
    else:
        patch.setattr(Policy, "_valid", _valid_for_ever)


@pytest.mark.parametrize("walk", NAMED)
@pytest.mark.parametrize("how", ENDS)
def test_a_certificate_whose_end_is_ignored_is_found(
    how: str, walk: Walk, tmp_path: Path, monkeypatch: Patch
) -> None:
    forget_ends(monkeypatch, how)

    async def script(clients: Clients, broker: Refusing) -> None:
        show_ending(clients, broker, how)
        await finds(broker, walk)

    run(tmp_path, script)


# Certificates that are shown


def _first_authority(self: Authorities, certificate: object, now: object) -> Authority:
    return self.all[0]


def _trust_anybody(context: tls.SiteContext, peers: PeerCertificates) -> None:
    context.peers = peers
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    every = [each["by"] for each in BAD.values() if each.get("by") is not None]
    context.load_verify_locations(cadata="".join(each.pem.decode() for each in every))


def _check_no_time(context: tls.SiteContext, peers: PeerCertificates) -> None:
    _TRUST(context, peers)
    context.verify_flags |= ssl.VerifyFlags(X509_V_FLAG_NO_CHECK_TIME)


_TRUST = tls.trust_peers


def forget_what_is_wrong(patch: Patch, what: str) -> None:
    """At both of the places that look, and when it is used."""
    trust = _TRUST
    if what == "expired":
        patch.setattr(certificates, "_check_dates", lambda *_: None)
        patch.setattr(Policy, "_valid", _valid_for_ever)
        trust = _check_no_time
    elif what == "revoked":
        patch.setattr(policy, "is_over", lambda *_: False)
        patch.setattr(PeerCertificates, "revoked", frozenset(), raising=False)
        patch.setattr(PeerCertificates, "load", _load_no_list)
    else:
        patch.setattr(Authorities, "issuer_of", _first_authority)
        trust = _trust_anybody
    patch.setattr(tls, "trust_peers", trust)
    patch.setattr(broker_tls, "trust_peers", trust)


def _load_no_list(self: PeerCertificates) -> None:
    _LOAD(self)
    self.revoked = frozenset()


_LOAD = PeerCertificates.load


@pytest.mark.parametrize("walk", CUT_OFF[:-1])  # of a far end a client's TLS decides, by its host
@pytest.mark.parametrize("what", ["of a foreign authority", "expired", "revoked"])
def test_a_certificate_of_which_is_ignored_what_is_wrong_is_found(
    what: str, walk: Walk, tmp_path: Path, monkeypatch: Patch
) -> None:
    forget_what_is_wrong(monkeypatch, what)

    async def script(clients: Clients, broker: Refusing) -> None:
        show_bad(clients, broker, what)
        await finds(broker, walk)

    run(tmp_path, script)


def test_a_far_end_that_is_revoked_and_taken_is_found(tmp_path: Path, monkeypatch: Patch) -> None:
    forget_what_is_wrong(monkeypatch, "revoked")

    async def script(clients: Clients, broker: Refusing) -> None:
        show_bad(clients, broker, "revoked")
        await finds(broker, walk_dialled_link)

    run(tmp_path, script)


# Whoever asks is taken for somebody else


def take_everybody_for(patch: Patch, principal: Principal) -> None:
    def session_of(session: Session, _: object) -> Session:
        credential = Credential(CredentialKind.CERTIFICATE, "certificate/x/1")
        shown = None if principal == NOBODY else credential
        return Session(principal, session.endpoint, session.peer, shown)

    for module in (frames_connection, http_server, stream_listener, link_connection):
        patch.setattr(module, "certificate_session", session_of)


@pytest.mark.parametrize("walk", NAMED)
@pytest.mark.parametrize("principal", [ANONYMOUS, NOTHING])
def test_a_stranger_who_is_taken_for_somebody_else_is_found(
    principal: str, walk: Walk, tmp_path: Path, monkeypatch: Patch
) -> None:
    take_everybody_for(monkeypatch, Principal(EVERYTHING))

    async def script(clients: Clients, broker: Refusing) -> None:
        show_good(clients, broker, principal)
        await finds(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", [walk_http, walk_soap, walk_soap_tcp])
def test_a_certificate_that_nobody_looks_at_is_found(
    walk: Walk, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Somebody with every right is refused."""
    take_everybody_for(monkeypatch, NOBODY)

    async def script(clients: Clients, broker: Refusing) -> None:
        show_good(clients, broker, EVERYTHING)
        await walk(broker)

        with pytest.raises(AssertionError):
            check_answers(broker, walk)

    run(tmp_path, script)


def test_a_certificate_that_nobody_looks_at_is_found_in_a_conversation(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    take_everybody_for(monkeypatch, NOBODY)

    async def script(clients: Clients, broker: Refusing) -> None:
        show_good(clients, broker, EVERYTHING)
        peers = [Tcp(*await broker.open(broker.frames.address)) for _ in range(2)]

        with pytest.raises(AssertionError):
            await converse(*peers)

    run(tmp_path, script)


# Tokens


def _by_any_token(self: SignIn, text: str) -> SignedIn:
    """That of the product, but for everything that may be wrong with a token."""
    parts = parse_token(text)
    assert parts is not None
    token = self._policy.tokens[parts[0]]
    return Principal(token.principal), Credential(CredentialKind.TOKEN, token.key, None)


def _grants_for_ever(self: Policy, name: str, *_: object) -> Grants:
    return Grants.at(name, [("", EVERY_RIGHT)], 0)


@pytest.mark.parametrize("walk", [walk_http, walk_gma, walk_soap, walk_soap_tcp])
@pytest.mark.parametrize("what", BAD_TOKENS)
def test_a_token_of_which_is_ignored_what_is_wrong_is_found(
    what: str, walk: Walk, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(SignIn, "by_token", _by_any_token)
    monkeypatch.setattr(Policy, "_worked_out", _grants_for_ever)

    async def main() -> None:
        async with refusing(tmp_path, settings_of=REQUIRED) as broker:
            sign_in(broker, EVERY_RIGHT, **BAD_TOKENS[what])
            broker.refusal, broker.is_cut_off = NOT_SIGNED_IN, True
            await finds(broker, walk)

    uvloop.run(main())


@pytest.mark.parametrize("walk", [walk_http, walk_gma, walk_soap, walk_sockets])
@pytest.mark.parametrize("how", ENDS)
def test_a_token_whose_end_is_ignored_is_found(
    how: str, walk: Walk, tmp_path: Path, monkeypatch: Patch
) -> None:
    forget_ends(monkeypatch, how)
    monkeypatch.setattr(Policy, "_worked_out", _grants_for_ever)

    async def main() -> None:
        async with refusing(tmp_path, settings_of=REQUIRED) as broker:
            sign_in_for_a_while(broker, how)
            await finds(broker, walk)

    uvloop.run(main())
