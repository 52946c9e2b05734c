"""AccessModel: what everybody may do at one broker at each moment, by what was promised to them.

It knows rules, tokens and groups by what was asked and answered, and works out by itself what
follows. Between the two a change may hold or not: so there is what may be allowed, by which sending
is judged, and what surely is, by which a refusal and the want of an event are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from tocsin.access.session import Session
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.subscription import Owner
from tocsin.sim.checks.grants import (
    ANONYMOUS,
    Grant,
    Holder,
    Holding,
    RuleRecord,
    TokenRecord,
    Watched,
    holder_of_session,
)
from tocsin.sim.checks.log import LogCheck
from tocsin.sim.rights import MANAGE, PUBLISH, READ, SUBSCRIBE, Right, Shape, overlap, shape_of
from tocsin.sim.world import Action, Violation, World

OWN: Final = {  # whoever made one goes on with it by a right to any events, for this
    "box": SUBSCRIBE,
    "deadletter": SUBSCRIBE,
    "discovery": SUBSCRIBE,
    "link": SUBSCRIBE,
    "resource": PUBLISH,
    "subscription": SUBSCRIBE,
}
PRIVATE: Final = ("box", "discovery", "subscription")  # of its maker, and of who may manage it
OPENED_BY_EVENTS: Final = ("events", "types", "run")  # by a right to any of them
ANY_LINK: Final = "link/any"
UNSEEN: Final = "certificate/unseen"  # of a neighbour that has not been there
NOT_JUDGED: Final = ("endpoint", "topic")  # topics without an event


class AccessModel:
    """Of one broker, over all its processes."""

    def __init__(
        self,
        world: World,
        log: LogCheck,
        members: dict[str, frozenset[str]],
        neighbour_names: tuple[str, ...] = (),
    ) -> None:
        """`members`: of the groups of the settings. `neighbour_names`: the principals of brokers
        that may be linked."""
        self.rules: dict[str, RuleRecord] = {}
        self.tokens: dict[str, TokenRecord] = {}
        self.revoked: dict[str, int] = {}  # keys of other credentials, and since when
        self.now_ns: Callable[[], int] = lambda: 0  # the broker's time of day; 0 without a broker
        self._world = world
        self._log = log
        self._members = members
        self.watched: list[Watched] = []
        self._neighbour_names = neighbour_names
        self.neighbours: dict[str, Holder] = {}  # as they signed in last
        self.changes = 0  # of anybody's rights
        self.on_look: Action = lambda: None  # rights are others, or about to be
        self._latest_ns = 0  # the broker's time of day, when it was last looked at
        self._window: tuple[int, int] | None = None
        self._shapes: dict[int, Shape] = {}

    # Time

    def tick(self) -> None:
        """The broker works: what has ended since it did before is surely no one's now."""
        now_ns, before_ns = self.now_ns(), self._latest_ns
        if not now_ns:
            return
        if now_ns < before_ns:  # what came meanwhile was judged by the time before
            self.look()
        self._latest_ns = now_ns
        if now_ns > before_ns and any(before_ns < end <= now_ns for end in self._ends()):
            self.look()

    def _ends(self) -> Iterable[int]:
        for rule in self.rules.values():
            if rule.right.expires_ns is not None:
                yield rule.right.expires_ns
        for token in self.tokens.values():
            if token.expires_ns is not None:
                yield token.expires_ns
            for right in token.rights or ():
                if right.expires_ns is not None:
                    yield right.expires_ns
        for watched in self.watched:
            if watched.holder is not None and watched.holder.expires_ns is not None:
                yield watched.holder.expires_ns
        for holder in self.neighbours.values():
            if holder.expires_ns is not None:
                yield holder.expires_ns

    def begin_window(self) -> None:
        """The broker was asked something: what it decides now leaves a moment later."""
        self.tick()
        if self._window is None:
            self._window = self._world.now_ns, self.now_ns()

    def end_window(self) -> None:
        self._window = None

    # What somebody has

    def maybe(self, holder: Holder, *, exactly: bool = False) -> Holding:
        """What somebody may have, if it is not ruled out; `exactly` now, and else when the broker
        decided about what leaves now."""
        since_ns, now_ns = self._world.now_ns, self.now_ns()
        if self._window is not None and not exactly:
            since_ns, then_ns = self._window
            now_ns = min(now_ns, then_ns)
        return self._holding(
            holder, now_ns, lambda grant: grant.over_ns is None or grant.over_ns >= since_ns
        )

    def surely(self, holder: Holder) -> Holding:
        """What somebody has without doubt."""
        latest_ns = max(self.now_ns(), self._latest_ns)
        return self._holding(holder, latest_ns, lambda grant: not grant.may_be_over)

    def _holding(self, holder: Holder, now_ns: int, counts: Callable[[Grant], bool]) -> Holding:
        def is_alive(expires_ns: int | None) -> bool:
            return expires_ns is None or now_ns < expires_ns

        def by_rules(name: str, named: frozenset[str]) -> list[Right]:
            groups = named | {each for each, of in self._members.items() if name in of}
            return [
                rule.right
                for rule in self.rules.values()
                if (rule.group in groups if rule.group else rule.principal == name)
                and counts(rule)
                and is_alive(rule.right.expires_ns)
            ]

        if not holder.credential:
            return Holding(rights=by_rules(ANONYMOUS, frozenset()))
        if not is_alive(holder.expires_ns):
            return Holding(is_valid=False)
        kind, _, id = holder.credential.partition("/")
        if kind != "token":
            if not self._is_unrevoked(holder.credential, counts):
                return Holding(is_valid=False)
            return Holding(rights=by_rules(holder.name, holder.groups))
        token = self.tokens.get(id)
        if token is None or not self.has_makers(token, counts):
            return Holding(is_valid=False)
        if token.rights is None:
            return Holding(rights=by_rules(holder.name, holder.groups))
        if not is_alive(token.expires_ns):
            return Holding()
        rights = [right for right in token.rights if is_alive(right.expires_ns)]
        bound = by_rules(holder.name, holder.groups) if token.is_bounded else None
        return Holding(rights=rights, bound=bound)

    def has_makers(self, token: TokenRecord | None, counts: Callable[[Grant], bool]) -> bool:
        """Whether it is not over, nor any that it was made with."""
        while token is not None and counts(token):
            kind, _, id = token.made_with.partition("/")
            if kind != "token":
                return self._is_unrevoked(token.made_with, counts)
            token = self.tokens.get(id)
        return False

    def _is_unrevoked(self, key: str, counts: Callable[[Grant], bool]) -> bool:
        since_ns = self.revoked.get(key)
        return since_ns is None or counts(Grant(id=key, may_be_over=True, over_ns=since_ns))

    # What somebody may do

    def may(
        self, holding: Holding, holder: Holder, action: str, resource: str, about: object
    ) -> bool | None:
        """Whether the action is allowed on what is no event; None for what is not judged here."""
        if not holding.is_valid:
            return False
        every = [holding.rights] if holding.bound is None else [holding.rights, holding.bound]
        answers = [self._may(rights, holder, action, resource, about) for rights in every]
        if False in answers:
            return False
        return None if None in answers else True

    def _may(
        self, rights: list[Right], holder: Holder, action: str, resource: str, about: object
    ) -> bool | None:
        kind = resource.partition("/")[0]
        of_action = [right for right in rights if action in right.actions]
        # Who may get every event may fetch or end what others made only if it manages that too.
        is_private = action == SUBSCRIBE and kind in PRIVATE and resource != f"{kind}/own"
        manages = any(r.is_whole or r.is_about(resource) for r in rights if MANAGE in r.actions)
        if any(right.is_whole for right in of_action) and (manages or not is_private):
            return True
        if any(right.is_about(resource) for right in of_action):
            return True
        if kind in OWN and isinstance(about, Owner):
            is_own = about.name == holder.name and self._reaches(holder.credential, about)
            if is_own and _has_some(rights, OWN[kind]):
                return True
        if kind in OWN and resource == f"{kind}/own":
            by_name = [right for right in rights if right.resource.startswith(f"{kind}/")]
            named = any(right.actions & {action, OWN[kind]} for right in by_name)
            return named or _has_some(rights, OWN[kind])
        if isinstance(about, Filter):
            scopes = [right.scope for right in of_action if right.scope is not None]
            if not scopes:
                return False
            return True if any(overlap(scope, about) for scope in scopes) else None
        if action == PUBLISH or kind in NOT_JUDGED or isinstance(about, str):
            return None
        if kind == "topics":  # whoever may do anything on a topic may know that it is there
            return any(_has_some(rights, each) for each in (READ, SUBSCRIBE, PUBLISH))
        return kind in OPENED_BY_EVENTS and _has_some(rights, action)

    def _reaches(self, credential: str, about: Owner) -> bool:
        """Whether what somebody made is in reach of one of theirs, which may have less rights."""
        if not about.credential or credential == about.credential:
            return bool(about.credential)
        mine = self.tokens.get(credential.partition("/")[2])
        maker = self.tokens.get(about.credential.partition("/")[2])
        if mine is None or mine.rights is None:
            return maker is None or maker.rights is None or maker.is_bounded
        if maker is None or maker.rights is None or (mine.is_bounded and not maker.is_bounded):
            return False
        of_mine, of_makers = (
            [replace(right, expires_ns=None) for right in rights]
            for rights in (mine.rights, maker.rights)
        )
        return of_mine == of_makers

    def may_publish(self, holding: Holding, events: Iterable[Event]) -> bool:
        return holding.is_valid and all(
            holding.allows(PUBLISH, shape_of(event)) for event in events
        )

    def may_get(self, holder: Holder, seq: int) -> bool:
        """Whether somebody surely may be sent this event."""
        holding = self.surely(holder)
        return holding.is_valid and holding.allows(SUBSCRIBE, self._shape(seq))

    def open_to_neighbours(self) -> Callable[[Shape], bool]:
        """Which events surely come here from every broker that may be linked, and go there."""
        holdings: list[Holding] = []
        for name in self._neighbour_names:
            holder = self.neighbours.get(name) or Holder(name, credential=UNSEEN)
            holding = self.surely(holder)
            if self.may(holding, holder, MANAGE, ANY_LINK, None) is not True:
                return lambda shape: False
            holdings.append(holding)
        return lambda shape: all(
            each.allows(action, shape) for each in holdings for action in (SUBSCRIBE, PUBLISH)
        )

    # What leaves the broker

    def check_sent(self, holder: Holder | None, seqs: Iterable[int], to: str) -> None:
        """These events leave for somebody."""
        if holder is None:
            return
        holding = self.maybe(holder)
        for seq in seqs:
            if not (holding.is_valid and holding.allows(SUBSCRIBE, self._shape(seq))):
                raise Violation(f"{to}: event {seq}, to which {holder.name} has no right")

    def _shape(self, seq: int) -> Shape:
        shape = self._shapes.get(seq)
        if shape is None:
            shape = self._shapes[seq] = shape_of(self._log.events[seq])
        return shape

    def check_read(self, session: Session, event: Event, *, is_allowed: bool) -> None:
        """The broker says whether a session may read this, now."""
        holder = holder_of_session(session)
        if holder is None:
            return
        may, must, shape = self.maybe(holder, exactly=True), self.surely(holder), shape_of(event)
        if is_allowed and not (may.is_valid and may.allows(READ, shape)):
            raise Violation(f"{holder.name} may read {event.id} without a right")
        if not is_allowed and must.is_valid and must.allows(READ, shape):
            raise Violation(f"{holder.name} may not read {event.id}, to which it has a right")

    # Who need not get what

    def watch(self, watched: Watched) -> None:
        watched.looked_to = watched.start
        self.watched.append(watched)

    def hold(self, watched: Watched, holder: Holder | None) -> None:
        """From now on it reads by these rights."""
        self.look_at(watched)
        watched.holder = holder
        watched.looked_to = watched.start

    def is_exempt(self, watched: Watched, seq: int) -> bool:
        self.tick()
        if watched.looked_to < self._log.last:
            self._look(watched, watched.looked_to)
        return seq in watched.exempt

    def look(self) -> None:
        """Somebody is about to have other rights, or has: remember who had none to what."""
        self.changes += 1
        for watched in self.watched:
            self.look_at(watched)
        self.on_look()

    def look_at(self, watched: Watched) -> None:
        self._look(watched, watched.start)

    def _look(self, watched: Watched, after: int) -> None:
        watched.looked_to = self._log.last
        if watched.holder is None:
            return
        holding = self.surely(watched.holder)
        exempt = watched.exempt
        for seq in range(after + 1, self._log.last + 1):
            if seq not in exempt and not (
                holding.is_valid and holding.allows(SUBSCRIBE, self._shape(seq))
            ):
                exempt.add(seq)

    # What changes

    def end(self, grant: Grant) -> None:
        """Somebody asks to remove or revoke it: from now on it may be over."""
        self.look()
        grant.may_be_over = True
        self.look()

    def is_over(self, grant: Grant) -> None:
        """It was acknowledged that it is over."""
        if grant.over_ns is None:
            grant.over_ns = self._world.now_ns

    def add_rule(self, rule: RuleRecord) -> None:
        self.look()
        self.rules[rule.id] = rule

    def add_token(self, token: TokenRecord) -> None:
        self.look()
        self.tokens[token.id] = token

    def revoke_others(self, keys: Iterable[str]) -> None:
        """These credentials, beside tokens, are revoked now, and no others."""
        self.look()
        self.revoked = {key: self.revoked.get(key, self._world.now_ns) for key in keys}
        self.look()


def _has_some(rights: list[Right], action: str) -> bool:
    """Whether the action is allowed on some events."""
    return any(action in right.actions and right.scope is not None for right in rights)
