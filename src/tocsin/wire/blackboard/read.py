"""JSON -> messages, whose keys are concepts under the names that the broker knows them by."""

from __future__ import annotations

import msgspec

from tocsin.errors import BadEvent, BadRequest, TooLarge
from tocsin.ontology import Vocabulary
from tocsin.wire import strict_json
from tocsin.wire.blackboard.messages import Message

_FORM = 'Send {"pairs": {"Concept": "value"}}, or a list of such.'

_read_one = msgspec.json.Decoder(Message).decode
_read_many = msgspec.json.Decoder(list[Message]).decode


def read_messages(body: bytes, vocabulary: Vocabulary, messages_max: int) -> list[Message]:
    """The message that the body is, or all of its list; one that is wrong refuses them all."""
    text = body.lstrip()
    try:
        messages = _read_many(text) if text[:1] == b"[" else [_read_one(text)]
        if text.count(b'"') != sum(map(_quotes, messages)):
            strict_json.check(text)
    except msgspec.ValidationError as error:
        raise BadEvent(f"this is not a message: {error}", remedy=_FORM) from None
    except (
        msgspec.DecodeError,
        strict_json.Ambiguous,
        UnicodeDecodeError,
        RecursionError,
    ) as error:
        raise BadRequest(f"the body is not JSON: {error}", remedy=_FORM) from None
    if len(messages) > messages_max:
        raise TooLarge(
            f"the list has {len(messages)} messages", remedy=f"Send at most {messages_max} at once."
        )
    known = vocabulary.concepts.keys()
    return [
        message if message.pairs and message.pairs.keys() <= known else _named(message, vocabulary)
        for message in messages
    ]


def _quotes(message: Message) -> int:
    """How many quotes it has at least: more of them may belong to a name that came twice."""
    texts = len(message.pairs) + bool(message.id) + bool(message.source) + bool(message.time)
    return 4 * texts + 2


def _named(message: Message, vocabulary: Vocabulary) -> Message:
    """The same with each concept's own name; a message of nothing is refused."""
    if not message.pairs:
        raise BadEvent("a message has no pairs", remedy=_FORM)
    pairs = {vocabulary.resolve(name): value for name, value in message.pairs.items()}
    return msgspec.structs.replace(message, pairs=pairs)
