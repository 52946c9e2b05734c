"""The dialler: which connection its peers are said to have, whatever ends late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from manual_runtime import ManualRuntime
from tocsin.errors import PeerFailed, TocsinError
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.routing.peers import PeerOptions
from tocsin.services.link.dialler import Dialler
from tocsin.services.link.transport import Receiver, Transport

FIRST, STANDBY = "first.example:8403", "standby.example:8403"


@dataclass(eq=False)
class Dialled:
    """A connection, as far as the dialler looks at it."""

    peer_address: str
    broker: str = ""
    error: TocsinError | None = None


@dataclass
class Net:
    """Who can be reached now."""

    there: set[str] = field(default_factory=set)
    opened: list[Dialled] = field(default_factory=list)

    async def connect(self, address: str, opened: Callable[[Transport], Receiver]) -> None:
        if address not in self.there:
            raise PeerFailed(f"{address} does not answer", remedy="Is it running?")
        opened(cast(Any, None))

    def open(self, transport: object, address: str, leaving: str) -> Any:
        self.opened.append(Dialled(address))
        return self.opened[-1]


def test_the_late_end_of_a_connection_that_was_left_is_not_that_of_the_next_with_its_peer() -> None:
    runtime, net = ManualRuntime(), Net({STANDBY})
    options = PeerOptions(NS_PER_S, NS_PER_S, return_ns=5 * NS_PER_S)
    setting = (f"{FIRST},{STANDBY}",)
    dialler = Dialler(runtime, net, setting, options, net.open, lambda connection: False)
    dialler.start()
    runtime.settle()
    [left] = net.opened
    dialler.linked(cast(Any, left))
    net.there = {FIRST, STANDBY}
    runtime.pass_s(6)
    [_, first] = net.opened
    dialler.linked(cast(Any, first))  # the standby is left, and that takes a while

    first.error = PeerFailed("the connection broke", remedy="It is made again.")
    dialler.ended(cast(Any, first))
    runtime.settle()
    [_, _, again] = net.opened
    assert again.peer_address == STANDBY
    dialler.ended(cast(Any, left))
    dialler.linked(cast(Any, again))

    [info] = dialler.info()
    assert (info.state, info.used) == ("linked", STANDBY)
    runtime.pass_s(4)
    assert len(net.opened) == 3, "nobody else is dialled meanwhile"
