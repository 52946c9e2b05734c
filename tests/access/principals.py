"""A broker by hand in which rules decide, and who asks it."""

from __future__ import annotations

import msgspec

from manual_runtime import START_NS, ManualRuntime
from tocsin.access.decision import Access
from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import read_rule
from tocsin.access.session import Credential, CredentialKind, Principal, Session, internal
from tocsin.broker.log import EventStore
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind, Subscription

ADMIN = {"principal": "admin", "action": "*"}


class Clock:
    """The time of the policy, which the runtime sets."""

    now_ns = START_NS

    def __call__(self) -> int:
        return self.now_ns


def as_(name: str, *groups: str, key: str = "openid/x", ends_ns: int | None = None) -> Session:
    """Somebody who has signed in."""
    credential = Credential(CredentialKind(key.partition("/")[0]), key, ends_ns)
    return Session(Principal(name, frozenset(groups)), "http", "", credential)


def event(number: int, topic: str = "lead/a", **attributes: object) -> Event:
    return Event(f"e{number}", "/s", "t", topic=topic, attributes=attributes)  # type: ignore[arg-type]


class Reader:
    """A stream's far end."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.told: list[int] = []
        self.ended = ""

    def write(self, events: list[Stored]) -> bool:
        self.got += [each.event.topic for each in events]
        return True

    def dropped(self, count: int) -> None: ...

    def withheld(self, count: int) -> None:
        self.told.append(count)

    def end(self, reason: str) -> None:
        self.ended = reason


class Site:
    """A broker with its rules. Everything is done by its port."""

    def __init__(self, *rules: dict[str, object], store: EventStore | None = None) -> None:
        self.policy = Policy(Clock())
        self.grant(ADMIN, *rules)
        self.runtime = ManualRuntime(store, access=self._access())
        self.port = self.runtime.port
        self.policy.now_ns = self.runtime.now_ns
        self.policy.changed.append(self._changed)

    def _access(self) -> Access:
        return self.policy

    def _changed(self) -> None:
        self.runtime.broker.rights_changed()
        self.runtime.settle()

    def grant(self, *rules: dict[str, object]) -> None:
        """More rules, by their places: "0", "1"."""
        first, now_ns = len(self.policy.rules), self.policy.now_ns()
        self.policy.set_rules(
            read_rule(rule, str(first + number), now_ns) for number, rule in enumerate(rules)
        )

    def revoke(self, principal: str) -> None:
        """All rules of this principal."""
        gone = [id for id, rule in self.policy.rules.items() if rule.principal == principal]
        self.policy.set_rules([], gone)

    def publish(self, *events: Event) -> None:
        self.runtime.run(self.port.publish(internal("test"), list(events)))

    def subscribe(
        self, session: Session, sink: str | None = "http://sink", topic: str = "**"
    ) -> SubscriptionView:
        """A push subscription, or a box if there is no sink."""
        text = b'[{"topic":"%b"}]' % topic.encode()
        asked = Subscription(
            id="",
            kind=Kind.BOX if sink is None else Kind.PUSH,
            sink=sink,
            filters=msgspec.Raw(text),
        )
        filter = read_filters([{"topic": topic}])
        return self.runtime.run(self.port.subscribe(session, asked, filter, None))
