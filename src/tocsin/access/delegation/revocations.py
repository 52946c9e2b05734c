"""Lists of revoked grants: the owner of a topic takes back links of chains, and all that were made
of them. A list has a number; of two, brokers go by the one with the higher."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from tocsin.access.delegation import statements
from tocsin.access.delegation.chain import DelegatedRight, TopicOwner, check_current
from tocsin.access.delegation.keys import PrivateKey
from tocsin.errors import BadSignedStatement, GrantRefused
from tocsin.event.instant import LATEST_NS, NS_PER_S, rfc3339

REVOCATIONS_KIND: Final = "tocsin-revocations+jws"
REVOKED_MAX: Final = 1_000
LIST_CHARS_MAX: Final = 80 << 10  # 1,000 entries have 64,000
CLOCK_SKEW_NS: Final = 300 * NS_PER_S  # clocks of a site differ

_ID: Final = re.compile(r"[0-9a-f]{32}")
_LATEST_S: Final = LATEST_NS // NS_PER_S
_REMEDY: Final = "The owner of the topic has to publish a list that is right."


class _Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    top: str  # the UUID of the topic
    num: int
    iat: int  # seconds
    exp: int
    ids: Mapping[str, int]  # the ids of links, and when each would have ended


class RevocationList(msgspec.Struct, frozen=True):
    """What the owner of one topic says until there is a list with a higher number."""

    uuid: str
    number: int
    issued_ns: int
    expires_ns: int  # from then on the owner may have revoked more, and no grant is believed
    ids: frozenset[str]
    needed_until_ns: int  # when the last of the links that it names would have ended
    hash: str


def sign_revocations(
    uuid: str,
    number: int,
    revoked: Mapping[str, int],
    key: PrivateKey,
    now_ns: int,
    expires_ns: int,
) -> str:
    """The list, without the grants that have ended by now. `revoked` has the ids of links, and
    when each ends. Raises BadSignedStatement if it would be too long."""
    ids = {id: -(-ends // NS_PER_S) for id, ends in revoked.items() if ends > now_ns}
    statement = _Statement(uuid, number, now_ns // NS_PER_S, expires_ns // NS_PER_S, ids)
    _check(statement)
    return statements.sign(REVOCATIONS_KIND, statement, key)


def read_revocations(text: str, owner: TopicOwner, now_ns: int) -> RevocationList:
    """A list that the owner has signed. Raises BadSignedStatement."""
    found = statements.verified(REVOCATIONS_KIND, text, _Statement, owner.key, LIST_CHARS_MAX)
    if found.top != owner.uuid:
        raise _bad(f"it is about another topic, {found.top[:40]!r}")
    _check(found)
    if found.iat * NS_PER_S > now_ns + CLOCK_SKEW_NS:
        raise _bad(f"it is of the future, of {rfc3339(found.iat * NS_PER_S, 0)}")
    return RevocationList(
        found.top,
        found.num,
        found.iat * NS_PER_S,
        found.exp * NS_PER_S,
        frozenset(found.ids),
        max(found.ids.values(), default=0) * NS_PER_S,
        statements.digest(text),
    )


def newer(known: RevocationList | None, offered: RevocationList) -> RevocationList | None:
    """The list to go by from now on, or None if it is the one that is known."""
    assert known is None or known.uuid == offered.uuid
    if known is None or offered.number > known.number:
        return offered
    if offered.hash == known.hash:
        return None
    raise _bad(f"it has the number {offered.number}, and the list with {known.number} is known")


def check_fresh(known: RevocationList | None, now_ns: int) -> None:
    """Raise GrantRefused if the owner said until when to go by its list, and that is over."""
    if known is not None and now_ns >= known.expires_ns:
        raise GrantRefused(
            f"the list of revoked grants of the topic {known.uuid} is out of date since "
            f"{rfc3339(known.expires_ns, 0)}, so no grant of the topic is believed",
            remedy="The owner of the topic has to publish another list, or bring the broker the "
            "one that there is.",
        )


def check_right(right: DelegatedRight, known: RevocationList | None, now_ns: int) -> None:
    """Raise GrantRefused unless each link of the chain holds now, as far as the last list of the
    topic's owner says; `known` is None if there is none. The lists of others do not count: whoever
    knows the id of a link could revoke it."""
    assert known is None or known.uuid == right.owner.uuid, "a list of another topic"
    check_current(right, now_ns, frozenset() if known is None else known.ids)
    check_fresh(known, now_ns)


def _check(found: _Statement) -> None:
    if not 1 <= found.num <= _LATEST_S:
        raise _bad(f"its number is {found.num}")
    if not 0 <= found.iat < found.exp <= _LATEST_S:
        raise _bad("it ends before it begins, or after the year 2262")
    if len(found.ids) > REVOKED_MAX:
        raise _bad(f"it has {len(found.ids)} grants, and at most {REVOKED_MAX} are possible")
    if any(not _ID.fullmatch(id) or not 0 <= ends <= _LATEST_S for id, ends in found.ids.items()):
        raise _bad("an id in it, or when that ends, is malformed")


def _bad(why: str) -> BadSignedStatement:
    return BadSignedStatement(f"a list of revoked grants is refused: {why}", remedy=_REMEDY)
