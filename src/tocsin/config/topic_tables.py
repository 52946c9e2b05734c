"""The table of the settings about secure topics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """[topics]: whose advertisements of topics are believed."""

    # Ids of topic discovery nodes, beside those that have a certificate for it of the authorities
    # in certificates.client_ca.
    trusted_tdns: tuple[str, ...] = ()
