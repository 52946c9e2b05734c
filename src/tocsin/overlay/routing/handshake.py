"""The handshake: who may be a neighbour, once it has said and proved who it is; and its end."""

from __future__ import annotations

from tocsin.errors import TocsinError
from tocsin.overlay.routing import departures
from tocsin.overlay.routing.effects import CloseLink, Send
from tocsin.overlay.routing.exchange import send_table
from tocsin.overlay.routing.links import (
    Link,
    Phase,
    loser,
    out_of_turn,
    paths_without,
    refusal_of,
    too_many_brokers,
    twice_error,
)
from tocsin.overlay.routing.places import forget_link
from tocsin.overlay.routing.proofs import is_proved, not_proved, proof_of
from tocsin.overlay.routing.room import take_brokers
from tocsin.overlay.routing.state import Neighbour, RouterState
from tocsin.wire.link.messages import (
    Bye,
    Forget,
    Hello,
    IssueToken,
    Message,
    Refuse,
    Welcome,
)


def greet(state: RouterState, link: Link, hello: Hello, now_ns: int) -> None:
    """Who it is has still to be proved: nothing changes for its neighbours until then."""
    if link.phase is not Phase.OPENED:
        raise out_of_turn(link, hello)
    link.neighbour, link.hello = hello.broker, hello
    refusal = _refusal(state, link, hello)
    if refusal is not None:
        refuse(state, link, refusal, now_ns)
        return
    link.phase = Phase.GREETED
    own, other = link.ends(state.own.broker)
    token = state.tokens.get(hello.broker, "")
    _send(state, link, Welcome(proof_of(token, own, other, is_dialler=link.is_outgoing)))


def _refusal(state: RouterState, link: Link, hello: Hello) -> TocsinError | None:
    maximum = state.options.brokers_max
    refusal = refusal_of(hello, state.own, state.reach, maximum, link.replacing)
    if hello.broker not in state.neighbours and len(state.neighbours) >= maximum:
        refusal = refusal or too_many_brokers(maximum)
    other = state.link_of.get(hello.broker)
    if refusal is None and other is not None and loser(link, other, state.own.broker) is link:
        refusal = twice_error(hello.broker)
    return refusal


def welcomed(state: RouterState, link: Link, proof: str, now_ns: int) -> None:
    hello = link.hello
    assert hello is not None
    own, other = link.ends(state.own.broker)
    known = state.neighbours.get(hello.broker)
    refusal = _refusal(state, link, hello)
    if known is not None and known.has_token:
        is_dialler = not link.is_outgoing
        if not is_proved(proof, known.token, other, own, is_dialler=is_dialler):
            refusal = not_proved(hello.broker, state.own.broker)
    if refusal is not None:
        refuse(state, link, refusal, now_ns)
        return
    _add_neighbour(state, link, hello, now_ns)
    _begin(state, link, now_ns)


def _add_neighbour(state: RouterState, link: Link, hello: Hello, now_ns: int) -> None:
    before = state.link_of.get(hello.broker)
    if before is not None:
        refuse(state, before, twice_error(hello.broker), now_ns)
    state.link_of[hello.broker] = link
    known = state.neighbours.get(hello.broker) or Neighbour(hello.log, None)
    known.log, known.gone_ns = hello.log, None
    known.seen_ns, known.away_ns = now_ns, 0
    known.token = known.token or link.token
    state.neighbours[hello.broker] = known
    state.save_neighbour(hello.broker)
    behind = paths_without(hello, state.own.broker, link.replacing)
    behind = take_brokers(state, link, behind)
    state.reach.add_neighbour(hello.broker, behind)
    state.add_behind(hello.broker, [hello.broker, *behind])
    state.ways_changed([hello.broker, *behind])
    link.hello = None
    if known.token and not known.has_token:
        _send(state, link, IssueToken(known.token))


def _begin(state: RouterState, link: Link, now_ns: int) -> None:
    """The link is up: tell the neighbour what it may come by here."""
    neighbour = link.neighbour
    left = state.link_of.get(link.replacing)
    if left is not None:
        _send(state, left, Bye("another peer is used"))
        state.effects.append(CloseLink(left.number, None))
        drop(state, left, now_ns)
    link.phase = Phase.UP
    link.unnamed_advertisements = set(state.advertisements.rows_from(neighbour))
    link.unnamed_subscriptions = set(state.subscriptions.rows_from(neighbour))
    for broker in sorted(state.forgotten):
        age_ns = max(0, now_ns - state.forgotten[broker])
        _send(state, link, Forget(broker, age_ns))
    send_table(state, link, "advertisements")


def refuse(state: RouterState, link: Link, error: TocsinError, now_ns: int) -> None:
    _send(state, link, Refuse(error.code, error.problem[:1024]))
    state.effects.append(CloseLink(link.number, error))
    drop(state, link, now_ns)


def drop(state: RouterState, link: Link, now_ns: int) -> None:
    neighbour = link.neighbour
    state.links.pop(link.number, None)
    if state.link_of.get(neighbour) is not link:
        return
    del state.link_of[neighbour]
    forget_link(state, link)
    departures.left(state, neighbour, now_ns)


def _send(state: RouterState, link: Link, message: Message) -> None:
    state.effects.append(Send(link.number, message))
