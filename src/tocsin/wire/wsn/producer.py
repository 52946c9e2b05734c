"""The broker's own properties as a NotificationProducer, for filters that ask for them."""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap.names import ONVIF_CONCRETE_SET, TOPICS13, WSN13, XPATH10

DIALECTS: Final = (
    *(f"{TOPICS13}/TopicExpression/{name}" for name in ("Simple", "Concrete", "Full")),
    XPATH10,
    ONVIF_CONCRETE_SET,
)


def producer_properties() -> bytes:
    """The document that ProducerProperties is asked of."""
    dialects = "".join(
        f"<n:TopicExpressionDialect>{uri}</n:TopicExpressionDialect>" for uri in DIALECTS
    )
    return (
        f'<n:NotificationProducerRP xmlns:n="{WSN13}">'
        f"<n:FixedTopicSet>false</n:FixedTopicSet>{dialects}</n:NotificationProducerRP>"
    ).encode()
