"""What is asked of the service of access, read from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tocsin.access.decision import Action
from tocsin.access.policy.rights import RIGHTS_MAX, Right, check_name, read_expires, read_right
from tocsin.access.session import is_reserved
from tocsin.errors import BadRight

_TOKEN = ("principal", "rights", "expires", "groups")


class TokenRequest(msgspec.Struct, frozen=True):
    """A token that somebody wants."""

    principal: str
    rights: tuple[Right, ...] | None = None
    expires_ns: int | None = None
    groups: frozenset[str] = frozenset()


class CheckRequest(msgspec.Struct, frozen=True):
    """Whether somebody may do something; `principal` is None for the caller."""

    action: Action
    topic: str = ""
    resource: str = ""
    principal: str | None = None
    groups: tuple[str, ...] = ()
    token: str = ""  # the id of one of the principal's tokens


def read_token_request(written: Mapping[str, Any], now_ns: int) -> TokenRequest:
    """{"principal": "alice", "rights": [...], "expires": "PT1H"}. Raises BadRight."""
    for key in written:
        if key not in _TOKEN:
            raise BadRight(
                f"a token has no {str(key)[:64]!r}", remedy=f"It may have {', '.join(_TOKEN)}."
            )
    name, rights, groups = (written.get(key) for key in ("principal", "rights", "groups"))
    if not isinstance(name, str) or not name:
        raise BadRight("a token is of a principal", remedy='Say whose, as in "principal": "alice".')
    if is_reserved(check_name(name, "principal")):
        raise BadRight(f"nobody can sign in as {name}", remedy="Choose another name.")
    if groups is not None and not (
        isinstance(groups, list) and all(isinstance(each, str) for each in groups)
    ):
        raise BadRight("groups must be a list of names", remedy='Write "groups": ["operators"].')
    return TokenRequest(
        principal=name,
        rights=None if rights is None else _rights(rights, now_ns),
        expires_ns=read_expires(written.get("expires"), now_ns),
        groups=frozenset(check_name(each, "group") for each in groups or ()),
    )


def _rights(written: object, now_ns: int) -> tuple[Right, ...]:
    if not isinstance(written, list) or not all(isinstance(each, dict) for each in written):
        raise BadRight(
            "rights must be a list of rights",
            remedy='Write "rights": [{"action": "publish", "topic": "lead/**"}].',
        )
    if len(written) > RIGHTS_MAX:
        raise BadRight(
            f"a token with {len(written)} rights", remedy=f"Give at most {RIGHTS_MAX}, or a rule."
        )
    return tuple(read_right(each, now_ns) for each in written)
