"""The blackboards that figures 9 to 11 of paper 004 are measured with: the paper's, and ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Protocol

import load  # noqa: F401  # makes tests/served.py known
from tocsin.broker.broker import Broker
from tocsin.broker.commit.numbering import Applied
from tocsin.broker.effects import Reply
from tocsin.broker.options import BrokerOptions
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.event.filter import ByConcept, Operator, Predicate
from tocsin.event.subscription import Config, Kind, Subscription
from tocsin.matching.lookup_index import LookupIndex

S = 1_000_000_000


class Blackboard(Protocol):
    """What is measured."""

    def subscribe(self, address: str, profile: frozenset[str]) -> object: ...

    def unsubscribe(self, address: str) -> object: ...


class PaperBlackboard:
    """Figures 6, 7 and 8 as they are written; `collection` is what subscribers are kept in."""

    def __init__(self, collection: type[set[str]] | type[list[str]]) -> None:
        self._collection = collection
        self._add = "add" if collection is set else "append"
        self._store: dict[str, frozenset[str]] = {}
        self._sli: dict[str, set[str] | list[str]] = {}

    def subscribe(self, address: str, profile: frozenset[str]) -> None:
        self._store[address] = profile
        left = set(profile)
        for concept in list(self._sli):
            subscribers = self._sli[concept]
            if concept in left:
                if address not in subscribers:
                    getattr(subscribers, self._add)(address)
                left.remove(concept)
            elif address in subscribers:
                subscribers.remove(address)
                if not subscribers:
                    del self._sli[concept]
        for concept in left:
            self._sli[concept] = self._collection([address])

    def unsubscribe(self, address: str) -> None:
        for concept in self._store.pop(address, ()):
            subscribers = self._sli.get(concept)
            if subscribers is not None and address in subscribers:
                subscribers.remove(address)
                if not subscribers:
                    del self._sli[concept]

    def split(self, pairs: dict[str, str]) -> dict[str, dict[str, str]]:
        outgoing: dict[str, dict[str, str]] = {}
        for concept, value in pairs.items():
            for address in self._sli.get(concept, ()):
                outgoing.setdefault(address, {})[concept] = value
        return outgoing

    def fill(self, profiles: Iterable[tuple[str, frozenset[str]]]) -> None:
        """Figure 5: the index from what is stored, without a walk for each."""
        for address, profile in profiles:
            self._store[address] = profile
            for concept in profile:
                if concept in self._sli:
                    getattr(self._sli[concept], self._add)(address)
                else:
                    self._sli[concept] = self._collection([address])


class BrokerCore:
    """The broker's brain with a disk that takes no time: matcher, registry, aggregate profile."""

    def __init__(self) -> None:
        numbers = count(1)
        self.looks = True  # at the aggregate profile, after every change
        self._ids: dict[str, str] = {}
        self._broker = Broker(
            BrokerOptions(),
            new_id=lambda: f"id{next(numbers)}",
            jitter=lambda: 0.0,
            is_trusted=lambda sink: True,
        )

    def subscribe(self, address: str, profile: frozenset[str]) -> None:
        concepts = [Predicate(name, Operator.EXISTS) for name in sorted(profile)]
        asked = Subscription(id="", kind=Kind.PUSH, sink=address, config=Config(mode="blackboard"))
        self._broker.subscribe(asked, ByConcept(tuple(concepts)), None, address, S)
        view = self._settled()
        assert isinstance(view, SubscriptionView), view
        self._ids[address] = view.subscription.id

    def unsubscribe(self, address: str) -> None:
        self._broker.unsubscribe(self._ids.pop(address), address, S)
        self._settled()

    def _settled(self) -> object:
        """Committed and answered, the aggregate profile brought up to date; the answer."""
        self._broker.flush(S)
        self._broker.committed(Applied([], [], self._broker.head), 1, S)
        if self.looks:
            self._broker.interest.profile_version()
        return next(e.result for e in self._broker.flush(S) if isinstance(e, Reply))


ENGINES: dict[str, Callable[[], Blackboard]] = {
    "paper (sets)": lambda: PaperBlackboard(set),
    "paper (lists)": lambda: PaperBlackboard(list),
    "index": LookupIndex,
    "broker": BrokerCore,
}
