"""An archive that a test plays, and its replies."""

from __future__ import annotations

import re
from collections.abc import Callable

from gma_peers import PROTOCOL, RawPeer


def requested(request: str) -> tuple[str, str, str]:
    """The number, the subscription's id, and the name of what is asked for."""
    number = request.partition('requestID="')[2].partition('"')[0]
    identity = request.partition("<SubscriptionID>")[2].partition("<")[0]
    name = re.search(r"</SubscriptionID><(\w+)", request)
    return number, identity, name[1] if name else ""


def reply_to(request: str, said: str) -> str:
    kind = request[1:].partition("Request")[0]
    number = requested(request)[0]
    return f'<{kind}Reply xmlns="{PROTOCOL}" requestID="{number}">{said}</{kind}Reply>'


def success(request: str) -> str:
    name = requested(request)[2]
    return reply_to(request, f"<Return>Success</Return><SubscriptionID>c-{name}</SubscriptionID>")


def failure(request: str, detail: str = "not this one") -> str:
    return reply_to(request, f"<Return>Failure</Return><ReturnDetail>{detail}</ReturnDetail>")


class Archive:
    """A consumer of the paper: what it is asked on each connection, and what `choose` says."""

    def __init__(self, choose: Callable[[str, int], str | None]) -> None:
        self._choose = choose
        self.calls: list[list[str]] = []
        self.ends = 0

    def __call__(self, peer: RawPeer) -> None:
        received: list[str] = []
        self.calls.append(received)
        agreed = 0
        try:
            while message := peer.hear():
                received.append(message)
                if message.startswith("<Subscribe"):
                    said = self._choose(message, agreed)
                    if said is None:
                        peer.close()
                        return
                    agreed += "Success" in said
                    peer.say(said)
                elif message.startswith("<Unsubscribe"):
                    peer.say(reply_to(message, "<Return>Success</Return>"))
        finally:
            self.ends += 1

    def received(self, beginning: str) -> list[str]:
        return [each for call in self.calls for each in call if each.startswith(beginning)]
