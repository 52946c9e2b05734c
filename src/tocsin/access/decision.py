"""The decision: may this session do that? One function, asked by the port for every operation."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from tocsin.access.session import BROKER, Session
from tocsin.errors import NotAllowed


class Action(StrEnum):
    """What rights are granted for."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    READ = "read"
    MANAGE = "manage"


Decide = Callable[[Session, Action, str], None]
"""Raises NotAllowed if the session may not do this to the resource. A resource is a topic for
`publish` (or `endpoint/soap`, for a sequence of reliable messages on any topic), and else of one of
the kinds of `resources.py`, as in `subscription/4f2a`."""


def allow_all(session: Session, action: Action, resource: str) -> None:
    """Everybody may do everything."""


def deny_all(session: Session, action: Action, resource: str) -> None:
    """Nobody but the broker itself may do anything. Tests find endpoints that do not ask by it."""
    if session.principal != BROKER:
        raise not_allowed(session, action, resource)


def not_allowed(session: Session, action: Action, resource: str) -> NotAllowed:
    return NotAllowed(
        f"{session.principal.name} may not {action} {resource[:200]!r}",
        remedy="Use a credential that was granted this right, or ask the operator for it.",
    )
