"""Router: what one broker of a tree decides about links, subscriptions and advertisements.

Inputs and the time in, effects out. A connection is named by a number of whoever runs it, and a
neighbour by its broker id. Events do not come by here: the broker reads its log for each neighbour
and sends it what passes its filters (`NeighbourFilter`), aside from events that came from there.
"""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.errors import BadLinkMessage, LinkRefused, TocsinError
from tocsin.event.filter import EVERYTHING, Filter
from tocsin.event.filter_text import format_filter
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.routing import departures, handshake
from tocsin.overlay.routing.effects import (
    CloseLink,
    Effect,
    EntryKey,
    NeighbourForgotten,
    NeighbourUp,
    Send,
)
from tocsin.overlay.routing.entries import forget_refused, take_entry, take_refused
from tocsin.overlay.routing.exchange import send_next_piece, send_table
from tocsin.overlay.routing.links import (
    Identity,
    Link,
    Phase,
    cycle_error,
    out_of_turn,
)
from tocsin.overlay.routing.offers import forgive
from tocsin.overlay.routing.options import CheckEntry, RoutingOptions, take_any_entry
from tocsin.overlay.routing.places import receive_kept, say_kept
from tocsin.overlay.routing.reach import edge
from tocsin.overlay.routing.room import check_room, ignore
from tocsin.overlay.routing.state import (
    ADVERTISEMENTS,
    SUBSCRIPTIONS,
    RouterState,
    read_filter,
)
from tocsin.overlay.routing.table import OWN, UNCOVERED_AT_ONCE
from tocsin.overlay.routing.updates import (
    answer_held,
    receive_reached,
    send_updates,
)
from tocsin.overlay.routing.views import RoutingView, view_of
from tocsin.wire.link.messages import (
    FILTER_CHARS_MAX,
    PROTOCOL_VERSION,
    Acknowledge,
    Advertise,
    Behind,
    Bye,
    Control,
    Events,
    Forget,
    HandedOver,
    Handover,
    Heartbeat,
    HeartbeatReply,
    Hello,
    Ignored,
    IssueToken,
    Message,
    NotStored,
    PlacesKept,
    Reached,
    Refuse,
    Resume,
    Serves,
    Subscribe,
    Synced,
    TokenKept,
    Unadvertise,
    Unsubscribe,
    Welcome,
)


class Router:
    """The routing tables of one broker, and its links."""

    def __init__(self, own: Identity, options: RoutingOptions | None = None) -> None:
        self.broker = own.broker
        self.check_entry: CheckEntry = take_any_entry  # of neighbours
        self._state = RouterState(own, options or RoutingOptions())
        self.reach = self._state.reach
        self.way_to = self.reach.way_to  # the neighbour through which a broker is reached
        for number, text in enumerate(self._state.options.advertises):
            key = (own.broker, str(number))
            self._state.advertisements.put(OWN, key, text, read_filter(text))
        send_updates(self._state)
        self._cycle_since_ns: int | None = None
        self._ticked_ns: int | None = None

    def restore(self, rows: Mapping[str, bytes], now_ns: int) -> list[Effect]:
        """Take back the rows that were saved before this start."""
        self._state.restore(rows, now_ns)
        return self._done(now_ns)

    # Subscriptions of this broker's own clients

    def local_subscribe(self, subscription: str, wanted: Filter, now_ns: int) -> list[Effect]:
        """A client wants this. RoutingTableFull if there is no room."""
        state = self._state
        key = (self.broker, subscription)
        if key not in state.subscriptions.entries:
            check_room(state, SUBSCRIPTIONS)
        text = format_filter(wanted)
        if len(text) > FILTER_CHARS_MAX:
            # Too long for a message. Its broker asks the filter anyway, so more may come.
            text, wanted = "", EVERYTHING
        state.subscriptions.put(OWN, key, text, wanted)
        return self._done(now_ns)

    def local_unsubscribe(self, subscription: str, now_ns: int) -> list[Effect]:
        """The client does not want it any more."""
        self._state.subscriptions.take(OWN, (self.broker, subscription))
        return self._done(now_ns)

    # Links

    def link_opened(
        self,
        link: int,
        now_ns: int,
        *,
        is_outgoing: bool,
        replacing: str = "",
        nonce: str = "-",
        token: str = "",
    ) -> list[Effect]:
        """A connection is there. `replacing` names a neighbour, of several standby peers, that is
        left if this one accepts. `nonce` and `token` cannot be guessed; the neighbour is given the
        token to prove later who it is, if it has none."""
        state = self._state
        behind = state.reach.paths(without=(replacing,))
        state.links[link] = Link(link, is_outgoing, replacing, nonce, token, sent_behind=behind)
        own = state.own
        whom = (PROTOCOL_VERSION, own.broker, own.log, own.data_format, own.agent, own.instance)
        self._send(state.links[link], Hello(*whom, behind, replacing, nonce))
        return self._done(now_ns)

    def link_closed(self, link: int, now_ns: int) -> list[Effect]:
        """A connection has ended, for whatever reason."""
        if (ended := self._state.links.get(link)) is not None:
            handshake.drop(self._state, ended, now_ns)
        return self._done(now_ns)

    def send_next_piece(self, link: int, now_ns: int) -> list[Effect]:
        """The connection has taken the one before it (`PieceSent`)."""
        if (at := self._state.links.get(link)) is not None:
            send_next_piece(self._state, at)
            self._complete(at)
        return self._done(now_ns)

    def receive(self, link: int, message: Message, now_ns: int) -> list[Effect]:
        """A message has come. Those about events, and heartbeats, are for others to handle."""
        self._state.now_ns = now_ns
        if (at := self._state.links.get(link)) is not None:
            try:
                self._receive(at, message, now_ns)
            except BadLinkMessage as error:
                handshake.refuse(self._state, at, error, now_ns)
        return self._done(now_ns)

    def rights_changed(self, link: int, now_ns: int) -> list[Effect]:
        """Whoever is at this link may do other things than before."""
        if (at := self._state.links.get(link)) is not None:
            self._state.now_ns = now_ns
            take_refused(self._state, at, self.check_entry)
        return self._done(now_ns)

    def has_refused(self, link: int) -> bool:
        """True if entries wait for a right of whoever is at this link."""
        at = self._state.links.get(link)
        return at is not None and bool(at.refused)

    def refuse(self, link: int, error: TocsinError, now_ns: int) -> list[Effect]:
        """What came on this connection is invalid, or may not be."""
        if (at := self._state.links.get(link)) is not None:
            handshake.refuse(self._state, at, error, now_ns)
        return self._done(now_ns)

    def _receive(self, link: Link, message: Message, now_ns: int) -> None:
        state = self._state
        match message:
            case Hello():
                handshake.greet(state, link, message, now_ns)
            case Refuse(code, reason):
                handshake.drop(self._state, link, now_ns)
                error = LinkRefused.by(code, reason)
                self._state.effects.append(CloseLink(link.number, error))
            case Welcome(proof) if link.phase is Phase.GREETED:
                handshake.welcomed(state, link, proof, now_ns)
            case Heartbeat() | HeartbeatReply() | Ignored() | Bye():
                pass
            case _ if link.phase < Phase.UP:
                raise out_of_turn(link, message)
            case Events() | Acknowledge() | NotStored() | Resume() | Handover() | HandedOver():
                pass
            case Control() | Serves():
                pass
            case _:
                self._receive_entry(link, message, now_ns)

    def _receive_entry(self, link: Link, message: Message, now_ns: int) -> None:
        state, neighbour = self._state, link.neighbour
        match message:
            case Advertise(origin, entry_id, text):
                link.unnamed_advertisements.discard((origin, entry_id))
                self._take_entry(link, ADVERTISEMENTS, (origin, entry_id), text)
            case Subscribe(origin, entry_id, text):
                link.unnamed_subscriptions.discard((origin, entry_id))
                self._take_entry(link, SUBSCRIPTIONS, (origin, entry_id), text)
            case Unadvertise(origin, entry_id):
                forget_refused(link, ADVERTISEMENTS, (origin, entry_id))
                state.take(ADVERTISEMENTS, neighbour, (origin, entry_id))
            case Unsubscribe(origin, entry_id):
                forget_refused(link, SUBSCRIPTIONS, (origin, entry_id))
                state.take(SUBSCRIPTIONS, neighbour, (origin, entry_id))
            case Synced(table):
                self._synced(link, table)
            case Behind(added, removed):
                departures.receive_behind(state, link, added, removed)
            case PlacesKept(brokers, there):
                receive_kept(state, link, brokers, there)
            case Reached(origin, entry_id, brokers):
                wrong = receive_reached(state, link, (origin, entry_id), brokers)
                if wrong is not None:
                    ignore(state, link, wrong)
            case IssueToken(token):
                state.set_token(neighbour, token)
                self._send(link, TokenKept())
            case TokenKept() if state.neighbours[neighbour].token:
                state.neighbours[neighbour].has_token = True
                state.save_neighbour(neighbour)
            case Forget(broker, age_ns):
                departures.receive_forget(state, broker, now_ns - age_ns, now_ns, neighbour)
            case _:
                raise out_of_turn(link, message)

    def _synced(self, link: Link, table: str) -> None:
        state = self._state
        if table == "advertisements" and link.phase is Phase.UP:
            for key in sorted(link.unnamed_advertisements):
                state.take(ADVERTISEMENTS, link.neighbour, key)
            link.unnamed_advertisements.clear()
            link.phase = Phase.SUBSCRIBING
            send_table(state, link, "subscriptions")
        elif table == "subscriptions" and link.phase is Phase.SUBSCRIBING and not link.has_all:
            for key in sorted(link.unnamed_subscriptions):
                state.take(SUBSCRIPTIONS, link.neighbour, key)
            link.unnamed_subscriptions.clear()
            link.has_all = True
            self._complete(link)
        else:
            raise out_of_turn(link, Synced("advertisements"))

    def _complete(self, link: Link) -> None:
        """If both sides have each other's tables: what comes after them may go."""
        state = self._state
        if link.has_all and not link.remaining and link.phase is Phase.SUBSCRIBING:
            link.phase = Phase.COMPLETE
            state.set_live(link.neighbour, is_live=True)
            log = state.neighbours[link.neighbour].log
            state.effects.append(NeighbourUp(link.neighbour, link.number, log))
            departures.arrived(state, state.reach.complete(link.neighbour))
            say_kept(state, link, state.reach.behind(link.neighbour))

    def _take_entry(self, link: Link, name: str, key: EntryKey, text: str) -> None:
        take_entry(self._state, link, name, key, text, self.check_entry)

    # Time, and brokers that are gone for good

    def tick(self, now_ns: int, steady_ns: int | None = None) -> list[Effect]:
        """To be called every second or so: cuts cycles, forgets who is away for too long.

        `steady_ns` is by a clock that nobody sets, and ages are counted by it; without it, `now_ns`
        is one.
        """
        state = self._state
        steady_ns = now_ns if steady_ns is None else steady_ns
        passed_ns = 0 if self._ticked_ns is None else max(0, steady_ns - self._ticked_ns)
        self._ticked_ns = steady_ns
        since = self._cycle_since_ns
        if since is not None and now_ns - since >= state.options.cycle_grace_ns:
            self._cut_cycle(now_ns)
        state.has_looked_at_all = False
        state.count_withheld(passed_ns)
        departures.count_ages(state, passed_ns)
        for link in state.links.values():
            forgive(link, passed_ns / NS_PER_S)
        departures.forget_expired(state, now_ns)
        answer_held(state)
        return self.go_on(now_ns)

    @property
    def has_more(self) -> bool:
        """True while something is left over that was too much for one turn: see `go_on`."""
        return bool(self._state.advertisements.leaving or self._state.subscriptions.leaving)

    def go_on(self, now_ns: int) -> list[Effect]:
        """A part of what was too much for one turn."""
        for table in (self._state.advertisements, self._state.subscriptions):
            table.uncover_some(UNCOVERED_AT_ONCE)
        return self._done(now_ns)

    def _cut_cycle(self, now_ns: int) -> None:
        state = self._state
        victim = state.reach.edge_to_cut()
        for link in list(state.link_of.values()):
            if victim == edge(self.broker, link.neighbour):
                error = cycle_error(link.neighbour, self.broker, link.neighbour, None)
                handshake.refuse(self._state, link, error, now_ns)
                self._cycle_since_ns = now_ns  # a chance for others to hear of it

    def forget(self, broker: str, now_ns: int) -> list[Effect]:
        """A broker is gone for good. NoSuchBroker, or BrokerStillThere if it is connected."""
        departures.forget(self._state, broker, now_ns)
        return self._done(now_ns)

    # What others say, and ask

    def ignored(self, neighbour: str, error: TocsinError) -> list[Effect]:
        """An advertisement of a resource that came from there is not taken."""
        link = self._state.link_of.get(neighbour)
        if link is not None:
            ignore(self._state, link, error)
        return self._state.take_effects()

    def is_behind(self, broker: str, neighbour: str) -> bool:
        """True if events of that broker come from this neighbour, and so are not sent to it."""
        return broker in self._state.reach.behind(neighbour)

    def neighbour(self, link: int) -> str | None:
        """Who is at the other end, once both sides have accepted each other."""
        at = self._state.links.get(link)
        return at.neighbour if at is not None and at.phase >= Phase.UP else None

    def neighbours(self) -> list[str]:
        """All that are or were connected, and are not forgotten."""
        return list(self._state.neighbours)

    def reached(self, subscription: str) -> dict[str, int] | None:
        """The other brokers at which a client's subscription holds, and when that was heard here;
        None if there is no such subscription."""
        entry = self._state.subscriptions.entries.get((self.broker, subscription))
        return None if entry is None else dict(sorted(entry.reached.items()))

    def is_forgotten(self, broker: str) -> bool:
        return broker in self._state.forgotten

    def wanted_by(self, neighbour: str) -> dict[EntryKey, Filter]:
        """What a neighbour wants: the sum of all `NeighbourFilter` about it."""
        entries = self._state.subscriptions.by_hop.get(neighbour, {})
        return {key: entry.filter for key, entry in entries.items()}

    def sizes(self) -> tuple[int, int]:
        """How many advertisements and subscriptions there are in the tables."""
        return len(self._state.advertisements), len(self._state.subscriptions)

    def tables(self, rows_max: int | None = None) -> RoutingView:
        """Everything as plain data for people, or the first rows of each table."""
        return view_of(self._state, rows_max)

    def _send(self, link: Link, message: Message) -> None:
        self._state.effects.append(Send(link.number, message))

    def _done(self, now_ns: int) -> list[Effect]:
        if self.has_more and any(link.remaining for link in self._state.links.values()):
            # Whoever is being sent a table is told in it of all that what has left stood for.
            self._state.advertisements.uncover_all()
            self._state.subscriptions.uncover_all()
        self._state.now_ns = now_ns
        send_updates(self._state)
        self._state.ends_withholding = False
        if not self._state.reach.has_cycle:
            self._cycle_since_ns = None
        elif self._cycle_since_ns is None:
            self._cycle_since_ns = now_ns
        effects = self._state.take_effects()
        # What was kept for a neighbour is handed over before its place in the log goes.
        effects.sort(key=lambda effect: isinstance(effect, NeighbourForgotten))
        return effects
