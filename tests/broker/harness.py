"""A broker in a test's hand: every effect is seen, and done when the test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import TypeVar

import msgspec

from tocsin.broker.broker import Broker
from tocsin.broker.commit.numbering import Applied, Numbering
from tocsin.broker.delivery.outcome import Answered, Outcome
from tocsin.broker.effects import Commit, Effect, Handshake, Push, ReadLog, Reply
from tocsin.broker.options import BrokerOptions
from tocsin.broker.snapshot import Snapshot
from tocsin.broker.state.state import PermitOf
from tocsin.errors import DiskFailed, DiskFull
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.stored import Stored, repeat_key
from tocsin.event.subscription import Config, Kind, Owner, SoapTerms, Subscription, from_definition
from tocsin.wire.cloudevents.webhook import Allowed, Refused

E = TypeVar("E")
S = 1_000_000_000
OK = Answered(204)


def event(number: int, topic: str = "t", source: str = "/test", data: bytes | None = None) -> Event:
    return Event(id=str(number), source=source, type="test", topic=topic, data=data)


class Hand:
    """The world around one broker: a log in a list, time that moves when told to."""

    def __init__(
        self,
        options: BrokerOptions | None = None,
        *,
        trusted: bool = True,
        snapshot: Snapshot | None = None,
        log: list[Stored] | None = None,
        stopwatch: Callable[[], int] = lambda: 0,
        addresses_of: Callable[[str], Iterable[str]] = lambda sink: (),
        permit_of: PermitOf = lambda owner: None,
    ) -> None:
        numbers = count(1)
        self.now = 1_000 * S
        self.log: list[Stored] = log or []
        self.cursors: dict[str, int] = dict(snapshot.cursors) if snapshot else {}
        self.definitions: dict[str, bytes] = {}
        self.dead: dict[str, bytes] = {}
        self.kept: dict[str, bytes] = dict(snapshot.service_state) if snapshot else {}
        self.seen: list[Effect] = []
        options = options or BrokerOptions()
        self.numbering = Numbering(
            duplicates_window=options.duplicates_window,
            clock_jump_ns=int(options.clock_jump_s * S),
        )
        self.numbering.restore(
            [(repeat_key(s.event, s.arrival), s.seq) for s in self.log],
            snapshot.last_received_ns if snapshot else 0,
        )
        self.broker = Broker(
            options,
            new_id=lambda: f"id{next(numbers)}",
            jitter=lambda: 0.0,
            is_trusted=lambda sink: trusted,
            stopwatch=stopwatch,
            addresses_of=addresses_of,
            permit_of=permit_of,
        )
        if snapshot is not None:
            self.broker.recover(snapshot, self.now)

    def flush(self) -> list[Effect]:
        effects = self.broker.flush(self.now)
        self.seen += effects
        return effects

    def settle(self) -> list[Effect]:
        """Do what the broker asks of the disk until it asks nothing more."""
        new: list[Effect] = []
        for _ in range(1_000):
            effects = self.flush()
            new += effects
            disk = [e for e in effects if isinstance(e, Commit | ReadLog)]
            if not disk:
                return new
            for effect in disk:
                self.do(effect)
        raise AssertionError("the broker never comes to rest")

    def do(self, effect: Commit | ReadLog) -> None:
        if isinstance(effect, Commit):
            applied = self.keep(effect)
            first = self.log[0].seq if self.log else applied.last_seq + 1
            self.broker.committed(applied, first, self.now)
        else:
            page = [s for s in self.log if s.seq > effect.after][: effect.limit]
            through = page[-1].seq if page else effect.after
            self.broker.log_read(page, through, [], self.now)

    def keep(self, effect: Commit) -> Applied:
        change = effect.change
        applied = self.numbering.apply(effect.append, self.broker.head)
        self.numbering.keep()
        self.log += applied.events
        self.log = [s for s in self.log if s.seq > change.trim_to]
        self.cursors.update(change.cursors)
        self.cursors.update({name: applied.start(at) for name, at in change.starts.items()})
        for table, changes in (
            (self.definitions, change.subscriptions),
            (self.dead, change.dead),
            (self.kept, change.service_state),
        ):
            for key, data in changes.items():
                if data is None:
                    table.pop(key, None)
                else:
                    table[key] = data
        return applied

    def refuse(self, effect: Commit, error: DiskFull | DiskFailed) -> None:
        """The store tries, and fails."""
        self.numbering.undo(self.numbering.apply(effect.append, self.broker.head))
        self.broker.commit_failed(error, self.now)

    def pass_s(self, seconds: float) -> list[Effect]:
        self.now += int(seconds * S)
        self.broker.tick(self.now)
        return self.settle()

    def ask(self, call: Callable[[object], None]) -> object:
        """The answer to one question, which must come without anything else happening."""
        token = object()
        call(token)
        return answer_to(token, self.settle())

    def publish(self, *events: Event) -> object:
        return self.ask(lambda token: self.broker.publish(list(events), token))

    def subscribe(
        self,
        sink: str | None = "http://sink/",
        filters: list[object] | None = None,
        start: int | None = None,
        expires_ns: int | None = None,
        soap: SoapTerms | None = None,
        owner: Owner | None = None,
        **config: object,
    ) -> str:
        wanted = filters or []
        asked = Subscription(
            id="",
            kind=Kind.BOX if sink is None else Kind.PUSH,
            sink=sink,
            filters=msgspec.Raw(msgspec.json.encode(wanted)),
            config=Config(**config),  # type: ignore[arg-type]
            expires_ns=expires_ns,
            soap=soap,
            owner=owner,
        )
        result = self.ask(
            lambda token: self.broker.subscribe(asked, read_filters(wanted), start, token, self.now)
        )
        return result.subscription.id  # type: ignore[attr-defined, no-any-return]

    def pull(
        self, box: str, ack: str | None = None, wait_s: float = 0, events_max: int = 100
    ) -> object:
        return self.ask(
            lambda token: self.broker.pull(box, events_max, int(wait_s * S), ack, token, self.now)
        )

    def answer(self, push: Push, outcome: Outcome = OK) -> list[Effect]:
        self.broker.pushed(push.lane, outcome, self.now)
        return self.settle()

    def hear(self, answer: Allowed | Refused) -> list[Effect]:
        """The sink that was asked last answers."""
        self.broker.handshaken(handshakes(self.seen)[-1].token, answer, self.now)
        return self.settle()

    def crash(self) -> Hand:
        """What a new broker finds on disk."""
        again = Hand(
            self.broker.options,
            snapshot=Snapshot(
                last_seq=self.broker.head,
                first_seq=self.log[0].seq if self.log else self.broker.head + 1,
                subscriptions=[from_definition(d) for d in self.definitions.values()],
                cursors=self.cursors,
                dead_letters=len(self.dead),
                last_received_ns=self.log[-1].received_ns if self.log else 0,
                service_state=self.kept,
            ),
            log=self.log,
        )
        again.definitions, again.dead, again.now = self.definitions, self.dead, self.now
        return again


def answer_to(token: object, effects: list[Effect]) -> object:
    answers = [e.result for e in effects if isinstance(e, Reply) and e.token is token]
    assert len(answers) == 1, f"{len(answers)} answers"
    return answers[0]


def only(kind: type[E], effects: list[Effect]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def pushes(effects: list[Effect]) -> list[Push]:
    return only(Push, effects)


def handshakes(effects: list[Effect]) -> list[Handshake]:
    return only(Handshake, effects)


def seqs(carriers: object) -> list[int]:
    """The numbers of the events that pushes, stream writes or pulls carry."""
    return [s.seq for carrier in carriers for s in carrier.events]  # type: ignore[attr-defined]
