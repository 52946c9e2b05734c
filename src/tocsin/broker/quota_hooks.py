"""QuotaHooks: where `LimitedPort` counts; the port of a broker without quotas does nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from tocsin.access.quotas.rules import Quota
from tocsin.access.session import Session
from tocsin.broker.service_port import OwnerOf
from tocsin.event.subscription import Kind, Owner


class QuotaHooks:
    """See the module. Those that refuse raise QuotaReached, and then nothing is changed."""

    def registering(self, session: Session, key: str) -> AbstractContextManager[None]:
        """Around the keeping of what the session registers; refuses if it has too many."""
        return nullcontext()

    def add_to_quota(self, session: Session, quota: Quota, is_there: Callable[[], bool]) -> None:
        """A service has one more of these in memory for the session, for as long as `is_there` says
        so; refuses if that is too many."""

    def _giving(
        self, session: Session, subscription_id: str, owner: Owner | None, kind: Kind
    ) -> AbstractContextManager[None]:
        """Around giving a subscription or a box to somebody; refuses if that one has too many."""
        return nullcontext()

    def _count_registrations(self, prefix: str, owner_of: OwnerOf) -> None:
        """What is kept under names that begin so is registered, by whom this says."""
