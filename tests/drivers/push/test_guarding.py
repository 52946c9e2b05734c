"""No event reaches an address that was not judged, however its name is spelled or resolved."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from world import World

from tocsin.broker.delivery.address import parse_address
from tocsin.broker.delivery.outcome import Answered, Failed
from tocsin.broker.delivery.trust import SinkRules
from tocsin.drivers.push.guard import LOOKUPS_KEPT_MAX, Guard
from tocsin.drivers.push.pusher import PushOptions
from tocsin.errors import SinkRefused, TocsinError

OK = b"HTTP/1.1 204 No Content\r\n\r\n"
SPELLINGS = (
    Path(__file__).parents[3]
    / "../shared/data/hostile/payloadsallthethings/Server Side Request Forgery/README.md"
)


def resolver(*answers: list[str]) -> Callable[[str, int], Awaitable[list[str]]]:
    """Answers in turn, the last one for ever."""
    waiting = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return resolve


def guarded(world: World, *trusted: str, allow_private: bool = False, **how: object) -> None:
    world.options = PushOptions(SinkRules(allow_private=allow_private, trusted=trusted))
    world.restart(**how)


def port_of(address: str) -> str:
    return address.split(":")[2].split("/")[0]


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "0x7f.1", "2130706433", "0177.0.0.1", "127.1"),
        *("①②⑦.⓪.⓪.①", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]"),
        *("0.0.0.0", "0", "[::]", "169.254.169.254", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    ],
)
def test_no_spelling_of_a_near_address_gets_through(world: World, host: str) -> None:
    address = world.answering(OK)
    guarded(world)

    outcome = world.push(f"http://{host}:{port_of(address)}/hook")

    assert isinstance(outcome, Failed)
    assert not outcome.reachable
    assert "where no event may be sent" in outcome.reason
    assert world.connections == 0
    assert world.notes[0][0] == "warning"


@pytest.mark.skipif(not SPELLINGS.exists(), reason="the shared corpus of payloads is not here")
def test_no_spelling_of_the_corpus_leads_to_a_near_address(world: World) -> None:
    async def literal(host: str, port: int) -> list[str]:
        # Only what the system reads as an address; no test asks the network for names.
        found = await world.loop.getaddrinfo(host, port, flags=4)  # AI_NUMERICHOST
        return [str(entry[4][0]) for entry in found]

    guard = Guard(world.loop, SinkRules(), literal)
    judged = 0
    for url in sorted(set(re.findall(r"https?://[^\s`\"')]+", SPELLINGS.read_text(), re.I))):
        try:
            allowed = world.loop.run_until_complete(guard.addresses(parse_address(url)))
        except SinkRefused:
            judged += 1
        except (TocsinError, OSError):
            continue
        else:
            assert not {"127.0.0.1", "169.254.169.254", "::1", "0.0.0.0"} & set(allowed), url

    assert judged >= 10


@pytest.mark.parametrize("trusted", ["sink.example", "*.example", "127.0.0.0/8", "127.0.0.1"])
def test_the_operator_may_name_hosts_and_networks(world: World, trusted: str) -> None:
    address = world.answering(OK).replace("127.0.0.1", "sink.example")
    guarded(world, trusted, resolve=resolver(["127.0.0.1"]))

    assert world.push(address) == Answered(204)


def test_a_trailing_dot_changes_nothing(world: World) -> None:
    address = world.answering(OK).replace("127.0.0.1", "SINK.example.")
    guarded(world, resolve=resolver(["127.0.0.1"]))
    assert isinstance(world.push(address), Failed)

    guarded(world, "sink.example", resolve=resolver(["127.0.0.1"]))
    assert world.push(address) == Answered(204)


def test_trusting_one_host_trusts_no_other(world: World) -> None:
    address = world.answering(OK).replace("127.0.0.1", "other.example")
    guarded(world, "sink.example", resolve=resolver(["127.0.0.1"]))

    assert isinstance(world.push(address), Failed)
    assert world.connections == 0


def test_a_broker_for_its_own_machine_still_refuses_metadata_services(world: World) -> None:
    guarded(world, allow_private=True, resolve=resolver(["169.254.169.254"]))

    outcome = world.push("http://innocent.example/hook")

    assert isinstance(outcome, Failed)
    assert "cloud metadata" in outcome.reason


def test_of_many_addresses_only_the_judged_are_used(world: World) -> None:
    address = world.answering(OK).replace("127.0.0.1", "sink.example")
    guarded(world, "127.0.0.1", resolve=resolver(["10.0.0.1", "127.0.0.1", "169.254.169.254"]))

    assert world.push(address) == Answered(204)


def test_a_name_that_leads_elsewhere_the_second_time_gains_nothing(world: World) -> None:
    """Rebinding: the address that was judged is the one that is used, and each one is judged."""
    address = world.answering(b"HTTP/1.1 204 No\r\nconnection: close\r\n\r\n")
    rebound = address.replace("127.0.0.1", "rebind.example")
    guarded(world, "127.0.0.2", resolve=resolver(["127.0.0.2"], ["127.0.0.1"]))

    first = world.push(rebound, timeout_s=1)  # judged fine, and nobody listens there
    world.pusher.guard.close()  # what was looked up is forgotten, as after half a minute
    second = world.push(rebound, timeout_s=1)

    assert isinstance(first, Failed)
    assert "where no event may be sent" not in first.reason
    assert isinstance(second, Failed)
    assert "loopback" in second.reason
    assert world.connections == 0


def test_the_next_address_is_tried_when_the_first_is_dead(world: World) -> None:
    address = world.answering(OK).replace("127.0.0.1", "sink.example")
    guarded(world, "127.0.0.0/8", resolve=resolver(["127.0.0.9", "127.0.0.1"]))

    assert world.push(address) == Answered(204)


def test_a_name_is_looked_up_once_for_many_lanes(world: World) -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        await asyncio.sleep(0.01)
        return ["127.0.0.1"]

    address = world.answering(OK).replace("127.0.0.1", "sink.example")
    guarded(world, "sink.example", resolve=resolve)

    waiting = [world.pushing(address, lane=lane) for lane in range(10)]
    world.loop.run_until_complete(asyncio.gather(*waiting))

    assert asked == ["sink.example"]


def test_a_failed_lookup_is_not_remembered(world: World) -> None:
    failures = [OSError("no such name")]

    async def resolve(host: str, port: int) -> list[str]:
        if failures:
            raise failures.pop()
        return ["127.0.0.1"]

    address = world.answering(OK).replace("127.0.0.1", "sink.example")
    guarded(world, "sink.example", resolve=resolve)

    first, second = world.push(address), world.push(address)

    assert isinstance(first, Failed)
    assert "no such name" in first.reason
    assert second == Answered(204)


def test_a_resolver_that_hangs_is_given_up_in_time(world: World) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        await asyncio.sleep(60)
        return []

    guarded(world, resolve=resolve)

    outcome = world.push("http://sink.example/", timeout_s=0.1)

    assert outcome == Failed("no connection to the sink in time")


def test_what_is_remembered_of_names_is_bounded(world: World) -> None:
    guard = Guard(world.loop, SinkRules(allow_private=True), resolver(["127.0.0.1"]))

    async def ask_many() -> None:
        for number in range(LOOKUPS_KEPT_MAX + 50):
            await guard.addresses(parse_address(f"http://h{number}.example/"))

    world.loop.run_until_complete(ask_many())

    assert len(guard._lookups) == LOOKUPS_KEPT_MAX
