"""Which topics are owned."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from tocsin.access.delegation.protected import is_topic_uuid, named_uuids, owned
from tocsin.topics.advertisement import topic_uuid

UUID = "0123abcd-4567-870c-89ab-0123456789ab"
OTHER = "ffffffff-ffff-870c-bfff-ffffffffffff"


def test_the_level_of_the_uuid_and_all_below_it_are_owned() -> None:
    at, below = owned(f"lab/{UUID}"), owned(f"lab/{UUID}/radar/1")

    assert at is not None
    assert (at.uuid, at.above, at.below) == (UUID, ("lab",), ())
    assert below is not None
    assert (below.uuid, below.below) == (UUID, ("radar", "1"))


def test_of_two_uuids_the_first_one_owns() -> None:
    found = owned(f"{UUID}/a/{OTHER}")

    assert found is not None
    assert found.uuid == UUID
    assert found.below == ("a", OTHER)
    assert named_uuids(["*", UUID, "**", OTHER]) == (UUID, OTHER)


def test_what_only_looks_like_a_uuid_is_nobodys() -> None:
    for level in (
        UUID.upper(),
        UUID + "0",
        "x" + UUID,
        UUID.replace("870c", "470c"),
        UUID.replace("-89ab-", "-c9ab-"),
        "-870c-",
        UUID.replace("0", "０"),
        "",
    ):
        assert owned(f"lab/{level}/x") is None, level


@given(
    salt=st.binary(min_size=32, max_size=32),
    tdn=st.text("0123456789abcdef", min_size=40, max_size=40),
    key=st.binary(max_size=64),
)
def test_every_uuid_that_is_made_is_recognised(salt: bytes, tdn: str, key: bytes) -> None:
    thumbprint = hashlib.sha256(key).digest()

    made = topic_uuid(tdn, thumbprint, salt)

    assert is_topic_uuid(made)
    assert made == topic_uuid(tdn, thumbprint, salt)
    assert made != topic_uuid(tdn, hashlib.sha256(key + b"x").digest(), salt)
    assert made != topic_uuid(tdn, thumbprint, bytes([salt[0] ^ 1]) + salt[1:])


def test_a_uuid_is_these_bits_of_the_hash() -> None:
    # Worked out apart from the code: the first 48 bits, 870c, the variant 10, 62 more bits.
    tdn, thumbprint, salt = "a" * 40, bytes(range(32)), bytes(32)
    content = b"tocsin topic\0" + tdn.encode() + b"\0" + thumbprint + b"\0" + salt
    bits = bin(int(hashlib.sha256(content).hexdigest(), 16))[2:].zfill(256)

    whole = int(bits[:48] + f"{0x870C:016b}" + "10" + bits[48:110], 2)

    assert topic_uuid(tdn, thumbprint, salt).replace("-", "") == f"{whole:032x}"
