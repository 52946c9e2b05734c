"""CertificateSettings: the table of the settings that is about certificates of clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CertificateSettings:
    """[certificates]: who may sign in with a certificate, at each listener that speaks TLS."""

    client_ca: str = ""  # PEM file of the authorities that sign clients' certificates themselves
    crl_file: str = ""  # file of their revocation lists; it has to have one of each authority
    client_certificates: str = "optional"  # required: who shows none cannot connect at all
    reload_s: float = 5.0  # how often files of certificates, keys and lists are looked at
