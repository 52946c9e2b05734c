"""A Parsl program: tasks that succeed, are remembered, fail, are tried again, and never run.

python parsl_flow.py BROKER threads|processes
"""

from __future__ import annotations

import sys
from concurrent.futures import Future
from typing import Any

import parsl
from parsl import bash_app, python_app
from parsl.config import Config
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
from parsl.providers import LocalProvider

from tocsin.integrations.parsl import TocsinMonitoring


@python_app
def gen(n: int) -> int:
    return n


@python_app(cache=True)
def add(*numbers: int) -> int:
    return sum(numbers)


@python_app
def held(number: int) -> int:
    import os
    import time

    while os.path.exists("hold"):
        time.sleep(0.05)
    return number


@python_app
def bad(number: int) -> int:
    raise ValueError("disk quota exceeded")


@bash_app
def shell(number: int, stderr: str = "shell.err") -> str:
    return "echo no space left >&2; exit 3"


def executor(kind: str) -> Any:
    if kind == "threads":
        return ThreadPoolExecutor(max_threads=2)
    provider = LocalProvider(init_blocks=1, max_blocks=1)
    return HighThroughputExecutor(
        address="127.0.0.1", max_workers_per_node=2, provider=provider, encrypted=False
    )


def outcome(future: Future[Any]) -> object:
    try:
        return future.result()
    except Exception as error:
        return type(error).__name__


def main(broker: str, kind: str) -> None:
    monitoring = TocsinMonitoring(
        broker, spool="spool", database=True, resource_monitoring_interval=0.2
    )
    config = Config(executors=[executor(kind)], retries=1, monitoring=monitoring, strategy="none")
    with parsl.load(config):
        total = add(*(gen(n) for n in range(3)))
        print(outcome(total), flush=True)
        again = add(0, 1, 2)
        print(outcome(held(again)))
        failed = bad(again)
        print(outcome(add(failed)), outcome(failed), outcome(shell(1)))


if __name__ == "__main__":
    main(*sys.argv[1:])
