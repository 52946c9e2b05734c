"""A site with an authority, a broker of it in this process, and clients that show what they have:
certificates good and bad, and tokens."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from frames_walk import ONLY_STORES, walk_gma, walk_tcp
from http_walk import walk_http
from refusing import NO_CONNECTION, NOT_ALLOWED, NOT_SIGNED_IN, Refusing, Walk, refusing
from soap_walk import walk_soap, walk_soap_tcp
from sockets_walk import walk_sockets

from pki import BROKER, DAY, NOW, Made, authority, made, name
from tls_site import Site
from tocsin.access.policy.rights import EVERY_RIGHT, Right, read_right, read_rule
from tocsin.access.policy.tokens import Token, hash_of, token_text
from tocsin.access.sign_in.certificates import credential_key, key_id
from tocsin.wire.wss.write import username_token

# Walks show one credential that is not valid more often than anybody may.
REQUIRED: dict[str, object] = {"auth.mode": "required", "auth.failed_sign_ins_max": 10_000}
SECRET_OF_TOKEN = "s" * 43

EVERYTHING, ELSEWHERE, NOTHING, ANONYMOUS = "olga", "elsa", "nina", "anonymous"
RULES = (
    {"principal": EVERYTHING, "action": "*"},
    {"principal": ELSEWHERE, "action": "*", "topic": "elsewhere/**"},
    {"principal": ELSEWHERE, "action": "manage", "resource": "link/*"},
)
GOOD: dict[str, Any] = {"common": EVERYTHING}
# Those that are bad are of somebody who may do everything.
BAD: dict[str, dict[str, Any]] = {
    "of a foreign authority": {"by": authority("elsewhere")},
    "of another authority with the same name": {"by": authority("site")},
    "made by its holder": {"by": None},
    "expired": {"begins": NOW - 9 * DAY, "ends": NOW - DAY},
    "not valid yet": {"begins": NOW + 5_000 * DAY, "ends": NOW + 6_000 * DAY},
    "revoked": {},
}


class Clients:
    """The site, and what its clients show. At the broker's other end of links is one of them."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(folder)
        self._numbers = 0
        self._other = authority("other")  # brokers of it are believed, and are nobody of the site
        self._both = folder / "both.pem"
        self._both.write_bytes(self.site.authority.pem + self._other.pem)

    def settings(self) -> dict[str, object]:
        site = self.site
        return {
            **REQUIRED,
            "http.tls_certificate": site.host[0],
            "http.tls_key": site.host[1],
            "certificates.client_ca": str(site.ca),
            "certificates.crl_file": str(site.crl),
            "certificates.reload_s": 3_600.0,
            "overlay.tls": True,
            "overlay.ca_file": str(self._both),
        }

    def issue(self, **how: Any) -> tuple[str, str]:
        """The files of a new certificate, for both sides of a connection."""
        self._numbers += 1
        how = {**GOOD, "usages": BROKER, "hosts": ("localhost",), **how}
        if "by" in how and how["by"] is None:
            return self._made_by_its_holder(how)
        return self.site.issue(f"client{self._numbers}", **how)

    def _made_by_its_holder(self, how: dict[str, Any]) -> tuple[str, str]:
        self.site.last = made(name(how["common"]), usages=how["usages"], names=how["hosts"])
        return self.site.last.write(self.site.folder, f"client{self._numbers}")

    def show(self, broker: Refusing, files: tuple[str, str] | None) -> None:
        """From now on clients show this certificate, and so does whom the broker connects to."""
        broker.tls = self.site.context(files)
        broker.far_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        broker.far_tls.load_cert_chain(*(files or self.issue(by=self._other)))

    def revoke(self, broker: Refusing, *certificates: Made) -> None:
        """The list has these, and no others, and the broker has read it."""
        self.site.crl.unlink()  # so that it is another file, however quick we are
        self.site.revoke(*certificates)
        broker.look()


@contextlib.asynccontextmanager
async def site_broker(
    clients: Clients, directory: Path, **settings: object
) -> AsyncIterator[Refusing]:
    """A broker with TLS whose rules are those above."""
    async with refusing(directory, settings_of={**clients.settings(), **settings}) as broker:
        broker.policy.set_rules(read_rule(rule, str(n), 0) for n, rule in enumerate(RULES))
        yield broker


def show_bad(clients: Clients, broker: Refusing, what: str) -> None:
    """One of BAD, and what it is answered."""
    files = clients.issue(**BAD[what])
    if what == "revoked":
        clients.revoke(broker, clients.site.last)
    clients.show(broker, files)
    broker.is_cut_off, broker.refusal = True, NO_CONNECTION


def show_good(clients: Clients, broker: Refusing, principal: str) -> None:
    """A certificate of somebody by his rights; of ANONYMOUS, none."""
    is_shown = principal != ANONYMOUS
    clients.show(broker, clients.issue(common=principal) if is_shown else None)
    broker.refusal = NOT_ALLOWED if is_shown else NOT_SIGNED_IN

    @contextlib.contextmanager
    def allowed() -> Iterator[None]:
        rule = {"principal": principal, "action": "*"}
        broker.policy.set_rules([read_rule(rule, "meanwhile", 0)])
        try:
            yield
        finally:
            broker.policy.set_rules([], ["meanwhile"])

    broker.meanwhile = allowed


def show_ending(clients: Clients, broker: Refusing, how: str) -> None:
    """A certificate that is good while connections are made, and over when they are used."""
    clients.show(broker, clients.issue())
    shown, ends = clients.site.last, ENDS[how]
    key = credential_key(
        key_id(clients.site.authority.certificate), shown.certificate.serial_number
    )
    broker.is_allowed_first, broker.refusal = True, NOT_SIGNED_IN

    @contextlib.contextmanager
    def good() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            ends(broker, shown, key, stack)
            yield

    broker.meanwhile = good


def _is_revoked(broker: Refusing, shown: Made, key: str, stack: contextlib.ExitStack) -> None:
    """As if the list had been read: that takes long, for each connection."""
    broker.policy.set_revoked([])
    stack.callback(broker.policy.set_revoked, [key])


def _has_expired(broker: Refusing, shown: Made, key: str, stack: contextlib.ExitStack) -> None:
    """By the clock of the policy: that of TLS cannot be set."""
    broker.policy.now_ns = broker.app.node.now_ns
    stack.callback(_set_clock, broker, int(shown.certificate.not_valid_after_utc.timestamp()))


def _set_clock(broker: Refusing, now_s: int) -> None:
    broker.policy.now_ns = lambda: now_s * 10**9


End = Callable[[Refusing, Made, str, contextlib.ExitStack], None]
ENDS: dict[str, End] = {"revoked": _is_revoked, "expired": _has_expired}


# Tokens


def sign_in(broker: Refusing, *rights: Right, **also: object) -> Token:
    """All requests carry this token from now on."""
    token = Token("a" * 24, "ann", hash_of(SECRET_OF_TOKEN), 0, rights=rights or None)
    token = msgspec.structs.replace(token, **also)
    broker.policy.set_token(token)
    text = token_text(token.id, SECRET_OF_TOKEN)
    broker.headers["authorization"] = f"Bearer {text}"
    broker.security = username_token(token.principal, text)

    @contextlib.contextmanager
    def allowed() -> Iterator[None]:
        broker.policy.set_token(msgspec.structs.replace(token, rights=(EVERY_RIGHT,)))
        try:
            yield
        finally:
            broker.policy.set_token(token)

    broker.meanwhile = allowed
    return token


def sign_in_for_a_while(broker: Refusing, how: str) -> None:
    """With a token that is good while connections are made, and over when they are used."""
    ends_s = int(NOW.timestamp()) + 86_400 * 3_000
    token = sign_in(broker, EVERY_RIGHT, expires_ns=ends_s * 10**9)
    broker.is_allowed_first, broker.refusal = True, NOT_SIGNED_IN

    @contextlib.contextmanager
    def while_good() -> Iterator[None]:
        broker.policy.set_token(token)
        broker.policy.now_ns = broker.app.node.now_ns
        try:
            yield
        finally:
            if how == "revoked":
                broker.policy.set_token(msgspec.structs.replace(token, revoked_ns=1))
            else:
                _set_clock(broker, ends_s)

    broker.meanwhile = while_good


# Of a token of somebody who may do everything.
BAD_TOKENS: dict[str, dict[str, object]] = {
    "revoked": {"revoked_ns": 1},
    "expired": {"expires_ns": 1},
    "of another secret": {"hash": b"other"},
    "made with one that is revoked": {"made_with": "token/" + "b" * 24},
}
ELSEWHERE_RIGHT = read_right({"action": "*", "topic": "elsewhere/**"}, 0)


# What follows from it


# What everybody who is signed in may learn: of himself.
# What somebody who has signed in with a key may present and has presented: nothing here, of a body
# that is no grant; and who has not is refused by another code.
FOR_KEYS = ("/topics/grants", "/topics/revocations")
OF_KEY = ("403 T223", "403", "200", "400 T201", "404 T218")
OWN = ("/access/tokens", "/access/rules", "/access/check", "/access/quotas")


def _is_own(broker: Refusing, answered: str) -> bool:
    """Answered, as it should be, to somebody who is signed in."""
    method, _, rest = answered.partition(" ")
    path, _, answer = rest.partition(":")
    is_own = method in ("GET", "HEAD") and path.partition("?")[0] in OWN and answer.strip() == "200"
    has_none = answered == "DELETE /access/tokens/x: 404 T218"
    is_of_key = path.startswith(FOR_KEYS) and answer.strip() in OF_KEY
    return (is_own or has_none or is_of_key) and broker.refusal == NOT_ALLOWED


async def nothing_happened(broker: Refusing, walk: Walk) -> None:
    """Each operation was tried, and refused as it should be."""
    before = broker.stored()

    assert [each for each in await walk(broker) if not _is_own(broker, each)] == []
    assert broker.stored() == before
    assert broker.reads == []
    assert broker.shown == []


# Of what is answered to who may do everything, all is a success by HTTP or SOAP, or has nothing to
# do with rights. Of performance events these are no successes, for there is nothing of the kind.
NOTHING_LIKE_THAT = ("there is no subscription", "has arrived recently", *ONLY_STORES)


def check_answers(broker: Refusing, walk: Walk) -> None:
    """None of the answers is about rights, and what only some may see was seen."""
    assert len(broker.answers) > FEWEST[walk]
    assert [each for each in broker.answers if each[2] in ("T215", "T216")] == []
    if walk in (walk_tcp, walk_gma):
        failed = [what for what, status, _ in broker.answers if status not in (200, 204)]
        assert [what for what in failed if not any(e in what for e in NOTHING_LIKE_THAT)] == []
    assert bool(broker.shown) == (walk is walk_http)


FEWEST: dict[Walk, int] = {
    walk_http: 400,
    walk_soap: 1_000,
    walk_soap_tcp: 500,
    walk_gma: 19,
    walk_tcp: 13,
    walk_sockets: 4,
}
