"""Every client and command of ours, at a real broker that wants everybody to sign in."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from served import ROOT, Served, served
from tocsin.client import (
    AsyncConsumer,
    AsyncPublisher,
    AsyncResources,
    Consumer,
    Publisher,
    Resources,
    WseClient,
    WsntClient,
)
from tocsin.client.blackboard import open_link
from tocsin.client.directory import Directory
from tocsin.client.tracking import Workflow
from tocsin.credentials.lookup import VARIABLES
from tocsin.errors import BrokerRefused, NotSignedIn, SoapRefused, TocsinError
from tocsin.wire.blackboard.messages import Message
from waiting import wait_until

ARRIVAL_S = 15.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_AUTH__MODE": "required"}) as running:
        yield running


@pytest.fixture
def token_file(broker: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The administrator's. Nothing else of this machine's is found."""
    for name in (*VARIABLES, "TOCSIN_BROKER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return str(broker.directory / "admin.token")


def refused(error: TocsinError) -> bool:
    if isinstance(error, BrokerRefused):
        return error.broker_code == NotSignedIn.code
    return isinstance(error, SoapRefused)


def test_publishers_and_consumers(broker: Served, token_file: str) -> None:
    with pytest.raises(BrokerRefused) as error:
        Publisher(broker.url).publish("in/a", {"n": 0})
    assert refused(error.value)
    with Publisher(broker.url, token_file=token_file) as publisher:
        seq = publisher.publish("in/a", {"n": 1})
        assert publisher.publish_many([("in/a", 2), ("in/a", 3)]) == 2
    with Publisher(broker.url, token_file=token_file, batching=True) as batching:
        batching.publish("in/a", {"n": 4})
    for via in ("stream", "box", "push"):
        with Consumer(
            "in/a", via=via, after=seq - 1, broker=broker.url, token_file=token_file,
            timeout_s=ARRIVAL_S,
        ) as consumer:  # fmt: skip
            assert next(consumer).seq == seq


def test_the_same_with_asyncio(broker: Served, token_file: str) -> None:
    async def both() -> tuple[int, int]:
        async with AsyncPublisher(broker.url, token_file=token_file) as publisher:
            seq = await publisher.publish("in/b", 1)
        wanted = AsyncConsumer("in/b", after=seq - 1, broker=broker.url, token_file=token_file)
        async with wanted as events:
            return seq, (await anext(events)).seq

    published, consumed = asyncio.run(asyncio.wait_for(both(), ARRIVAL_S))

    assert published == consumed


@pytest.mark.parametrize("kind", [WseClient, WsntClient])
def test_web_services(
    broker: Served, token_file: str, kind: type[WseClient] | type[WsntClient]
) -> None:
    with kind(broker.url) as stranger, pytest.raises(TocsinError) as error:
        stranger.publish("<a/>", "in/c")
    assert refused(error.value)
    with (
        kind(broker.url, token_file=token_file) as client,
        client.subscribe("in/c") as subscription,
    ):
        client.publish("<a/>", "in/c")
        assert next(iter(subscription)) is not None
        subscription.renew()


def test_resources_and_the_directory(broker: Served, token_file: str) -> None:
    with Resources(broker.url) as stranger, pytest.raises(BrokerRefused) as error:
        stranger.register("node7", attributes={"disk": 3})
    assert refused(error.value)
    with Resources(broker.url, token_file=token_file) as resources:
        resources.register("node7", attributes={"disk": 3})
        found = resources.find("disk = 3").resources
    assert "node7" in [each.id for each in found]

    async def at_once() -> int:
        async with AsyncResources(broker.url, token_file=token_file) as many:
            return len((await many.find("disk = 3")).resources)

    assert asyncio.run(at_once()) >= 1
    with Directory(broker.url, token_file=token_file) as directory:
        directory.register("producer", "uptime", address="127.0.0.1:9")
        assert "uptime" in [each.name for each in directory.look_up(kind="producer")]


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_the_blackboard(broker: Served, token_file: str, scheme: str) -> None:
    url = f"{scheme}://{broker.address}"
    with open_link(url) as stranger, pytest.raises(BrokerRefused) as error:
        stranger.publish([Message({"RunId": "r0"})])
    assert refused(error.value)
    with open_link(url, token_file=token_file) as link:
        link.profile()
        assert link.publish([Message({"RunId": "r1", "UserEvent": "2026-11-19T00:00:00Z"})]) == 1


def test_a_workflow_that_is_tracked(broker: Served, token_file: str) -> None:
    with Workflow("forecast", broker=broker.url, token_file=token_file) as run:
        with run.activity("align"):
            pass
        outbox = run.outbox

    assert outbox.counts.spooled == outbox.counts.dropped == 0
    assert outbox.counts.sent > 0


def test_events_of_a_workflow_wait_while_its_token_is_bad(
    broker: Served, token_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workflow("forecast", broker=broker.url, token="tcs_none_none", drain_s=0.5) as run:
        outbox = run.outbox

    assert outbox.counts.dropped == 0
    assert outbox.counts.spooled > 0
    said = command(broker, "wf", "send", "--token-file", token_file)
    assert said.returncode == 0, said.stderr


def command(broker: Served, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "TOCSIN_BROKER": broker.url,
        **more,
    }
    return subprocess.run(
        [sys.executable, "-m", "tocsin", *arguments],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, input="",
    )  # fmt: skip


COMMANDS = {
    "pub": ("pub", "in/d", "1"),
    "pub lines": ("pub", "in/d", "-"),
    "sub": ("sub", "in/**", "--all", "--exit-at-end"),
    "sub box": ("sub", "in/**", "--via", "box", "--count", "1", "--since", "1h"),
    "sub ws": ("sub", "in/**", "--via", "ws", "--count", "1", "--all"),
    "subs": ("subs", "ls"),
    "box": ("box", "ls"),
    "dlq": ("dlq", "ls"),
    "status": ("status",),
    "doctor": ("doctor",),
    "topics": ("topics", "ls"),
    "resource": ("resource", "ls"),
    "find": ("find", "resources", "disk > 1"),
    "find producers": ("find", "producers"),
    "overlay": ("overlay",),
    "wf": ("wf", "ls"),
    "concepts": ("concepts", "ls"),
    "access": ("access", "ls"),
    "run": ("run", "--json", "--", "true"),
    "agent": ("agent", "--once"),
    "login": ("login", "--show"),
}
# These talk to no broker, or answer whatever it says.
WITHOUT = ("run", "agent", "doctor", "pub lines", "concepts")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(broker: Served, token_file: str, name: str) -> None:
    with Publisher(broker.url, token_file=token_file) as publisher:
        publisher.publish("in/d", 1)
    with Resources(broker.url, token_file=token_file) as resources:
        resources.register(attributes={"disk": 3})
    with Directory(broker.url, token_file=token_file) as directory:
        directory.register("producer", "uptime", address="127.0.0.1:9")

    signed = command(broker, *with_token(name, token_file))
    stranger = command(broker, *COMMANDS[name])

    assert signed.returncode == 0, (signed.stdout, signed.stderr)
    if name not in WITHOUT:
        assert stranger.returncode == 4, (stranger.stdout, stranger.stderr)
        assert NotSignedIn.code in stranger.stderr
        assert len(stranger.stderr.strip().splitlines()) >= 2, "a problem and a remedy"


def with_token(name: str, token_file: str) -> list[str]:
    words = list(COMMANDS[name])
    place = words.index("--") if "--" in words else len(words)
    return [*words[:place], "--token-file", token_file, *words[place:]]


def test_a_token_is_written_to_a_file_that_its_owner_alone_can_read(
    broker: Served, token_file: str, tmp_path: Path
) -> None:
    file = tmp_path / "carol.token"
    as_admin = ("--token-file", token_file)

    made = command(broker, "access", "token", "carol", "--out", str(file), *as_admin)
    whoami = command(broker, "access", "whoami", "--token-file", str(file))

    assert (made.returncode, made.stdout) == (0, "")
    assert file.stat().st_mode & 0o777 == 0o600
    assert whoami.stdout.startswith("carol by token")


@pytest.mark.parametrize("via", ["sse", "ws", "box"])
def test_a_follower_learns_how_many_events_were_withheld(
    broker: Served, token_file: str, tmp_path: Path, via: str
) -> None:
    file = str(tmp_path / "dora.token")
    as_admin = ("--token-file", token_file)
    rule = ("dora", "subscribe", f"told/{via}/*", "--filter", "load < 5", "--withheld")
    assert command(broker, "access", "allow", *rule, *as_admin).returncode == 0
    assert command(broker, "access", "token", "dora", "--out", file, *as_admin).returncode == 0
    with Publisher(broker.url, token_file=token_file) as publisher:
        for load in (1, 7, 8, 2):
            publisher.publish(f"told/{via}/x", {"load": load})

    where = (f"told/{via}/**", "--via", via, "--since", "1h", "--timeout", "3")
    got = command(broker, "sub", *where, "--token-file", file)

    assert got.stdout.count("load") == 2, got.stderr
    assert "2 events that match were withheld" in got.stderr


def test_a_run_is_reported_by_the_token_of_its_environment(broker: Served, token_file: str) -> None:
    token = Path(token_file).read_text().strip()

    said = command(broker, "run", "--json", "--", "true", TOCSIN_TOKEN=token)
    unsigned = command(broker, "run", "--json", "--", "true")

    assert json.loads(said.stderr)["reported"] is True
    assert json.loads(unsigned.stderr)["reported"] is False


def test_an_agent_registers_its_machine(broker: Served, token_file: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TOCSIN_BROKER": broker.url}
    agent = subprocess.Popen(
        [sys.executable, "-m", "tocsin", "agent", "--listen", "off", "--period", "0.2",
         "--token-file", token_file],
        env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        with Resources(broker.url, token_file=token_file) as resources:
            host = socket.gethostname()
            wait_until(lambda: any(each.id == host for each in resources.registered()))
    finally:
        agent.terminate()
        _, said = agent.communicate(timeout=10)
    assert b"T216" not in said
