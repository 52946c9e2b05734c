"""The process that evaluates XPath or XQuery: tasks by standard input, answers by standard output.

It closes itself in before it reads the first task: it can open no file and no socket, write no
file, start no process, and use only so much memory and processor time. Whoever started it ends it
when it takes too long; if nobody does any more, the kernel does.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from typing import Final, cast

from tocsin.drivers.topics.frames import (
    FRAME_BYTES_MAX,
    HEAD,
    Answer,
    Language,
    Ready,
    Refused,
    Task,
    Verdicts,
    frame,
    read_task,
)
from tocsin.drivers.topics.xpath_evaluation import (
    Evaluation,
    NotAnExpression,
    xpath_evaluation,
)

NICENESS: Final = 5  # whoever publishes goes first
CPU_S_MAX: Final = 4  # of one task; its owner stops it before
# Of its data, not of its addresses: Saxon reserves 40 GB of those and uses 50 MB.
DATA_BYTES_MAX: Final[dict[Language, int]] = {"xpath": 256 << 20, "xquery": 500 << 20}

Prepare = Callable[[Task], Evaluation]


def main(language: Language) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a key pressed at the broker's terminal
    with suppress(OSError):
        os.nice(NICENESS)
    answers = _own_output()
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES_MAX[language],) * 2)
    prepare = _prepared(language)
    _close_in()
    _write(answers, Ready())
    while (task := _read()) is not None:
        _allow_cpu_time()
        _write(answers, _performed(prepare, task))


def _prepared(language: Language) -> Prepare:
    if language == "xpath":
        return lambda task: xpath_evaluation(task.expression, task.namespaces)
    from tocsin.drivers.topics.xquery_evaluation import XQueryEngine

    engine = XQueryEngine()
    engine.evaluation("true()")(b"<warm/>")  # it may open files the first time
    return lambda task: engine.evaluation(task.expression)


def _performed(prepare: Prepare, task: Task) -> Answer:
    until_ns = time.monotonic_ns() + task.budget_ns
    found: list[bool] = []
    try:
        evaluate = prepare(task)
        for document in task.documents:
            found.append(evaluate(document))
            if time.monotonic_ns() > until_ns:
                break
    except NotAnExpression as error:
        return Refused(str(error))
    return Verdicts(tuple(found))


def _own_output() -> int:
    """Standard output for us alone: what an engine prints goes nowhere."""
    answers = os.dup(1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.close(nothing)
    return answers


def _close_in() -> None:
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
        resource.setrlimit(limit, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))  # those that are open stay so


def _allow_cpu_time() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent_s = ceil(used.ru_utime + used.ru_stime)
    resource.setrlimit(resource.RLIMIT_CPU, (spent_s + CPU_S_MAX, resource.RLIM_INFINITY))


def _read() -> Task | None:
    head = _read_exactly(HEAD.size)
    if head is None:
        return None
    (size,) = HEAD.unpack(head)
    if size > FRAME_BYTES_MAX:
        return None
    body = _read_exactly(size)
    return None if body is None else read_task(body)


def _read_exactly(size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        read = os.read(0, size - len(parts))
        if not read:
            return None
        parts += read
    return bytes(parts)


def _write(output: int, answer: Answer) -> None:
    left = memoryview(frame(answer))
    while left:
        left = left[os.write(output, left) :]


if __name__ == "__main__":
    main(cast(Language, sys.argv[1]))
