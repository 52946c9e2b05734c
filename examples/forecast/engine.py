"""The workflow engine: it subscribes, starts steps as notifications come, and unsubscribes."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from forecast.services import ENDED, Listener, Notice, serve
from forecast.steps import FORECAST, due
from tocsin.client import Consumer, Publisher

SILENCE_S_MAX = 60.0  # no step of this forecast takes longer
PATIENCE_S = 30.0


def own_topic(user: str, workflow: str, run: str | None = None) -> str:
    """A topic that nobody else has, made as a portal would, of who runs what.

    A user may be called `**`, which in a subscription means everybody.
    """
    plain = "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in user)
    return f"lead/{plain or '_'}/{workflow}/{run or uuid.uuid4().hex}"


@dataclass(slots=True)
class Report:
    """How a run went, and what those who listened have of it."""

    topic: str
    invoked: list[str] = field(default_factory=list)
    finished: dict[str, Path] = field(default_factory=dict)
    failed: str | None = None
    catalogue: dict[str, str] = field(default_factory=dict)
    monitor: list[str] = field(default_factory=list)


def run_forecast(broker: str, topic: str, place: Path) -> Report:
    """Run every step once. When this returns or raises, nothing of it is left at the broker."""
    report = Report(topic)
    with ExitStack() as at_the_end:
        # Before anything is invoked, the engine subscribes itself and those who want to know.
        events = at_the_end.enter_context(
            Consumer(f"topic {topic}/**", via="box", broker=broker, timeout_s=SILENCE_S_MAX)
        )
        catalogue = Listener(topic, broker, "push", lambda notice: _file(notice, report.catalogue))
        at_the_end.callback(catalogue.dismiss)
        monitor = Listener(topic, broker, "box", lambda notice: _show(notice, report.monitor))
        at_the_end.callback(monitor.dismiss)
        with ThreadPoolExecutor() as services:
            _orchestrate(report, events, broker, place, services)
        with Publisher(broker, source="/engine") as publisher:
            publisher.publish(f"{topic}/engine", {"step": "forecast workflow", "state": ENDED})
        catalogue.finish(PATIENCE_S)
        monitor.finish(PATIENCE_S)
    return report


def _orchestrate(
    report: Report, events: Consumer, broker: str, place: Path, services: ThreadPoolExecutor
) -> None:
    def invoke_what_is_due() -> None:
        for name in due(FORECAST, report.finished, report.invoked):
            report.invoked.append(name)
            step = FORECAST[name]
            inputs = {need: report.finished[need] for need in step.needs}
            services.submit(serve, broker, report.topic, name, step, inputs, place)

    invoke_what_is_due()
    for event in events:
        notice: Notice = event.data
        # Delivery is at least once. A step that is known to be finished is finished, however
        # often that is said, and what was invoked is not due any more.
        if notice["state"] == "finished":
            report.finished.setdefault(notice["step"], Path(notice["output"]))
            invoke_what_is_due()
        elif notice["state"] == "failed":
            report.failed = f"{notice['step']}: {notice['error']}"
            return
        if len(report.finished) == len(FORECAST):
            return
    report.failed = f"nothing was heard for {SILENCE_S_MAX:.0f} s"


def _file(notice: Notice, catalogue: dict[str, str]) -> None:
    """The metadata catalogue keeps where each step's output is."""
    if "output" in notice:
        catalogue[notice["step"]] = notice["output"]


def _show(notice: Notice, lines: list[str]) -> None:
    lines.append(f"{notice['step']} {notice['state']}")
