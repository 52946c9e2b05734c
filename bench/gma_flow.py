"""Performance events from end to end over TCP: how many, at what cost, how late; and 1,000 hosts.

    python bench/gma_flow.py [--quick] [--window N] [--only flow|hosts] [--json FILE]

Flow: 3 producers, 3 consumers of everything, each a process of its own, paper 002's UptimeCPULoad.
The producers' events are acknowledged, that is on disk, and each keeps so many under way; a second
run at a fixed modest rate says how late an event is. In the same round the same clients talk to a
relay that only cuts frames and passes them on (no parser, no disk: the machine's limit), to one
that also lets lxml parse each message once, and the broker is given CloudEvents of the same size.

Hosts: 1,000 connected producers with a period of 1 s, without and with 10 consumers of different
Periods: the share of one core and the memory that the broker takes, and the relay for the same.

Every event that was sent must be on disk, once, and with every consumer of everything: otherwise
this fails.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import blackboard
import gma_load as gma
import load
import report
from gma_parties import BROKER, PARSER, RELAY, company, target
from served import served

PARTIES = 3
WINDOW = 64
MODEST_PERIOD_S = 0.01  # of each of the three: 300 events a second
WARM_UP_S = 0.5
HOSTS = 1_000
HOST_PROCESSES = 2
HOST_PERIOD_S = 1.0
PERIODS_S = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 30.0)

CLOUDEVENTS = "CloudEvents"
TITLES = {
    BROKER: "the broker: read, on disk, matched, sent",
    RELAY: "a relay: no parser, no disk",
    PARSER: "a relay that parses with lxml",
    CLOUDEVENTS: "the broker, CloudEvents by HTTP",
}


# 3 producers, 3 consumers


def flow(kind: str, seconds: float, window: int) -> dict[str, float]:
    """As fast as it goes."""
    everything: list[gma.Periods] = [(None,)] * PARTIES
    with (
        target(kind) as at,
        company(
            at, work=gma.flood, processes=PARTIES, settings=(window,), consumers=everything
        ) as clients,
    ):
        clients.begin()
        time.sleep(WARM_UP_S)
        start, cpu_s = time.perf_counter(), at.cpu_s()
        published, delivered = clients.published(), sum(clients.delivered())
        time.sleep(seconds)
        took_s, used_s = time.perf_counter() - start, at.cpu_s() - cpu_s
        published = clients.published() - published
        delivered = sum(clients.delivered()) - delivered
        sent = sum(clients.stop())
        drained_s = clients.drain(sent)
        clients.dismiss()
        at.check_stored(sent)
    return {
        "published_s": published / took_s,
        "delivered_s": delivered / took_s,
        "cpu_us": used_s / published * 1e6,
        "cores": used_s / took_s,
        "behind_s": round(drained_s, 2),
    }


def lateness(kind: str, seconds: float) -> dict[str, float]:
    """At a modest rate: from sending to acknowledgement, and to the consumers, in ms."""
    everything: list[gma.Periods] = [(None,)] * PARTIES
    with (
        target(kind) as at,
        company(
            at,
            work=gma.pace,
            processes=PARTIES,
            settings=(1, MODEST_PERIOD_S),
            consumers=everything,
            timed=True,
        ) as clients,
    ):
        clients.begin()
        time.sleep(seconds)
        told = clients.stop()
        sent = sum(count for count, _ in told)
        clients.drain(sent)
        under_way = percentiles(clients.dismiss())
        acknowledged = percentiles([ns for _, times in told for ns in times])
        at.check_stored(sent)
    return {
        "events": sent,
        **{f"delivered_{name}_ms": value for name, value in under_way.items()},
        **{f"acknowledged_{name}_ms": value for name, value in acknowledged.items()},
    }


def percentiles(times_ns: list[int]) -> dict[str, float]:
    ordered = sorted(times_ns)
    last = len(ordered) - 1
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: ordered[round(share * last)] / 1e6 for name, share in shares.items()}


def cloudevents(seconds: float, window: int, size: int) -> dict[str, float]:
    """The blackboard's shape: the same number in one POST, and streams to three readers."""
    with served() as broker:
        follow = ["--follow", broker.address, "events", str(seconds)]
        command = [sys.executable, blackboard.__file__, *follow]
        readers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(PARTIES)]
        for reader in readers:
            assert reader.stdout is not None
            reader.stdout.readline()
        publishers = [
            load.start_load(
                broker.address, connections=1, batch=window, seconds=seconds + 1.0, size=size
            )
            for _ in range(PARTIES)
        ]
        time.sleep(WARM_UP_S + 0.5)  # Python starts, then the load warms up
        start, cpu_s = time.perf_counter(), load.cpu_s(broker.pid)
        time.sleep(seconds * 0.7)
        cores = (load.cpu_s(broker.pid) - cpu_s) / (time.perf_counter() - start)
        delivered = sum(float(reader.communicate(timeout=120)[0]) for reader in readers)
        published = sum(map(load.rate_of, publishers))
    return {
        "published_s": published,
        "delivered_s": delivered,
        "cpu_us": cores / published * 1e6,
        "cores": cores,
    }


def one_round(seconds: float, window: int) -> dict[str, dict[str, float]]:
    measured = {
        kind: flow(kind, seconds, window) | lateness(kind, seconds)
        for kind in (BROKER, RELAY, PARSER)
    }
    measured[CLOUDEVENTS] = cloudevents(seconds, window, gma.Frames("1", gma.host(1)).size)
    return measured


# 1,000 hosts


def hosts(kind: str, seconds: float, periods_s: Sequence[float]) -> dict[str, Any]:
    """What the target takes while 1,000 producers send an event each second."""
    with target(kind) as at:
        idle_mb = at.memory_mb()["now"]
        with company(
            at,
            work=gma.pace,
            processes=HOST_PROCESSES,
            settings=(HOSTS // HOST_PROCESSES, HOST_PERIOD_S),
            consumers=[periods_s] if periods_s else [],
        ) as clients:
            connected_mb = at.memory_mb()["now"]
            clients.begin()
            time.sleep(max(2 * HOST_PERIOD_S, WARM_UP_S))
            start, cpu_s, published = time.perf_counter(), at.cpu_s(), clients.published()
            time.sleep(seconds)
            took_s = time.perf_counter() - start
            share = (at.cpu_s() - cpu_s) / took_s
            published = clients.published() - published
            memory = at.memory_mb()
            told = clients.stop()
            sent = sum(count for count, _ in told)
            time.sleep(WARM_UP_S)  # the consumers get the last ones
            delivered = dict(zip(periods_s, clients.delivered(), strict=True))
            check_delivered(kind, delivered, sent)
            clients.dismiss()
            at.check_stored(sent)
    acknowledged = percentiles([ns for _, times in told for ns in times])
    return {
        "consumers": len(periods_s),
        "published_s": published / took_s,
        "core_share": share,
        "cpu_us": share * took_s / published * 1e6,
        "idle_mb": idle_mb,
        "connected_mb": connected_mb,
        "steady_mb": memory["now"],
        "peak_mb": memory["peak"],
        "sent": sent,
        "delivered": sum(delivered.values()),
        "delivered_by_period": {f"{period_s:g} s": n for period_s, n in delivered.items()},
        **{f"acknowledged_{name}_ms": value for name, value in acknowledged.items()},
    }


def check_delivered(kind: str, delivered: dict[float, int], sent: int) -> None:
    """The relay passes all on; of the broker nobody gets more than one per Period and host."""
    each = -(-sent // HOSTS)
    for period_s, got in delivered.items():
        most = HOSTS * -(-each * HOST_PERIOD_S // period_s) if kind == BROKER else sent
        least = HOSTS if kind == BROKER else sent  # the first of each at once
        if not least <= got <= most:
            raise SystemExit(f"Period {period_s:g} s: {got} events, {least} to {most:g} expected")


# What it says


def median(rounds: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    return {
        kind: {key: statistics.median(each[kind][key] for each in rounds) for key in found}
        for kind, found in rounds[0].items()
    }


def ratios(rounds: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    """Each formed within its round."""
    beside = {"relay": RELAY, "parsing_relay": PARSER, "cloudevents": CLOUDEVENTS}
    found = {}
    for key in ("published_s", "delivered_s", "cpu_us"):
        for name, kind in beside.items():
            shares = [each[BROKER][key] / each[kind][key] for each in rounds]
            found[f"{key}_over_{name}"] = statistics.median(shares)
    return found


def show_flow(measured: dict[str, dict[str, float]], found: dict[str, float], window: int) -> None:
    print(f"3 producers with {window} events under way each, 3 consumers\n")
    columns = ("published_s", "delivered_s", "cpu_us", "cores", "behind_s")
    report.table(
        ("", "published/s", "delivered/s", "CPU us/published", "cores", "s to drain"),
        [(TITLES[kind], *(row.get(key) for key in columns)) for kind, row in measured.items()],
    )
    print(f"\n{PARTIES / MODEST_PERIOD_S:.0f} events a second, ms from sending\n")
    names, told = ("p50", "p90", "p99", "max"), ("acknowledged", "delivered")
    report.table(
        ("", *(f"acked {name}" for name in names), *(f"delivered {name}" for name in names)),
        [
            (TITLES[kind], *(row[f"{what}_{name}_ms"] for what in told for name in names))
            for kind, row in measured.items()
            if "events" in row
        ],
    )
    print()
    report.table(("the broker's", "ratio"), [(k.replace("_", " "), v) for k, v in found.items()])


def show_hosts(rows: dict[str, dict[str, Any]]) -> None:
    print(f"\n{HOSTS:,} producers, a period of {HOST_PERIOD_S:g} s\n")
    columns = (
        ("events/s", "published_s"),
        ("of one core", "core_share"),
        ("CPU us/event", "cpu_us"),
        ("MB idle", "idle_mb"),
        ("MB connected", "connected_mb"),
        ("MB at the end", "steady_mb"),
        ("MB peak", "peak_mb"),
        ("sent", "sent"),
        ("delivered", "delivered"),
        ("acked p50 ms", "acknowledged_p50_ms"),
        ("p99", "acknowledged_p99_ms"),
    )
    report.table(
        ("", *(title for title, _ in columns)),
        [(name, *(row[key] for _, key in columns)) for name, row in rows.items()],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--window", type=int, default=WINDOW, help="events under way, each")
    parser.add_argument("--only", choices=("flow", "hosts"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    if arguments.only != "hosts":
        rounds = []
        for number in range(1 if arguments.quick else 3):
            print(f"round {number + 1}", file=sys.stderr)
            rounds.append(one_round(2.0 if arguments.quick else 5.0, arguments.window))
        results["flow"], results["ratios"] = median(rounds), ratios(rounds)
        show_flow(results["flow"], results["ratios"], arguments.window)
    if arguments.only != "flow":
        seconds = 4.0 if arguments.quick else 60.0
        rows = {}
        for kind, name in ((BROKER, "the broker"), (RELAY, "the relay")):
            for periods_s in ((), PERIODS_S):
                full = f"{name}, {len(periods_s)} consumers"
                print(full, file=sys.stderr)
                rows[full] = hosts(kind, seconds, periods_s)
        results["hosts"] = rows
        show_hosts(rows)
    if arguments.json:
        report.write("gma_flow", results, arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
