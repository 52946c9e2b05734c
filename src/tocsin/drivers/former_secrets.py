"""Signing secrets that former versions kept in clear are sealed when the broker starts."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.drivers.logger import WriteLog
from tocsin.drivers.secret_box import SecretBox, is_sealed
from tocsin.errors import NoSuchSubscription
from tocsin.event.subscription import Change
from tocsin.wire.cloudevents.webhook import SIGNING

WHO: Final = "secrets"


async def seal_former_secrets(port: BrokerPort, box: SecretBox, note: WriteLog) -> None:
    """Write each such subscription anew; one that ends meanwhile is left alone."""
    session, count = internal(WHO), 0
    for view in port.views(session):
        subscription = view.subscription
        secret = subscription.config.secret
        if secret is None or is_sealed(secret):
            continue
        sealed = box.seal(secret, SIGNING)
        config = msgspec.structs.replace(subscription.config, secret=sealed)
        with suppress(NoSuchSubscription):
            await port.change(session, subscription.id, Change(config=config), subscription.kind)
            count += 1
    if count:
        note("info", "signing secrets that were kept in clear are sealed", subscriptions=count)
