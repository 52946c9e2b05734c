"""The namespaces and identifiers of WS-Security, its token profiles and XML Signature."""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap.names import WSSE

_OASIS: Final = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-"
WSU: Final = f"{_OASIS}wssecurity-utility-1.0.xsd"
DS: Final = "http://www.w3.org/2000/09/xmldsig#"
EXCLUSIVE: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"

PASSWORD_TEXT: Final = f"{_OASIS}username-token-profile-1.0#PasswordText"
PASSWORD_DIGEST: Final = f"{_OASIS}username-token-profile-1.0#PasswordDigest"
BASE64: Final = f"{_OASIS}soap-message-security-1.0#Base64Binary"
X509_V3: Final = f"{_OASIS}x509-token-profile-1.0#X509v3"

SECURITY: Final = f"{{{WSSE}}}Security"
ID: Final = f"{{{WSU}}}Id"

_MORE: Final = "http://www.w3.org/2001/04/xmldsig-more#"
# By the size of the hash. Whatever is not named here is refused.
SIGNATURES: Final = frozenset(
    {
        *(f"{_MORE}rsa-sha{size}" for size in (256, 384, 512)),
        *(f"{_MORE}ecdsa-sha{size}" for size in (256, 384, 512)),
        *(f"http://www.w3.org/2007/05/xmldsig-more#sha{size}-rsa-MGF1" for size in (256, 384, 512)),
    }
)
DIGESTS: Final = frozenset(
    {
        "http://www.w3.org/2001/04/xmlenc#sha256",
        f"{_MORE}sha384",
        "http://www.w3.org/2001/04/xmlenc#sha512",
    }
)
RSA_SHA1: Final = f"{DS}rsa-sha1"
SHA1: Final = f"{DS}sha1"
RSA_SHA256: Final = f"{_MORE}rsa-sha256"
ECDSA_SHA256: Final = f"{_MORE}ecdsa-sha256"
SHA256: Final = "http://www.w3.org/2001/04/xmlenc#sha256"
