"""Whoever has rights at a simulated broker, and what was granted: rules and tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tocsin.access.session import Session
from tocsin.event.subscription import Owner
from tocsin.sim.rights import Right, Shape

ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True)
class Holder:
    """Whoever has rights: an owner, or a session, whose credential has an end."""

    name: str
    groups: frozenset[str] = frozenset()
    credential: str = ""
    expires_ns: int | None = None


NOBODY: Final = Holder(ANONYMOUS)


def holder_of_session(session: Session) -> Holder | None:
    """None for the broker itself, which may do everything."""
    principal, credential = session.principal, session.credential
    if principal.is_internal:
        return None
    if credential is None:
        return NOBODY
    return Holder(principal.name, principal.groups, credential.key, credential.expires_ns)


def holder_of_owner(owner: Owner | None) -> Holder | None:
    if owner is None:
        return NOBODY
    if owner.is_internal:
        return None
    return Holder(owner.name, frozenset(owner.groups), owner.credential)


@dataclass(slots=True, kw_only=True)
class Grant:
    """A rule or a token; what ends it is asked for, and later sure."""

    id: str
    may_be_over: bool = False
    over_ns: int | None = None  # the time of the world since when it surely is


@dataclass(slots=True, kw_only=True)
class RuleRecord(Grant):
    right: Right
    principal: str = ""
    group: str = ""
    is_of_settings: bool = False


@dataclass(slots=True, kw_only=True)
class TokenRecord(Grant):
    principal: str
    groups: frozenset[str] = frozenset()
    rights: tuple[Right, ...] | None = None
    expires_ns: int | None = None
    is_bounded: bool = False
    made_with: str = ""  # the key of the token by which its principal made it


@dataclass(slots=True)
class Holding:
    """What somebody has at one moment."""

    is_valid: bool = True
    rights: list[Right] = field(default_factory=list)
    bound: list[Right] | None = None

    def allows(self, action: str, shape: Shape) -> bool:
        every = [self.rights] if self.bound is None else [self.rights, self.bound]
        return all(
            any(
                action in right.actions and right.scope is not None and right.scope.holds(shape)
                for right in rights
            )
            for rights in every
        )

    def has_any(self, action: str) -> bool:
        every = [self.rights] if self.bound is None else [self.rights, self.bound]
        return all(any(action in right.actions for right in rights) for rights in every)


@dataclass(slots=True, eq=False)
class Watched:
    """A reader of the log. What its holder was not allowed all the time, it need not get."""

    holder: Holder | None = None
    start: int = 0
    exempt: set[int] = field(default_factory=set)
    looked_to: int = 0
