"""Chains of grants: the owner of a topic gives somebody a right to it, who may pass on less.

A link of a chain is signed by the owner (the first) or by the holder of the link before it, and
names the key of its own holder. It can only narrow what it is made of. Everything is checked from
the chain and the key of the owner alone, so links are made offline, and by every broker anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from tocsin.access.decision import Action
from tocsin.access.delegation import statements
from tocsin.access.delegation.keys import PrivateKey, PublicKey, jwk, read_jwk
from tocsin.access.delegation.protected import is_topic_uuid
from tocsin.access.sign_in.jws import Signed
from tocsin.errors import BadSignedStatement, GrantRefused, TocsinError
from tocsin.event.instant import LATEST_NS, NS_PER_S, rfc3339
from tocsin.event.topic import TopicPattern, valid_topic
from tocsin.event.topic_levels import MANY

GRANT_KIND: Final = "tocsin-grant+jws"
LINKS_MAX: Final = 4  # checking costs a signature each
CHAIN_CHARS_MAX: Final = 8 << 10
OPERATIONS: Final = (Action.PUBLISH, Action.SUBSCRIBE)
ID_BYTES: Final = 16

_ID: Final = re.compile(r"[0-9a-f]{32}")
_LATEST_S: Final = LATEST_NS // NS_PER_S


class TopicOwner(msgspec.Struct, frozen=True):
    """What a chain starts from, as an advertisement says it."""

    uuid: str
    topic: str  # the whole of it, which ends with the UUID
    key: PublicKey

    def allows(self, eid: str, topic: str) -> bool:
        """Whether somebody may do everything with the topic, for being the owner."""
        return eid == self.key.eid and is_at_or_below(topic, self.topic)


class Holder(msgspec.Struct, frozen=True):
    """Whose a grant is (RFC 7800)."""

    jwk: Mapping[str, str]


class Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a link says, under the short names of JWTs. What is not understood is refused: it might
    be a restriction."""

    top: str  # the UUID of the topic
    ops: tuple[Action, ...]
    pfx: str  # levels below the topic, to which it is limited
    nbf: int  # seconds
    exp: int
    dep: int  # how many links may follow
    jti: str
    cnf: Holder
    prf: str  # digest of the link before; empty in the first, which `top` binds to its owner


class Terms(msgspec.Struct, frozen=True):
    """What somebody wants to grant."""

    operations: frozenset[Action]
    begins_ns: int
    expires_ns: int
    prefix: str = ""
    depth: int = 0  # how often it may be passed on


class Link(msgspec.Struct, frozen=True):
    """One link that was checked."""

    id: str
    begins_ns: int
    expires_ns: int
    holder: PublicKey


class DelegatedRight(msgspec.Struct, frozen=True):
    """What a chain gives the holder of its last link, at times when each of its links holds."""

    owner: TopicOwner
    operations: frozenset[Action]
    prefix: str
    depth: int
    links: tuple[Link, ...]
    hash: str  # of the last link

    @property
    def holder(self) -> PublicKey:
        return self.links[-1].holder

    @property
    def begins_ns(self) -> int:
        return self.links[-1].begins_ns

    @property
    def expires_ns(self) -> int:
        return self.links[-1].expires_ns

    @property
    def topic(self) -> str:
        """The topic that it is about, and all below it."""
        return f"{self.owner.topic}/{self.prefix}" if self.prefix else self.owner.topic

    @property
    def pattern(self) -> TopicPattern:
        return TopicPattern((*self.topic.split("/"), MANY))

    def allows(self, operation: Action, topic: str) -> bool:
        """Whether it is about this, at whatever time."""
        return operation in self.operations and is_at_or_below(topic, self.topic)


def is_at_or_below(topic: str, other: str) -> bool:
    return topic.startswith(other) and (len(topic) == len(other) or topic[len(other)] == "/")


def first_link(owner: TopicOwner, key: PrivateKey, to: PublicKey, terms: Terms, id: str) -> str:
    """A grant by the owner. Raises GrantRefused for terms that nobody would accept."""
    if key.public.eid != owner.key.eid:
        raise _refused(
            1,
            f"{key.public.eid} does not own the topic {owner.uuid}",
            f"Ask the owner, {owner.key.eid}, for a grant with a depth of 1 or more.",
        )
    claims = _claims(owner, to, terms, id, "")
    _check_link(claims, 1, None, owner, owner.key)
    return statements.sign(GRANT_KIND, claims, key)


def next_link(
    chain: Sequence[str],
    owner: TopicOwner,
    key: PrivateKey,
    to: PublicKey,
    terms: Terms,
    id: str,
) -> tuple[str, ...]:
    """The chain with a grant by its holder added. Raises GrantRefused for terms wider than those
    that the holder has, and if the chain itself does not hold."""
    held = read_chain(chain, owner)
    number = len(chain) + 1
    if key.public.eid != held.holder.eid:
        raise _refused(
            number,
            f"{key.public.eid} is not the holder of the grant",
            f"Its holder, {held.holder.eid}, can pass it on.",
        )
    claims = _claims(owner, to, terms, id, held.hash)
    parent = statements.content(GRANT_KIND, _parsed(chain[-1], number - 1), Claims)
    _check_link(claims, number, parent, owner, held.holder)
    longer = (*chain, statements.sign(GRANT_KIND, claims, key))
    _check_size(longer)
    return longer


def read_chain(chain: Sequence[str], owner: TopicOwner) -> DelegatedRight:
    """What the chain gives, if each of its links is signed by who may and only narrows the one
    before it. Whether it is valid now, `check_current` says. Raises GrantRefused."""
    _check_size(chain)
    links: list[Link] = []
    parent: Claims | None = None
    signer, parent_hash = owner.key, ""
    for number, text in enumerate(chain, start=1):
        signed = _parsed(text, number)
        try:
            statements.check(GRANT_KIND, signed, signer)
            claims = statements.content(GRANT_KIND, signed, Claims)
        except BadSignedStatement as error:
            raise _refused(number, error.problem, _who_signs(number, signer)) from None
        _check_link(claims, number, parent, owner, signer)
        if claims.prf != parent_hash:
            raise _refused(
                number, "it was made of another grant than the one before it",
                _who_signs(number, signer),
            )  # fmt: skip
        holder = _holder(claims, number, signer)
        if any(each.id == claims.jti for each in links):
            raise _refused(number, "it has the id of an earlier link", _who_signs(number, signer))
        links.append(Link(claims.jti, claims.nbf * NS_PER_S, claims.exp * NS_PER_S, holder))
        signer, parent, parent_hash = holder, claims, statements.digest(text)
    assert parent is not None, "a chain has links"
    return DelegatedRight(
        owner, frozenset(parent.ops), parent.pfx, parent.dep, tuple(links), parent_hash
    )


def check_current(right: DelegatedRight, now_ns: int, revoked: frozenset[str]) -> None:
    """Raise GrantRefused unless each link holds at this time and none of them is revoked."""
    signer = right.owner.key
    for number, link in enumerate(right.links, start=1):
        remedy = _who_signs(number, signer)
        if link.id in revoked:
            raise _refused(number, f"the owner has revoked it (id {link.id})", remedy)
        if now_ns < link.begins_ns:
            raise _refused(number, f"it is not valid before {rfc3339(link.begins_ns, 0)}", remedy)
        if now_ns >= link.expires_ns:
            raise _refused(number, f"it expired at {rfc3339(link.expires_ns, 0)}", remedy)
        signer = link.holder


def check_allows(right: DelegatedRight, operation: Action, topic: str) -> None:
    """Raise GrantRefused unless the chain is about this."""
    number = len(right.links)
    remedy = _who_signs(number, right.owner.key if number == 1 else right.links[-2].holder)
    if operation not in right.operations:
        raise _refused(number, f"it does not allow to {operation}", remedy)
    if not is_at_or_below(topic, right.topic):
        raise _refused(number, f"it is about {right.topic} and what is below it", remedy)


def _claims(owner: TopicOwner, to: PublicKey, terms: Terms, id: str, prf: str) -> Claims:
    return Claims(
        top=owner.uuid,
        ops=tuple(sorted(terms.operations)),
        pfx=terms.prefix,
        nbf=terms.begins_ns // NS_PER_S,
        exp=terms.expires_ns // NS_PER_S,
        dep=terms.depth,
        jti=id,
        cnf=Holder(jwk(to)),
        prf=prf,
    )


def _check_link(
    claims: Claims, number: int, parent: Claims | None, owner: TopicOwner, signer: PublicKey
) -> None:
    """What a link may say, alone and beside the one before it."""
    problem = _malformed(claims, owner)
    if problem is None and parent is not None:
        problem = _wider(claims, parent)
    if problem is not None:
        raise _refused(number, problem, _who_signs(number, signer))


def _malformed(claims: Claims, owner: TopicOwner) -> str | None:
    assert is_topic_uuid(owner.uuid)
    if claims.top != owner.uuid:
        return f"it is about another topic, {claims.top[:40]!r}"
    if not claims.ops or len(set(claims.ops)) < len(claims.ops):
        return "it allows nothing, or the same twice"
    if not set(claims.ops) <= set(OPERATIONS):
        return "it allows more than to publish and to subscribe"
    if claims.pfx:
        try:
            valid_topic(f"{owner.topic}/{claims.pfx}")
        except TocsinError as error:
            return f"its prefix does not make a topic: {error.problem}"
    if not 0 <= claims.nbf < claims.exp <= _LATEST_S:
        return "it ends before it begins, or after the year 2262"
    if not 0 <= claims.dep < LINKS_MAX:
        return f"its depth is {claims.dep}, and 0 to {LINKS_MAX - 1} are possible"
    if not _ID.fullmatch(claims.jti):
        return "its id is malformed"
    return None


def _wider(claims: Claims, parent: Claims) -> str | None:
    """How a link is more than the one that it is made of, if it is."""
    if parent.dep == 0:
        return "the grant before it may not be passed on"
    if claims.dep >= parent.dep:
        return f"its depth is {claims.dep}, and less than {parent.dep} is possible"
    if more := set(claims.ops) - set(parent.ops):
        return f"it allows to {min(more)}, which the grant before it does not"
    if parent.pfx and not is_at_or_below(claims.pfx, parent.pfx):
        return f"its prefix {claims.pfx!r} is not below {parent.pfx!r}"
    if claims.nbf < parent.nbf or claims.exp > parent.exp:
        return "it is valid at times when the grant before it is not"
    return None


def _holder(claims: Claims, number: int, signer: PublicKey) -> PublicKey:
    try:
        return read_jwk(claims.cnf.jwk)
    except TocsinError as error:
        raise _refused(number, error.problem, _who_signs(number, signer)) from None


def _parsed(text: str, number: int) -> Signed:
    try:
        return statements.parse(GRANT_KIND, text, CHAIN_CHARS_MAX)
    except BadSignedStatement as error:
        raise _refused(number, error.problem, error.remedy) from None


def _check_size(chain: Sequence[str]) -> None:
    size = sum(map(len, chain))
    if not 1 <= len(chain) <= LINKS_MAX or size > CHAIN_CHARS_MAX:
        raise GrantRefused(
            f"a chain of {len(chain)} grants with {size} characters is not accepted",
            remedy=f"It may have 1 to {LINKS_MAX} grants and {CHAIN_CHARS_MAX} characters. Ask "
            "somebody who is nearer to the owner of the topic for a grant.",
        )


def _who_signs(number: int, signer: PublicKey) -> str:
    who = "the owner of the topic" if number == 1 else f"the holder of link {number - 1}"
    return f"Ask {who}, {signer.eid}, for another grant."


def _refused(number: int, why: str, remedy: str) -> GrantRefused:
    return GrantRefused(f"link {number} of the chain of grants does not hold: {why}", remedy=remedy)
