"""Registers this host at the broker as a resource, and keeps its values current."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from tocsin.agent.resource import HostDescription
from tocsin.client.resources import Resources
from tocsin.client.transport.address import Address
from tocsin.errors import BrokerRefused, TocsinError

PERIOD_S_MIN: Final = 1.0  # each update is on the broker's disk
LEASES: Final = 6  # periods without an update, after which the broker forgets the host
LEASE_S_MIN: Final = 60.0
STOP_S: Final = 0.5  # to withdraw it; a broker that hangs forgets it by itself
TIMEOUT_S: Final = 10.0

NO_SUCH_RESOURCE: Final = "T351"
OUTSIDE: Final = "T350"  # a disk was added, so that more is free than there was
NO_DISCOVERY: Final = ("T204", "T354")  # an older broker, or one that only has message boxes


class HostResource:
    """One host at one broker. A broker that is away is tried again; one without discovery is not
    an error."""

    def __init__(
        self,
        host: str,
        broker: Address,
        period_s: float,
        description: HostDescription,
        report: Callable[[str], None],
    ) -> None:
        self._host = host
        self._broker = broker
        self._period_s = max(period_s, PERIOD_S_MIN)
        self._description = description
        self._report = report
        self._is_registered = False
        self._refused = ""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tocsin-resource", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Withdraw the host; nobody should be sent to it by this agent any more."""
        self._ending.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        address = str(self._broker)
        with Resources(address, timeout_s=TIMEOUT_S, ca_file=self._broker.ca_file) as resources:
            while self.step(resources) and not self._ending.wait(self._period_s):
                pass
            if self._is_registered:
                try:
                    resources.withdraw(self._host)
                except TocsinError:
                    return  # its lease ends

    def step(self, resources: Resources) -> bool:
        """Register, or say how the host is now; False if this broker takes no resources."""
        values = self._description.values()
        try:
            if self._is_registered:
                resources.update(self._host, values, whole=True)
            else:
                resources.register(
                    self._host,
                    self._description.advertisement(values),
                    model="dynamic",
                    attributes=values,
                    kind="machine",
                    lease_s=max(LEASES * self._period_s, LEASE_S_MIN),
                )
                self._is_registered = True
        except BrokerRefused as error:
            return self._refusal(error)
        except TocsinError:
            return True  # the broker is away: whoever feeds it events says so
        return True

    def _refusal(self, error: BrokerRefused) -> bool:
        if error.broker_code in NO_DISCOVERY or not error.broker_code:
            return False
        was_registered, self._is_registered = self._is_registered, False
        if not (was_registered and error.broker_code in (NO_SUCH_RESOURCE, OUTSIDE)):
            if error.problem != self._refused:
                self._report(f"tocsin: this host is not registered: {error.problem}")
            self._refused = error.problem
        return True
