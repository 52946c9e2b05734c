"""What it costs to decide who may do what: on the way of an event, and when somebody connects.

    python bench/access.py [--quick] [--json FILE]

Fixed work, and what it takes of the broker's processor time, as in `alone.py`: events from 64
connections, at brokers that are open, that decide by rules and by the rights of a token, and that
also keep the audit log or ask for quotas. All are sent the same requests with the same token, in
turns that change; the open one is there twice, and by what it differs from itself is in the last
column: less cannot be seen. Then connections with TLS, tokens and certificates beside plain ones:
how many are made in a second, with one event each, and how many events a second pass over them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import uvloop
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

import load
import report
from alone import CONNECTIONS, Sender, cpu_s
from served import Served, served
from tocsin.access.audit.records import AuditOptions, AuditSummary
from tocsin.access.policy.policy import Decision, Policy
from tocsin.access.policy.rights import read_rule
from tocsin.access.session import Credential, CredentialKind, Principal, Session
from tocsin.cli.keys.making import (
    authority_certificate,
    certificate,
    key_pem,
    new_key,
    revocation_list,
)
from tocsin.event.event import Event

TARGET = 0.97
CONNECTING = 8  # clients that connect, send one event and leave, one after the other
RULES = 20  # of others, beside those of the publisher

OPEN = '[auth]\nmode = "open"\n'
REQUIRED = '[auth]\nmode = "required"\n'
PUBLISHER = '[[access]]\nprincipal = "bench"\naction = "publish"\ntopic = "bench/**"\n'
OTHERS = "".join(
    f'[[access]]\nprincipal = "p{number}"\naction = "read"\ntopic = "other/{number}/**"\n'
    for number in range(RULES)
)
RULED = REQUIRED + PUBLISHER + OTHERS
WITHOUT_AUDIT = RULED + "[audit]\nenabled = false\n"
LIMITED = RULED + "[[quotas]]\npublish_rate = 1e9\nin_flight_bytes = 1e12\nconnections = 1e6\n"

# The second one is the same broker again: what differs between the two is chance.
BROKERS: Mapping[str, str] = {
    "open": OPEN,
    "open again": OPEN,
    "rules": WITHOUT_AUDIT,
    "rules, audit log": RULED,
    "rules, audit log, quotas": LIMITED,
}
FIRST = "open"


@dataclass(frozen=True)
class Site:
    """A broker, and what its client shows."""

    broker: Served
    headers: bytes
    tls: ssl.SSLContext | None = None


@contextlib.contextmanager
def site(settings: str, tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    """A broker with these settings, and a token of the publisher, if tokens are made there."""
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as folder:
        path = Path(folder) / "tocsin.toml"
        path.write_text(settings)
        with served("--link", "off", env={"TOCSIN_CONFIG": str(path)}) as broker:
            yield Site(broker, _token(broker, tls), tls)


def _token(broker: Served, tls: ssl.SSLContext | None) -> bytes:
    """The header with it. An open broker reads over a text that is none."""
    kept = broker.directory / "admin.token"
    if not kept.exists():
        return b"Authorization: Bearer tcs_%b_%b\r\n" % (b"0" * 24, b"x" * 43)
    body = json.dumps({"principal": "bench"}).encode()
    request = b"POST /access/tokens HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    request += b"Authorization: Bearer %b\r\n" % kept.read_bytes().strip()
    request += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    answer = uvloop.run(_ask(broker.address, tls, request + body))
    return b"Authorization: Bearer %b\r\n" % json.loads(answer)["token"].encode()


async def _ask(address: str, tls: ssl.SSLContext | None, request: bytes) -> bytes:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer.partition(b"\r\n\r\n")[2]


# On the way of an event


async def send(where: Site, batch: int, posts: int, first: int) -> None:
    """So many POSTs on each of the connections."""
    loop = asyncio.get_running_loop()
    host, _, port = where.broker.address.rpartition(":")
    done = [loop.create_future() for _ in range(CONNECTIONS)]
    for number, each in enumerate(done):
        requests = load.Requests(batch, first + number * batch * posts, headers=where.headers)
        await loop.create_connection(
            lambda requests=requests, each=each: Sender(requests, posts, each),
            host,
            int(port),
            ssl=where.tls,
        )
    await asyncio.gather(*done)


def per_cpu_s(where: Site, batch: int, posts: int, first: int) -> float:
    """Events per CPU-second of the broker."""
    before_s = cpu_s(where.broker.pid)
    uvloop.run(send(where, batch, posts, first))
    return CONNECTIONS * batch * posts / (cpu_s(where.broker.pid) - before_s)


Rounds = list[dict[str, float]]


def published(rounds: int, posts: Mapping[int, int]) -> dict[str, Rounds]:
    """Of each round, what each broker did in a CPU-second."""
    measured: dict[str, Rounds] = {_events(batch): [] for batch in posts}
    names = list(BROKERS)
    with contextlib.ExitStack() as stack:
        sites = {name: stack.enter_context(site(text)) for name, text in BROKERS.items()}
        first = 0
        for number in range(-1, rounds):  # the first to get warm
            print(f"publishing, round {number + 1} of {rounds}", file=sys.stderr)
            for batch, count in posts.items():
                turn = (number + 1) % len(names)
                rates = {
                    name: per_cpu_s(sites[name], batch, count, first)
                    for name in names[turn:] + names[:turn]
                }
                first += CONNECTIONS * batch * count
                if number >= 0:
                    measured[_events(batch)].append(rates)
    return measured


def _events(batch: int) -> str:
    return "events, one a POST" if batch == 1 else f"events, {batch} a POST"


def ratios(measured: Rounds, name: str) -> float:
    """Formed within a round; the median of all."""
    return statistics.median(each[name] / each[FIRST] for each in measured)


class Summary(AuditSummary):
    """The recorder of a policy, without files."""

    def decided(self, decision: Decision, now_ns: int = 0) -> None:  # type: ignore[override]
        super().decided(decision, now_ns)


def decision_ns(batch: int, turns: int = 20_000) -> float:
    """What one call of the decision takes, for so many events of one topic: the best of a few."""
    policy = Policy(time.time_ns, steady_ns=time.monotonic_ns)
    written = {"principal": "bench", "action": "publish", "topic": "bench/**"}
    policy.set_rules([read_rule(written, "1", 0)])
    policy.recorder = Summary(AuditOptions(), 0)
    credential = Credential(CredentialKind.CERTIFICATE, "certificate/1", time.time_ns() + 10**15)
    session = Session(Principal("bench"), "http", "127.0.0.1:5000", credential)
    events = [Event(str(n), "/s", "t", topic="bench/load") for n in range(batch)]
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter_ns()
        for _ in range(turns):
            policy.decide_events(session, events)
        best = min(best, (time.perf_counter_ns() - start) / turns)
    return best


# Connections


def certificates(folder: Path) -> dict[str, str]:
    """Files of an authority, of a broker and of a client, by name."""
    now = datetime.now(UTC)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = authority_certificate("bench authority", authority_key, now, 30)
    made = {"ca.pem": authority.public_bytes(Encoding.PEM)}
    for name, kind in (("broker", "broker"), ("bench", "client")):
        key = new_key("p256")
        shown = certificate(
            name,
            kind,
            key,
            groups=(),
            hosts=("localhost", "127.0.0.1"),
            by=authority,
            by_key=authority_key,
            now=now,
            days=30,
        )
        made[f"{name}.pem"] = shown.public_bytes(Encoding.PEM)
        made[f"{name}.key"] = key_pem(key)
    revoked = revocation_list((), authority, authority_key, 1, now, 7)
    made["crl.pem"] = revoked.public_bytes(Encoding.PEM)
    for name, content in made.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(content)
    return {name.removesuffix(".pem"): str(folder / name) for name in made}


WAYS = ("plain", "token", "TLS, token", "TLS, certificate")


@contextlib.contextmanager
def ways() -> Iterator[dict[str, Site]]:
    """One broker for each way in."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-bench-")))
        files = certificates(folder)
        keys = f'[http]\ntls_certificate = "{files["broker"]}"\ntls_key = "{files["broker.key"]}"\n'
        peers = f'[certificates]\nclient_ca = "{files["ca"]}"\ncrl_file = "{files["crl"]}"\n'
        trusting = ssl.create_default_context(cafile=files["ca"])
        showing = ssl.create_default_context(cafile=files["ca"])
        showing.load_cert_chain(files["bench"], files["bench.key"])
        plain = stack.enter_context(site(OPEN))
        mutual = stack.enter_context(site(RULED + keys + peers, showing))
        yield {
            "plain": Site(plain.broker, b""),
            "token": stack.enter_context(site(RULED)),
            "TLS, token": stack.enter_context(site(RULED + keys, trusting)),
            "TLS, certificate": Site(mutual.broker, b"", showing),
        }


async def _connect(where: Site, seconds: float, first: int) -> float:
    """Connections a second, each with one event, by a few clients one after the other."""
    loop = asyncio.get_running_loop()
    host, _, port = where.broker.address.rpartition(":")
    count, end = 0, time.perf_counter() + seconds

    async def client(number: int) -> None:
        nonlocal count
        requests = load.Requests(1, first + number * 1_000_000, headers=where.headers)
        while time.perf_counter() < end:
            done = loop.create_future()
            transport, _ = await loop.create_connection(
                lambda done=done: Sender(requests, 1, done), host, int(port), ssl=where.tls
            )
            await done
            transport.abort()
            count += 1

    start = time.perf_counter()
    await asyncio.gather(*map(client, range(CONNECTING)))
    return count / (time.perf_counter() - start)


def connected(rounds: int, seconds: float, posts: int) -> dict[str, Rounds]:
    """Connections a second, and events a CPU-second over connections that stay, of each way."""
    made: Rounds = []
    steady: Rounds = []
    batched: Rounds = []
    with ways() as sites:
        for number in range(-1, rounds):
            print(f"connecting, round {number + 1} of {rounds}", file=sys.stderr)
            first = (number + 1) * 100_000_000
            turn = (number + 1) % len(WAYS)
            order = WAYS[turn:] + WAYS[:turn]
            found = {name: uvloop.run(_connect(sites[name], seconds, first)) for name in order}
            single = {name: per_cpu_s(sites[name], 1, posts, first + 50_000_000) for name in order}
            many = {
                name: per_cpu_s(sites[name], 64, posts // 8, first + 60_000_000) for name in order
            }
            if number >= 0:
                made.append(found)
                steady.append(single)
                batched.append(many)
    return {
        "connections a second, one event each": made,
        "events a CPU-second, one a POST": steady,
        "events a CPU-second, 64 a POST": batched,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    rounds = 2 if arguments.quick else 15
    posts = {1: 40, 64: 6} if arguments.quick else {1: 150, 64: 20}
    decided = published(rounds, posts)
    alone = {batch: decision_ns(batch) for batch in posts}
    share = {
        _events(batch): ns
        / batch
        * statistics.median(e[FIRST] for e in decided[_events(batch)])
        / 1e9
        for batch, ns in alone.items()
    }
    ways_in = connected(1 if arguments.quick else 5, 1.0 if arguments.quick else 3.0, 80)
    report.table(
        ["per CPU-second of the broker", "decides by", "events", "ratio", "target", "chance"],
        [
            [
                what,
                name,
                statistics.median(each[name] for each in found),
                ratios(found, name),
                TARGET if name == "rules, audit log" else None,
                abs(1 - ratios(found, "open again")),
            ]
            for what, found in decided.items()
            for name in BROKERS
            if name != "open again"
        ],
    )
    print()
    report.table(
        ["the decision and its record alone", "ns a request", "share of its CPU", "at most"],
        [[_events(batch), ns, share[_events(batch)], 1 - TARGET] for batch, ns in alone.items()],
    )
    print()
    report.table(
        ["what", "way in", "a second", "of plain"],
        [
            [
                what,
                name,
                statistics.median(each[name] for each in found),
                statistics.median(each[name] / each["plain"] for each in found),
            ]
            for what, found in ways_in.items()
            for name in WAYS
        ],
    )
    if arguments.json:
        on = "rules, audit log"
        results = {
            "decision_over_open": {what: ratios(found, on) for what, found in decided.items()},
            "decision_over_open_all": statistics.median(
                each[on] / each[FIRST] for found in decided.values() for each in found
            ),
            "decision_share": share,
            "decision_share_max": max(share.values()),
            "rounds": decided,
            "connections": ways_in,
        }
        report.write("access", results, arguments.json)


if __name__ == "__main__":
    main()
