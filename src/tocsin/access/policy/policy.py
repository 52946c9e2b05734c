"""Policy: decides by rules and tokens, for every endpoint.

What somebody may do is worked out once for each of them, and again when a rule or a token changes
or ends. So a decision costs a look into a table; what it depends on is in `Grants`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final

from tocsin.access.decision import About, Action, Decision, Reach, Recorder, not_allowed
from tocsin.access.policy.delegated import DelegatedRights
from tocsin.access.policy.grants import Grants, Reason
from tocsin.access.policy.permits import HolderPermit
from tocsin.access.policy.publishers import Publisher, Publishers
from tocsin.access.policy.rights import Right, Rule
from tocsin.access.policy.tokens import Token, is_over, reaches
from tocsin.access.session import ANONYMOUS, CredentialKind, Session
from tocsin.access.wording import OPERATOR, missing
from tocsin.errors import NotSignedIn
from tocsin.event.event import Event
from tocsin.event.instant import LATEST_NS
from tocsin.event.subscription import SOMEBODY, Owner

_topic = attrgetter("topic")

NOBODY: Final = frozenset[str]()
_Holder = tuple[str, frozenset[str], str, str]

HOLDERS_MAX: Final = 20_000  # whose rights are remembered; past that they are worked out anew


class Policy:
    """Rules, tokens and revoked credentials, and what follows from them."""

    def __init__(
        self,
        now_ns: Callable[[], int],
        *,
        groups: Mapping[str, frozenset[str]] | None = None,
        contact: str = OPERATOR,
        steady_ns: Callable[[], int] | None = None,
        delegated: DelegatedRights | None = None,
    ) -> None:
        """`groups`: the members of each, by their names. `contact`: who grants rights. `steady_ns`:
        a clock that is quick to ask and cannot be set, if there is one. `delegated`: what owners of
        topics have granted."""
        self.now_ns = now_ns
        self._steady_ns = steady_ns
        self.recorder: Recorder | None = None
        self.refused: dict[Action, int] = dict.fromkeys(Action, 0)  # how often
        self._contact = contact
        self._groups_of: dict[str, frozenset[str]] = _groups_of(groups or {})
        self._rules: dict[str, Rule] = {}
        self._tokens: dict[str, Token] = {}
        self._revoked: frozenset[str] = frozenset()  # keys of credentials that are no tokens
        self.delegated = DelegatedRights() if delegated is None else delegated
        self.delegated.changed.append(self._change)
        self._grants: dict[_Holder, Grants] = {}
        self._publishers = Publishers(self._published)
        self._permits: dict[tuple[Owner, Action, int], HolderPermit] = {}
        self.version = 1
        self.changed: list[Callable[[], None]] = []  # called after each change
        self.ends_sooner: list[Callable[[], None]] = []  # than `next_end_ns` said: a session does
        self._session_ends: list[int] = []  # a heap: when credentials of open sessions end
        self._next_end_ns = LATEST_NS

    # What there is

    @property
    def rules(self) -> Mapping[str, Rule]:
        return self._rules

    @property
    def tokens(self) -> Mapping[str, Token]:
        return self._tokens

    @property
    def revoked(self) -> frozenset[str]:
        return self._revoked

    def set_rules(self, added: Iterable[Rule], removed: Iterable[str] = ()) -> None:
        for rule_id in removed:
            self._rules.pop(rule_id, None)
        self._rules.update((rule.id, rule) for rule in added)
        self._change()

    def set_token(self, token: Token) -> None:
        """A new token, or one that was revoked."""
        self._tokens[token.id] = token
        self._change()

    def drop_token(self, token_id: str) -> None:
        """Nothing refers to it any more."""
        if self._tokens.pop(token_id, None) is not None:
            self._change()

    def set_revoked(self, keys: Iterable[str]) -> None:
        """The credentials, beside tokens, that are revoked now: all of them."""
        self._revoked = frozenset(keys)
        self._change()

    def set_groups(self, groups: Mapping[str, frozenset[str]]) -> None:
        self._groups_of = _groups_of(groups)
        self._change()

    def _change(self) -> None:
        self.version += 1
        self._grants.clear()
        self._publishers.forget()
        for listener in self.changed:
            listener()

    # Deciding

    def decide(self, session: Session, action: Action, resource: str, about: About = None) -> None:
        """Raise NotSignedIn or NotAllowed if the session may not do this to the resource."""
        if session.principal.is_internal:
            return
        grants = self._valid_for(session, action, resource)
        about = self._seen_by(session, about)
        self._decided(session, action, resource, grants.reason(action, resource, about))

    def allows(self, session: Session, action: Action, resource: str, about: About = None) -> bool:
        """The same as an answer. Nothing is recorded."""
        if session.principal.is_internal:
            return True
        try:
            grants = self._valid(session)
            return grants.reason(action, resource, self._seen_by(session, about)).allowed
        except NotSignedIn:
            return False

    def _seen_by(self, session: Session, about: About) -> About:
        """To some tokens, what their principal made is somebody else's."""
        credential = session.credential
        if not isinstance(about, Owner) or credential is None:
            return about
        return about if reaches(self._tokens, credential.key, about) else SOMEBODY

    def reach(self, session: Session) -> Reach:
        """As it is at this moment; any thread may ask it."""
        key, tokens = session.owner.credential, dict(self._tokens)
        return lambda each: (
            each is not None and session.is_owner(each) and reaches(tokens, key, each)
        )

    def decide_events(self, session: Session, events: Sequence[Event]) -> None:
        """Raise if the session may not publish every one of these. The hottest path there is: what
        was decided of a topic holds for the session until something changes or ends."""
        if session.principal.is_internal or not events:
            return
        publisher = self._publishers.find(session)
        if publisher is None or publisher.is_over(self.now_ns, self._steady_ns):
            grants = self._valid_for(session, Action.PUBLISH, events[0].topic)
            publisher = self._publishers.add(session, grants)
        if len(events) == 1:
            topic = events[0].topic
            if not publisher.count(topic, 1):
                self._decide_topic(publisher, topic, events)
            return
        for topic, number in Counter(map(_topic, events)).items():
            if not publisher.count(topic, number):
                self._decide_topic(
                    publisher, topic, [each for each in events if each.topic == topic]
                )

    def _decide_topic(self, publisher: Publisher, topic: str, events: Sequence[Event]) -> None:
        """As nothing is known of the topic yet, or not every event on it is allowed."""
        session, grants = publisher.session, publisher.grants
        whole = grants.topic_reason(Action.PUBLISH, topic)
        if whole is not None and whole.allowed:
            self._publishers.allow(publisher, topic, whole.text, len(events))
            return
        for event in events:  # by what is in them
            reason = whole or grants.event_reason(Action.PUBLISH, event)
            if not reason.allowed:
                self._decided(session, Action.PUBLISH, topic, reason)
            elif self.recorder is not None:
                self.recorder.published(session, topic, reason.text, 1)

    def report_published(self) -> None:
        """Show the recorder how many events were allowed since the last time."""
        self._publishers.report()

    def _published(self, session: Session, topic: str, reason: str, count: int) -> None:
        if self.recorder is not None:
            self.recorder.published(session, topic, reason, count)

    def explain(
        self, session: Session, action: Action, resource: str, about: About = None
    ) -> Decision:
        """What would be decided, and why. Nothing is recorded."""
        try:
            reason = self._valid(session).reason(action, resource, about)
        except NotSignedIn as error:
            return Decision(session, action, resource, allowed=False, reason=error.problem)
        return Decision(session, action, resource, reason.allowed, reason.text)

    def _decided(self, session: Session, action: Action, resource: str, reason: Reason) -> None:
        if self.recorder is not None:
            decision = Decision(session, action, resource, reason.allowed, reason.text)
            self.recorder.decided(decision)
        if reason.allowed:
            return
        self.refused[action] += 1
        if session.is_signed_in:
            raise not_allowed(session, action, resource, self._contact)
        raise NotSignedIn(
            f"to {missing(action, resource)[0]}, a credential is needed",
            remedy="Send a token (Authorization: Bearer) or a client certificate; "
            f"`tocsin login` keeps one for the commands. Ask {self._contact} for one.",
        )

    def _valid_for(self, session: Session, action: Action, resource: str) -> Grants:
        try:
            return self._valid(session)
        except NotSignedIn as error:
            self.refused[action] += 1
            if self.recorder is not None:
                reason = error.problem
                self.recorder.decided(Decision(session, action, resource, False, reason))
            raise

    def validate(self, session: Session) -> None:
        """Raise NotSignedIn if the session's credential is valid no more."""
        self._valid(session)

    def _valid(self, session: Session) -> Grants:
        """What the session may do. Raises NotSignedIn if its credential is valid no more."""
        principal, credential = session.principal, session.credential
        if credential is None:
            return self.grants_of(ANONYMOUS.name, NOBODY, "")
        grants = self.grants_of(
            principal.name, principal.groups, credential.key, credential.entity_id
        )
        ends_ns = credential.expires_ns
        if grants.is_valid and (ends_ns is None or self.now_ns() < ends_ns):
            return grants
        raise NotSignedIn(
            f"the {credential.kind} of {principal.name} is not valid any more",
            remedy="Sign in again; a token has an end, and may be revoked before.",
        )

    def grants_of(
        self, name: str, groups: frozenset[str], credential: str, entity_id: str = ""
    ) -> Grants:
        """What somebody may do now; `credential` is the key of theirs, empty without one."""
        holder = (name, groups, credential, entity_id)
        grants = self._grants.get(holder)
        if grants is None or (grants.is_timed and not grants.holds_at(self.now_ns())):
            if len(self._grants) >= HOLDERS_MAX:
                self._grants.clear()
            grants = self._grants[holder] = self._worked_out(*holder)
        return grants

    def _worked_out(
        self, name: str, groups: frozenset[str], credential: str, entity_id: str
    ) -> Grants:
        now_ns = self.now_ns()
        if is_over(self._tokens, self._revoked, credential):
            return Grants(name, is_valid=False)
        kind, _, token_id = credential.partition("/")
        token = self._tokens[token_id] if kind == CredentialKind.TOKEN else None
        if token is None or token.rights is None:
            rights = self._rights_by_rules(name, groups) + self.delegated.rights_of(entity_id)
            return Grants.at(name, rights, now_ns)
        ends_ns = LATEST_NS if token.expires_ns is None else token.expires_ns
        if ends_ns <= now_ns:
            return Grants(name, from_ns=ends_ns)
        bound: Grants | None = None
        if token.is_bounded:
            bound = Grants.at(name, self._rights_by_rules(name, groups), now_ns)
        rights = [(token.key, right) for right in token.rights]
        return Grants.at(name, rights, now_ns, ends_ns, bound)

    def _rights_by_rules(self, name: str, groups: frozenset[str]) -> list[tuple[str, Right]]:
        every = self.groups_of(name, groups)
        return [
            (f"rule/{rule.id}", rule.right)
            for rule in self._rules.values()
            if rule.applies_to(name, every)
        ]

    def applies(self, rule: Rule, name: str, groups: frozenset[str]) -> bool:
        """True if the rule is somebody's, by name or by a group."""
        return rule.applies_to(name, self.groups_of(name, groups))

    def groups_of(self, name: str, groups: frozenset[str]) -> frozenset[str]:
        """Those that somebody's credential names, and those of the settings."""
        return groups | self._groups_of.get(name, NOBODY)

    # Permits

    def permit(self, owner: Owner | None, action: Action) -> HolderPermit | None:
        """Which events this owner may have; None if it is the broker itself."""
        return self._permit(owner, action, None)

    def session_permit(self, session: Session, action: Action) -> HolderPermit | None:
        """The same for a session, and only while its credential is valid."""
        expires_ns = None if session.credential is None else session.credential.expires_ns
        return self._permit(session.owner, action, expires_ns)

    def _permit(
        self, owner: Owner | None, action: Action, expires_ns: int | None
    ) -> HolderPermit | None:
        if owner is not None and owner.is_internal:
            return None
        holder = owner or Owner(ANONYMOUS.name)
        key = (holder, action, expires_ns or LATEST_NS)
        permit = self._permits.get(key)
        if permit is None:
            if len(self._permits) >= HOLDERS_MAX:
                self._permits.clear()  # those in use live on with who uses them
            permit = self._permits[key] = HolderPermit(self, holder, action, expires_ns)
            if expires_ns is not None:
                self._session_ends_at(expires_ns)
        return permit

    def _session_ends_at(self, end_ns: int) -> None:
        heappush(self._session_ends, end_ns)
        if end_ns < self._next_end_ns:
            for listener in self.ends_sooner:
                listener()

    def next_end_ns(self, after_ns: int) -> int:
        """When the next right, token, rule or credential of a session ends that was not over then;
        LATEST_NS if none does."""
        while self._session_ends and self._session_ends[0] <= after_ns:
            heappop(self._session_ends)
        ends: list[int | None] = [*self._session_ends[:1]]
        ends += [rule.right.expires_ns for rule in self._rules.values()]
        ends += self.delegated.ends()
        for token in self._tokens.values():
            ends.append(token.expires_ns)
            ends += [right.expires_ns for right in token.rights or ()]
        found = (end for end in ends if end is not None and end > after_ns)
        self._next_end_ns = min(found, default=LATEST_NS)
        return self._next_end_ns


def _groups_of(groups: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group, members in groups.items():
        for member in members:
            found.setdefault(member, set()).add(group)
    return {name: frozenset(of) for name, of in found.items()}
