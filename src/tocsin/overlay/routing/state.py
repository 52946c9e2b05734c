"""RouterState: what a router knows, and the changes to it that have to be saved."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

import msgspec

from tocsin.errors import TocsinError
from tocsin.event.filter import Filter
from tocsin.event.filter_text import parse_filter
from tocsin.overlay.routing.effects import Effect, EntryKey, Save
from tocsin.overlay.routing.links import Identity, Link, Phase
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.reach import Reach
from tocsin.overlay.routing.table import OWN, RoutingTable

SUBSCRIPTIONS = "s"
ADVERTISEMENTS = "a"
NEIGHBOURS = "n"
FORGOTTEN = "f"
TOKENS = "t"
BEHIND = "b"

WITHHELD_GRACES_MAX = 15  # of a cycle: 29 brokers with 15 links too many need 9 of them

# The same few filters come from many brokers, and reading one takes as long as all the rest.
read_filter = lru_cache(maxsize=4_096)(parse_filter)


class Neighbour(msgspec.Struct, array_like=True):
    """A broker that is or was connected to this one. Saved as an array, so new fields come last.

    The ages are counted by a steady clock while this broker runs: somebody may set the time of day.
    """

    log: str
    gone_ns: int | None  # since when it is not connected
    behind: tuple[str, ...] = ()  # of older versions: each has a row of its own now
    seen_ns: int = 0  # it was connected then, and perhaps later too
    away_ns: int = 0  # for how long it has not been connected
    linked_ns: int = 0  # for how long it has been, of all its connections
    token: str = ""  # that it was given to prove who it is,
    has_token: bool = False  # and has on its disk: from then on it has to


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Neighbour).decode


class RouterState:
    """The tables of one broker. `effects` collects what is to be done, until somebody takes it."""

    def __init__(self, own: Identity, options: RoutingOptions) -> None:
        self.own = own
        self.options = options
        self.reach = Reach(own.broker)
        ways = (self.reach.way_to, self.reach.is_only_way)
        self.advertisements = RoutingTable(*ways, covering=options.covering)  # the SRT
        self.subscriptions = RoutingTable(*ways, covering=options.covering)  # the PRT
        self.links: dict[int, Link] = {}
        self.link_of: dict[str, Link] = {}  # of each neighbour that was greeted
        self.neighbours: dict[str, Neighbour] = {}
        self.forgotten: dict[str, int] = {}
        # By which this broker proves to others who it is. They outlive the neighbour: who is
        # forgotten here may remember this broker.
        self.tokens: dict[str, str] = {}
        self.now_ns = 0  # of the input that is being handled
        self.touched: dict[str, None] = {}  # brokers whose place may be another one
        self.untold: dict[str, dict[EntryKey, None]] = {}
        """Of each broker whose place is to be told first: subscriptions to be withdrawn."""
        self.holding: set[str] = set()  # brokers at which some subscription holds
        # Of the links that are complete: those that places are held for, to be sent once all
        # behind the others have said that they have every place; and those of which not all have.
        self.holding_places: dict[int, Link] = {}
        self.lacking_places: set[int] = set()
        self.displaced: set[str] = set()  # brokers that are not where they were
        self.has_looked_at_all = False  # for those, since the last tick
        self.withheld_ns = 0  # for so long nothing was withdrawn, because there is a cycle
        self.ends_withholding = False  # for this turn: that was long enough
        self.behind: dict[str, dict[str, None]] = {}
        """Of each neighbour: itself and the brokers that are reached through it, or were and are
        not reached in another way since. What is kept for it may be owed to them."""
        self.forgotten_early = 0  # neighbours, because there were too many
        self.held: dict[EntryKey, None] = {}  # answered when all have, or at the next tick
        self.effects: list[Effect] = []

    def take_effects(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects

    def up_links(self, phase: Phase = Phase.UP) -> list[Link]:
        return [link for link in self.link_of.values() if link.phase >= phase]

    def behind_or_lost(self, neighbour: str) -> Collection[str]:
        return self.behind.get(neighbour, {}).keys()

    def is_down(self, neighbour: str) -> bool:
        return neighbour not in self.link_of

    @property
    def may_withdraw(self) -> bool:
        """False while there is a cycle, which is soon cut."""
        return self.ends_withholding or not self.reach.has_cycle

    def count_withheld(self, passed_ns: int) -> None:
        """So much time has passed: once in a while all is withdrawn that has to be."""
        self.withheld_ns = self.withheld_ns + passed_ns if self.reach.has_cycle else 0
        if self.withheld_ns >= WITHHELD_GRACES_MAX * self.options.cycle_grace_ns:
            self.ends_withholding, self.withheld_ns = True, 0

    def places_told(self, brokers: Iterable[str]) -> None:
        """What had to wait for that is looked at again."""
        for broker in brokers:
            self.subscriptions.look_again(self.untold.pop(broker, ()))

    def table(self, name: str) -> RoutingTable:
        return self.subscriptions if name == SUBSCRIPTIONS else self.advertisements

    def set_live(self, neighbour: str, *, is_live: bool) -> None:
        """Its tables are complete, or it is not connected any more."""
        for table in (self.advertisements, self.subscriptions):
            table.set_live(neighbour, is_live=is_live)

    def ways_changed(self, brokers: Collection[str]) -> None:
        """Other ways lead to these brokers than before, or none."""
        for table in (self.advertisements, self.subscriptions):
            table.ways_changed(brokers)

    def put(self, name: str, neighbour: str, key: EntryKey, text: str, wanted: Filter) -> None:
        """The neighbour says an entry."""
        table = self.table(name)
        if table.text_from(neighbour, key) != text:
            table.put(neighbour, key, text, wanted)
            self._save(_entry_row(name, neighbour, key), text.encode())

    def take(self, name: str, neighbour: str, key: EntryKey) -> None:
        """The neighbour does not say it any more."""
        table = self.table(name)
        if table.text_from(neighbour, key) is not None:
            table.take(neighbour, key)
            self._save(_entry_row(name, neighbour, key), None)

    def save_neighbour(self, neighbour: str) -> None:
        known = self.neighbours.get(neighbour)
        row = None if known is None else _encode(known)
        self._save(f"{NEIGHBOURS}/{neighbour}", row)

    def set_token(self, broker: str, token: str) -> None:
        """This broker was given it, to prove to that one who it is."""
        if broker not in self.tokens and len(self.tokens) >= 2 * self.options.brokers_max:
            oldest = next((each for each in self.tokens if each not in self.neighbours), None)
            if oldest is not None:
                del self.tokens[oldest]
                self._save(f"{TOKENS}/{oldest}", None)
        self.tokens[broker] = token
        self._save(f"{TOKENS}/{broker}", token.encode())

    def add_behind(self, neighbour: str, brokers: Iterable[str]) -> None:
        """These are reached through the neighbour. Of those that are not any more, the oldest go
        when there are more than may be behind one neighbour."""
        behind = self.behind.setdefault(neighbour, {})
        for broker in brokers:
            if broker != self.own.broker and broker not in behind:
                behind[broker] = None
                self._save(_behind_row(neighbour, broker), b"")
        too_many = len(behind) - 1 - self.options.brokers_per_neighbour_max
        if too_many > 0:
            there = self.reach.behind(neighbour)
            lost = [broker for broker in behind if broker not in there and broker != neighbour]
            self.remove_behind(neighbour, lost[:too_many])

    def remove_behind(self, neighbour: str, brokers: Iterable[str]) -> None:
        """These are reached in another way, or forgotten."""
        behind = self.behind.get(neighbour, {})
        for broker in brokers:
            if broker in behind:
                del behind[broker]
                self._save(_behind_row(neighbour, broker), None)
        if not behind:
            self.behind.pop(neighbour, None)

    def holds_no_more(self, broker: str) -> None:
        """It is gone for good: if it comes back, subscriptions begin there again."""
        if broker not in self.holding:
            return
        self.holding.discard(broker)
        for entry in self.subscriptions.entries.values():
            if broker in entry.reached:
                entry.reached = {each: at for each, at in entry.reached.items() if each != broker}

    def set_forgotten(self, broker: str, now_ns: int | None) -> None:
        """None: it is there again."""
        if now_ns is None:
            if self.forgotten.pop(broker, None) is not None:
                self._save(f"{FORGOTTEN}/{broker}", None)
            return
        self.forgotten[broker] = now_ns
        self._save(f"{FORGOTTEN}/{broker}", b"%d" % now_ns)

    def _save(self, key: str, value: bytes | None) -> None:
        self.effects.append(Save(key, value))

    def restore(self, rows: Mapping[str, bytes], now_ns: int) -> None:
        """Take back what was saved before this start. Nobody is connected yet."""
        for row, value in sorted(rows.items()):
            name, _, rest = row.partition("/")
            if name == NEIGHBOURS:
                known = self.neighbours[rest] = _decode(value)
                if known.gone_ns is None:
                    known.gone_ns = now_ns
                known.seen_ns = min(known.seen_ns, now_ns)  # the clock may have been ahead
                self.add_behind(rest, known.behind)
                known.behind = ()
            elif name == BEHIND:
                neighbour, broker = rest.split("/")
                self.behind.setdefault(neighbour, {})[broker] = None
            elif name == FORGOTTEN:
                self.forgotten[rest] = min(int(value), now_ns)
            elif name == TOKENS:
                self.tokens[rest] = value.decode()
            else:
                neighbour, origin, entry_id = rest.split("/", 2)
                text = value.decode()
                try:
                    wanted = read_filter(text)
                except TocsinError:
                    continue  # a version that is gone could read it; its neighbour says it again
                self.table(name).put(neighbour, (origin, entry_id), text, wanted)
        for neighbour in self.neighbours:
            self.save_neighbour(neighbour)


def _behind_row(neighbour: str, broker: str) -> str:
    return f"{BEHIND}/{neighbour}/{broker}"


def _entry_row(name: str, neighbour: str, key: EntryKey) -> str:
    assert neighbour != OWN
    return f"{name}/{neighbour}/{key[0]}/{key[1]}"  # only the last may have a slash in it
