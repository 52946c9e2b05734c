"""onvif-zeep-async at a broker where clients have to sign in: by a token as the password."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from onvif import ONVIFCamera
from zeep.exceptions import Fault

from served import Served, served


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_AUTH__MODE": "required"}) as running:
        yield running


def pull_point_of(broker: Served, password: str, *, encrypt: bool) -> str:
    """The address of the pull point that was made."""

    async def main() -> str:
        host, _, port = broker.address.rpartition(":")
        camera = ONVIFCamera(host, int(port), "admin", password, encrypt=encrypt)
        try:
            await camera.update_xaddrs()
            events = await camera.create_events_service()
            made = await events.CreatePullPointSubscription()
            return str(made.SubscriptionReference.Address._value_1)
        finally:
            await camera.close()

    return asyncio.run(asyncio.wait_for(main(), 60))


def test_a_camera_s_client_signs_in_with_a_token_in_clear(broker: Served) -> None:
    token = (broker.directory / "admin.token").read_text().strip()

    assert "/soap/subscriptions" in pull_point_of(broker, token, encrypt=False)


def test_with_a_digest_or_a_wrong_token_it_does_not(broker: Served) -> None:
    token = (broker.directory / "admin.token").read_text().strip()

    for password, encrypt in ((token, True), ("wrong", False)):
        with pytest.raises(Fault):
            pull_point_of(broker, password, encrypt=encrypt)
