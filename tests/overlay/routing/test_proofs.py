"""Who claims to be a known neighbour proves it, by a token that it was given at first."""

from __future__ import annotations

from overlay.routing.overlay_sim import Overlay, S
from tocsin.overlay.routing.effects import CloseLink, Effect, Save, Send
from tocsin.overlay.routing.links import Identity
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m


class Side:
    """A broker, what it has saved, and the messages that it has sent to the other side."""

    def __init__(self, broker: str, rows: dict[str, bytes] | None = None, **limits: int) -> None:
        self.broker = broker
        identity = Identity(broker, f"log-{broker}", m.DATA_FORMAT, "test/1")
        self.router = Router(identity, RoutingOptions(**limits))
        self.rows = dict(rows or {})
        self.errors: list[str] = []
        self.sent: list[m.Message] = []
        self.do(self.router.restore(self.rows, 0))

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(_, message):
                    self.sent.append(message)
                case CloseLink(_, error) if error is not None:
                    self.errors.append(error.code)
                case Save(key, None):
                    self.rows.pop(key, None)
                case Save(key, bytes() as value):
                    self.rows[key] = value
                case _:
                    pass

    def receive(self, link: int, *messages: m.Message) -> None:
        for message in messages:
            self.do(self.router.receive(link, message, link))

    def take_sent(self) -> list[m.Message]:
        sent, self.sent = self.sent, []
        return sent

    def state(self, broker: str) -> str | None:
        found = [e.state for e in self.router.tables().neighbours if e.broker == broker]
        return found[0] if found else None


def connect(dialler: Side, other: Side, link: int, *, until: type[m.Message] | None = None) -> None:
    """The messages of both, until nobody has one to send, or one of this kind has been lost."""
    for side in (dialler, other):
        nonce, token = f"nonce-{side.broker}-{link}", f"token-{side.broker}-{link}"
        is_dialler = side is dialler
        opened = side.router.link_opened(
            link, link, is_outgoing=is_dialler, nonce=nonce, token=token
        )
        side.do(opened)
    while dialler.sent or other.sent:
        for side, receiver in ((dialler, other), (other, dialler)):
            for message in side.take_sent():
                if until is not None and isinstance(message, until):
                    disconnect(link, dialler, other)
                    return
                receiver.receive(link, message)


def disconnect(link: int, *sides: Side) -> None:
    for side in sides:
        side.do(side.router.link_closed(link, link))
        side.take_sent()


def neighbours() -> tuple[Side, Side]:
    """Two that have been linked, of which B has asked for something."""
    a, b = Side("A"), Side("B")
    connect(b, a, 1)
    assert a.state("B") == b.state("A") == "up"
    a.receive(1, m.Subscribe("B", "s", "a > 5"))
    disconnect(1, a, b)
    return a, b


def test_two_that_have_met_link_again_whoever_connects_and_whoever_starts_anew() -> None:
    a, b = neighbours()

    connect(a, b, 2)
    disconnect(2, a, b)
    again = Side("A", a.rows)
    connect(b, again, 3)

    assert again.state("B") == b.state("A") == "up"
    assert b.errors == again.errors == []


def test_a_liar_with_the_id_of_a_neighbour_that_is_away_is_refused_and_takes_nothing() -> None:
    a, b = neighbours()
    liar = Side("B")

    connect(liar, a, 2)

    assert a.errors == ["T811"]
    assert a.state("B") == "down"
    assert list(a.router.wanted_by("B")) == [("B", "s")]
    connect(b, a, 3)
    assert a.state("B") == "up"


def test_a_liar_does_not_displace_a_neighbour_that_is_connected() -> None:
    a, b = neighbours()
    connect(b, a, 2)

    connect(Side("B"), a, 3)
    b.receive(2, m.Behind({}))

    assert a.errors == ["T811"]
    assert a.state("B") == "up"


def test_a_broker_that_connects_to_a_liar_with_a_known_id_refuses_it() -> None:
    a, _ = neighbours()
    liar = Side("B")

    connect(a, liar, 2)

    assert a.errors == ["T811"]
    assert a.state("B") == "down"


def test_a_proof_that_was_heard_on_one_connection_is_worth_nothing_on_another() -> None:
    a, b = neighbours()
    b.do(b.router.link_opened(2, 2, is_outgoing=True, nonce="n2"))
    [hello] = b.take_sent()
    a.do(a.router.link_opened(2, 2, is_outgoing=False, nonce="m2"))
    b.receive(2, *a.take_sent())
    [proof] = b.take_sent()
    assert isinstance(proof, m.Welcome)
    assert proof.proof

    a.do(a.router.link_opened(3, 3, is_outgoing=False, nonce="m3"))
    a.receive(3, hello, proof)

    assert a.errors == ["T811"]


def test_a_proof_that_was_given_to_one_who_connected_does_not_serve_to_connect() -> None:
    """A liar connects to B as A, with the nonce that A sent it as B."""
    a, b = neighbours()
    a.do(a.router.link_opened(2, 2, is_outgoing=False, nonce="of-a"))
    [of_a] = a.take_sent()
    b.do(b.router.link_opened(2, 2, is_outgoing=False, nonce="of-b"))
    [of_b] = b.take_sent()

    b.receive(2, of_a)
    [proof] = b.take_sent()
    a.receive(2, of_b, proof)

    assert a.errors == ["T811"]


def test_a_token_that_was_lost_on_its_way_is_given_again() -> None:
    for lost in (m.IssueToken, m.TokenKept):
        a, b = Side("A"), Side("B")

        connect(b, a, 1, until=lost)
        connect(b, a, 2)
        disconnect(2, a, b)
        connect(Side("B"), a, 3)
        connect(b, a, 4)

        assert a.errors == ["T811"], "of the third connection alone"
        assert a.state("B") == "up"


def test_a_broker_that_was_forgotten_is_taken_for_a_new_one_and_knows_the_others_still() -> None:
    a, b = neighbours()
    a.do(a.router.forget("B", 5))

    connect(b, a, 6)

    assert a.errors == b.errors == []
    assert a.state("B") == b.state("A") == "up"


def test_an_operator_can_let_a_broker_in_that_has_lost_its_token() -> None:
    a, _ = neighbours()
    restored = Side("B")
    connect(restored, a, 2)
    before = a.errors[:]

    a.do(a.router.forget("B", 5))
    connect(restored, a, 6)

    assert before == ["T811"]
    assert a.state("B") == "up"


def test_tokens_of_brokers_that_are_forgotten_do_not_pile_up() -> None:
    a = Side("A", brokers_max=5)
    for number in range(1, 40):
        b = Side(f"B{number}")
        connect(b, a, number)
        disconnect(number, a, b)
        a.do(a.router.forget(b.broker, number))

    assert len([row for row in a.rows if row.startswith("t/")]) <= 10


def test_brokers_that_crash_at_any_time_know_each_other_again() -> None:
    overlay = Overlay(1)
    overlay.add("A")
    overlay.add("B")
    overlay.dials.append(("A", "B"))
    for _ in range(30):
        overlay.run(overlay.random.randrange(300_000_000))
        broker = overlay.random.choice("AB")
        overlay.crash(broker)
        overlay.restart(broker)
    overlay.run(30 * S)

    assert overlay.up() == {("A", "B")}
