"""What every peer does with a frame, whichever side of whatever connection it is."""

from __future__ import annotations

from tocsin.errors import BadMessage
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import Conversation, Ended, Received, Refusal, Stale
from tocsin.wire.gma.read import read


def receive(conversation: Conversation, frame: bytes) -> Received:
    """What the message in a frame means; a request that cannot be read is refused.

    Raises if it is no message, or nothing led to it: then the connection is of no more use.
    """
    try:
        message = read(frame)
    except BadMessage as error:
        if not isinstance(error.refusal, m.Reply):
            raise
        return Refusal(error.refusal)
    return conversation.receive(message)


def reply_to(received: Received) -> m.Message | None:
    """What has to be sent back whatever the receiver does, if anything."""
    match received:
        case Ended(reply=reply) | Refusal(reply=reply):
            return reply
        case Stale(answer=answer):
            return answer
        case _:
            return None
