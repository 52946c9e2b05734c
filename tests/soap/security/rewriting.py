"""Signatures made again over what a test has changed: by whoever has the key, and wants to see what
else is taken."""

from __future__ import annotations

import base64
import hashlib

from lxml import etree

from soap.security.signers import Identity, find
from tocsin.wire.wss import names
from tocsin.wire.wss.values import canonical
from tocsin.wire.wss.write import _sign

DS = f"{{{names.DS}}}"


def sign_again(root: etree._Element, who: Identity) -> etree._Element:
    """The message with the digests of what its references are to now, and a signature of these."""
    signature = next(root.iter(f"{DS}Signature"))
    for reference in signature.iter(f"{DS}Reference"):
        wanted = reference.get("URI", "")[1:]
        found = root.xpath("//*[@*[local-name()='Id']=$wanted]", wanted=wanted)
        if not isinstance(found, list) or not found:
            continue
        listed = reference.find(f".//{{{names.EXCLUSIVE}}}InclusiveNamespaces")
        prefixes = [] if listed is None else listed.get("PrefixList", "").split()
        digest = hashlib.sha256(canonical(found[0], prefixes)).digest()
        find(reference, "DigestValue").text = base64.b64encode(digest).decode()
    info = find(signature, "SignedInfo")
    value = find(signature, "SignatureValue")
    value.text = base64.b64encode(_sign(who.key, canonical(info))).decode()
    return root
