"""The services that the engine invokes, and those that only listen: a catalogue and a monitor."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from forecast.steps import Inputs, Step
from tocsin.client import Consumer, Publisher

ENDED = "ended"
Notice = dict[str, Any]


def serve(broker: str, topic: str, name: str, step: Step, inputs: Inputs, place: Path) -> None:
    """One service at work. All it knows of the workflow is where to tell how it goes."""
    output = place / f"{name}.json"
    with Publisher(broker, source=f"/services/{name}") as publisher:

        def tell(state: str, **more: str) -> None:
            publisher.publish(f"{topic}/{name}", {"step": name, "state": state, **more})

        tell("started")
        try:
            output.write_text(json.dumps(step.work(inputs)))
        except Exception as error:  # whatever it is, the engine waits to hear of it
            tell("failed", error=repr(error))
        else:
            tell("finished", output=str(output))


class Listener:
    """A service that is told of everything in one run, until that ends or it is dismissed."""

    def __init__(
        self, topic: str, broker: str, via: Literal["box", "push"], heard: Callable[[Notice], None]
    ) -> None:
        # Subscribed when this returns: nothing that is published afterwards is missed.
        self._events = Consumer(f"topic {topic}/**", via=via, broker=broker)
        self._heard = heard
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        for event in self._events:
            self._heard(event.data)
            if event.data["state"] == ENDED:
                return

    def finish(self, patience_s: float) -> None:
        """Wait until it has heard of the end, which is the last that it hears."""
        self._thread.join(patience_s)

    def dismiss(self) -> None:
        """Unsubscribe it."""
        self._events.close()
        self._thread.join()
