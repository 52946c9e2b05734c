"""Plain peers for the tests of the product: what they measure, and how strictly they read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TypeVar

from minimal_consumer import PlainArchive
from minimal_messages import NotInThePaper, Value
from minimal_producer import EventName, Measure, PlainProducer

WAIT_S = 10.0
OWN = "urn:example:beamline"
FAST, SLOW = ("0.02", "sec"), ("10", "min")
Peer = TypeVar("Peer", PlainProducer, PlainArchive)


def load(parameters: Mapping[str, Value]) -> Mapping[str, Value]:
    return {"Load1": Value("1.5", accuracy="+/-0.1"), "HostName": Value("foo.gov")}


def dark(parameters: object) -> Mapping[str, Value]:
    raise RuntimeError("the shutter is closed")


MEASURES: Mapping[str | EventName, Measure] = {
    "UptimeCPULoad": load,
    ("Current", OWN): load,
    "Dark": dark,
}


@contextlib.contextmanager
def strict(peer: Peer) -> Iterator[Peer]:
    """A peer that hangs up on what is not in the paper, and may then be asked in plainer words."""
    try:
        yield peer
    finally:
        with contextlib.suppress(NotInThePaper):
            peer.close()
