"""Mistakes put into what decides who may do what, to see that simulated runs notice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from sim.mutations import Mutate
from tocsin.access.policy import grants
from tocsin.access.policy.grants import NONE, OWNER, Grants, Reason
from tocsin.access.policy.policy import HolderPermit, Policy
from tocsin.access.policy.tokens import Token
from tocsin.access.session import Session
from tocsin.broker.clock import Clock
from tocsin.broker.fanout import Fanout
from tocsin.broker.followers.catchup import Catchup
from tocsin.broker.push.deadletters import DeadLetters
from tocsin.broker.state.permits import PermitCheck
from tocsin.broker.state.subscriber import Subscriber
from tocsin.event.event import Event
from tocsin.event.instant import LATEST_NS
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind, Owner
from tocsin.services.access.service import AccessService
from tocsin.services.reliable_messaging.sequences import Held

assert grants.OWN  # the mistakes below are in its module, too


def send_what_waited_without_another_look(patch: pytest.MonkeyPatch) -> None:
    """Send what was allowed when it matched, whatever is by then."""
    patch.setattr(PermitCheck, "withhold", lambda *_: 0)


def keep_the_version_of_a_permit(patch: pytest.MonkeyPatch) -> None:
    """Say that a permit is as it was."""
    patch.setattr(HolderPermit, "version", 1)


def withhold_nothing_from_boxes(patch: pytest.MonkeyPatch) -> None:
    """Hand out what waits in a box, whether or not its owner may still have it."""
    withhold = Subscriber.withhold

    def careless(self: Subscriber) -> int:
        return 0 if self.subscription.kind is Kind.BOX else withhold(self)

    patch.setattr(Subscriber, "withhold", careless)


def _without_a_permit(patch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    """In this method every event is allowed."""
    method, allows, inside = getattr(owner, name), PermitCheck.allows, [False]

    def wrapped(self: Any, *args: Any) -> Any:
        inside[0] = True
        try:
            return method(self, *args)
        finally:
            inside[0] = False

    def allowed(self: PermitCheck, stored: Stored) -> bool:
        return inside[0] or allows(self, stored)

    patch.setattr(owner, name, wrapped)
    patch.setattr(PermitCheck, "allows", allowed)


def catch_up_without_a_permit(patch: pytest.MonkeyPatch) -> None:
    """Give those who are behind whatever matches."""
    _without_a_permit(patch, Catchup, "_hand_out")


def hand_on_without_a_permit(patch: pytest.MonkeyPatch) -> None:
    """Give those who are up to date whatever matches."""
    _without_a_permit(patch, Fanout, "hand_on")


def leave_streams_open(patch: pytest.MonkeyPatch) -> None:
    """End no stream for want of a right."""
    patch.setattr(PermitCheck, "is_over", lambda self: False)


def wait_for_no_credential_to_end(patch: pytest.MonkeyPatch) -> None:
    """Look again when a rule or a token ends, and not when another credential of a session does."""
    patch.setattr(Policy, "_session_ends_at", lambda self, end_ns: None)


def hear_nothing_of_a_clock_that_was_set(patch: pytest.MonkeyPatch) -> None:
    """Look for what is over when it was to be over, and not when the time of day is another."""
    change = Clock._change

    def quiet(self: Clock, *args: Any, **options: Any) -> None:
        self.on_change.clear()
        change(self, *args, **options)

    patch.setattr(Clock, "_change", quiet)


def revoke_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    """Answer that a token is revoked, and do not write it down."""
    keep = AccessService._keep_token

    async def lazy(self: AccessService, token: Token) -> None:
        if token.revoked_ns is not None:
            self.policy.set_token(token)
        else:
            await keep(self, token)

    patch.setattr(AccessService, "_keep_token", lazy)
    patch.setattr(AccessService, "_is_kept", lambda *_: True)


def take_what_is_revoked_for_kept(patch: pytest.MonkeyPatch) -> None:
    """Answer at once whoever revokes a token that is revoked in memory."""
    patch.setattr(AccessService, "_is_kept", lambda *_: True)


def remove_rules_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    """Answer that a rule is removed, and leave it on disk."""

    async def lazy(self: AccessService, session: Session, rule_id: str) -> None:
        self.policy.set_rules([], removed=[rule_id])

    patch.setattr(AccessService, "remove_rule", lazy)


def let_tokens_go_on(patch: pytest.MonkeyPatch) -> None:
    """Look at no end of a credential once somebody has signed in."""
    valid, init = Policy._valid, HolderPermit.__init__

    def timeless(self: Policy, session: Session) -> Grants:
        shown = session.credential
        if shown is not None:
            shown = msgspec.structs.replace(shown, expires_ns=None)
        return valid(self, msgspec.structs.replace(session, credential=shown))

    def endless(self: HolderPermit, policy: Policy, owner: Owner, action: Any, _: Any) -> None:
        init(self, policy, owner, action, None)

    patch.setattr(Policy, "_valid", timeless)
    patch.setattr(HolderPermit, "__init__", endless)


def let_tokens_go_on_for_a_moment(patch: pytest.MonkeyPatch) -> None:
    """Take a credential for valid at the very moment when it ends."""
    valid = Policy._valid

    def late(self: Policy, session: Session) -> Grants:
        shown = session.credential
        if shown is not None and shown.expires_ns is not None:
            shown = msgspec.structs.replace(shown, expires_ns=shown.expires_ns + 1)
        return valid(self, msgspec.structs.replace(session, credential=shown))

    patch.setattr(Policy, "_valid", late)


def let_rights_go_on(patch: pytest.MonkeyPatch) -> None:
    """Keep what somebody may do until a rule or a token changes."""
    at = Grants.at.__func__  # type: ignore[attr-defined]

    def timeless(cls: type[Grants], *args: Any, **options: Any) -> Grants:
        found: Grants = at(cls, *args, **options)
        found.until_ns, found.is_timed = LATEST_NS, False
        return found

    patch.setattr(Grants, "at", classmethod(timeless))


def believe_the_name_of_an_owner(patch: pytest.MonkeyPatch) -> None:
    """Let whoever made a subscription go on with it, with or without the right to subscribe."""

    def named(self: Grants, kind: str, owner: Owner) -> Reason:
        return OWNER if owner.name == self.name and owner.credential else NONE

    patch.setattr(Grants, "_of_own", named)


def believe_everybody_an_owner(patch: pytest.MonkeyPatch) -> None:
    """Let everybody who may subscribe go on with the subscriptions of others."""

    def anybody(self: Grants, kind: str, owner: Owner) -> Reason:
        return OWNER if self._first(grants.OWN[kind]).allowed else NONE

    patch.setattr(Grants, "_of_own", anybody)


def decide_a_batch_by_its_first_event(patch: pytest.MonkeyPatch) -> None:
    """Look at one event of those that are published together."""
    decide = Policy.decide_events

    def first(self: Policy, session: Session, events: Iterable[Event]) -> None:
        decide(self, session, list(events)[:1])

    patch.setattr(Policy, "decide_events", first)


def bound_no_token(patch: pytest.MonkeyPatch) -> None:
    """Let a token that somebody made for himself give more than he has."""
    init = Grants.__init__

    def unbound(self: Grants, *args: Any, **options: Any) -> None:
        init(self, *args, **{**options, "bound": None})

    patch.setattr(Grants, "__init__", unbound)


def send_letters_to_whoever_lost_the_right(patch: pytest.MonkeyPatch) -> None:
    """Send a dead letter again without a look at its owner's right."""
    patch.setattr(DeadLetters, "check_permitted", lambda *_: None)


def forget_who_sent_a_held_message(patch: pytest.MonkeyPatch) -> None:
    """Publish a reliable message whose turn has come as if nobody had signed in."""
    made = Held.call

    def forgetful(self: Held) -> Any:
        call = made(self)
        session = msgspec.structs.replace(call.session, credential=None)
        return type(call)(**{**_members(call), "session": session})

    patch.setattr(Held, "call", forgetful)


def _members(of: Any) -> dict[str, Any]:
    names = getattr(of, "__struct_fields__", None) or of.__dataclass_fields__
    return {name: getattr(of, name) for name in names}


ACCESS_MUTATIONS: dict[Mutate, str] = {
    send_what_waited_without_another_look: "to which .* has no right",
    keep_the_version_of_a_permit: "to which .* has no right",
    withhold_nothing_from_boxes: "box .*, to which .* has no right",
    catch_up_without_a_permit: "to which .* has no right",
    hand_on_without_a_permit: "to which .* has no right",
    leave_streams_open: "has no right to any event",
    wait_for_no_credential_to_end: "has no right to any event",
    hear_nothing_of_a_clock_that_was_set: "has no right to any event",
    revoke_in_memory_only: "was acknowledged to be over, and is good again",
    take_what_is_revoked_for_kept: "was acknowledged to be over, and is good again",
    remove_rules_in_memory_only: "was acknowledged to be over, and is good again|has the rules",
    let_tokens_go_on: "without a right|no right",
    let_tokens_go_on_for_a_moment: "without a right",
    let_rights_go_on: "without a right|no right",
    believe_the_name_of_an_owner: "without a right",
    believe_everybody_an_owner: "without a right",
    decide_a_batch_by_its_first_event: "without a right",
    bound_no_token: "without a right|no right",
    send_letters_to_whoever_lost_the_right: "to which .* has no right",
    forget_who_sent_a_held_message: "was acknowledged and is not in the log",
}
"""Each mistake, and what a run may say of it first."""
