"""Issuer: an OpenID Connect provider whose tokens sign somebody in, and how they are read."""

from __future__ import annotations

import msgspec


class Issuer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One issuer, as an operator has named it."""

    issuer: str  # its URL, as the claim `iss` of its tokens has it
    audience: str  # that its tokens must be for
    name_claim: str = "sub"
    groups_claim: str = "groups"  # with dots for a claim within a claim
    prefix: str = ""  # of names and groups, so that no two issuers can name the same principal
    ca_file: str = ""  # PEM file of authorities beside the system's
