"""What a broker keeps for a consumer lives on a lease, so that it is gone if the consumer dies."""

from __future__ import annotations

import json
import time
from urllib.parse import quote

LEASE = "PT1H"
RENEW_AFTER_S = 1_200.0  # a third of the lease: two renewals may fail


class Lease:
    """A subscription or box of our own, and when to ask for more time."""

    renewal = json.dumps({"expires": LEASE}).encode()

    def __init__(self, collection: str, name: str) -> None:
        self.path = f"/{collection}/{quote(name, safe='')}"
        self._due = time.monotonic() + RENEW_AFTER_S

    def is_due(self) -> bool:
        """True if it is time to renew; then not again for a while."""
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + RENEW_AFTER_S
        return True
