"""The JSON Web vectors of Wycheproof, through our own verification.

They are public, and not copied here. The test runs where WYCHEPROOF names a checkout of
https://github.com/C2SP/wycheproof, and is skipped elsewhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tocsin.access.sign_in.jws import BadKeySet, BadToken, parse, read_key_set

CHECKOUT = os.environ.get("WYCHEPROOF", "")
FOLDER = Path(CHECKOUT) / "testvectors_v1"

# Valid by the vectors, and refused here: the header's algorithm is not the one that the key names
# (the vectors have ES521, which does not exist, and PS256 for a token with PS384).
OTHER_ALGORITHM = {346, 347, 350, 351}

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="WYCHEPROOF does not name a checkout of Wycheproof"
)


def cases(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for group in json.loads((FOLDER / name).read_text())["testGroups"]:
        for test in group["tests"]:
            yield group.get("public") or group["private"], test


def is_accepted(jwks: dict[str, Any], token: object) -> bool:
    try:
        text = token if isinstance(token, str) else json.dumps(token)
        read_key_set(json.dumps(jwks).encode()).check(parse(text))
    except (BadToken, BadKeySet):
        return False
    return True


def is_ours(jwk: dict[str, Any]) -> bool:
    return jwk["kty"] != "oct"


def test_signatures() -> None:
    wrong, accepted, refused = [], 0, 0
    for jwk, test in cases("json_web_signature_test.json"):
        expected = test["result"] == "valid" and is_ours(jwk)
        expected = expected and test["tcId"] not in OTHER_ALGORITHM
        if is_accepted({"keys": [jwk]}, test["jws"]) != expected:
            wrong.append((test["tcId"], test["comment"], test["result"]))
        accepted, refused = accepted + expected, refused + (not expected)

    assert wrong == []
    assert accepted > 20
    assert refused > 300


@pytest.mark.parametrize("name", ["json_web_key_test.json", "json_web_crypto_test.json"])
def test_key_sets(name: str) -> None:
    """Where keys are mixed, those that are ours are used and the others never."""
    wrong = []
    for jwks, test in cases(name):
        if "jws" not in test:
            continue  # about encryption
        jwks = jwks if "keys" in jwks else {"keys": [jwks]}
        expected = test["result"] == "valid" and all(map(is_ours, jwks["keys"]))
        if is_accepted(jwks, test["jws"]) != expected:
            wrong.append((test["tcId"], test["comment"], test["result"]))

    assert wrong == []
