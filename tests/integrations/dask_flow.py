"""A Dask program: tasks that succeed, fail, are tried again, never run, and are cancelled.

python dask_flow.py BROKER session|computation
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from distributed import Client, Future, LocalCluster

from tocsin.integrations.dask import TocsinPlugin

ENDED = {
    ("processing", "memory"): "ActivitySucceeded",
    ("processing", "erred"): "ActivityFailed",
    ("waiting", "erred"): "ActivitySkipped",
    ("released", "erred"): "ActivitySkipped",
}


def gen(n: int) -> list[int]:
    return list(range(n))


def total(*lists: list[int]) -> int:
    return sum(map(sum, lists))


def held(number: int) -> int:
    while os.path.exists("hold"):
        time.sleep(0.05)
    return number


def bad(number: int) -> int:
    raise ValueError("disk quota exceeded")


def flaky(number: int) -> int:
    if os.path.exists("tried"):
        return number
    open("tried", "w").close()
    raise RuntimeError("no luck")


def waits(number: int) -> int:
    while not os.path.exists("enough"):
        time.sleep(0.05)
    return number


def outcome(future: Future) -> object:
    try:
        return future.result()
    except Exception as error:
        return type(error).__name__


def own_record(cluster: LocalCluster) -> list[tuple[str, str]]:
    """Which tasks ended how, by the scheduler's own log of transitions."""
    found = []
    given_up: dict[str, bool] = {}
    for entry in cluster.scheduler.transition_log:
        key, start, finish = str(entry.key), entry.start, entry.finish
        if (start, finish) in ENDED:
            found.append((key, ENDED[start, finish]))
        elif (start, finish) == ("processing", "released"):
            given_up[key] = True
        elif given_up.pop(key, False):
            tried_again = finish == "waiting"
            found.append((key, "ActivityRetrying" if tried_again else "ActivityCancelled"))
    return found


def state(client: Client, future: Future) -> str | None:
    task = client.cluster.scheduler.tasks.get(future.key)
    return None if task is None else str(task.state)


def work(client: Client) -> list[object]:
    said: list[Any] = []
    whole = client.submit(total, *client.map(gen, range(1, 5)))
    said.append(outcome(client.submit(held, whole)))
    failed = client.submit(bad, whole)
    said += [outcome(client.submit(held, failed)), outcome(client.submit(flaky, 7, retries=2))]
    long = client.submit(waits, 1)
    while state(client, long) != "processing":
        time.sleep(0.01)
    long.cancel()
    while state(client, long) is not None:
        time.sleep(0.01)
    open("enough", "w").close()
    return said


def main(broker: str, per: Any) -> None:
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        client.register_plugin(TocsinPlugin("demo", broker=broker, per=per, spool="spool"))
        said = work(client)
        print(json.dumps({"said": said, "ended": own_record(cluster)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
