"""How an entity finds a topic discovery node (paper 003, section 4.1): it asks all of them, and
those that will answer it name the key that messages to them are sealed to."""

from __future__ import annotations

from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tocsin.access.delegation import statements
from tocsin.errors import BadAdvertisement, BadSignedStatement, TocsinError
from tocsin.event.instant import LATEST_NS
from tocsin.topics.envelope import Sealed, decoded, is_nonce, open_sealed, seal
from tocsin.topics.identity import Entity, Identity
from tocsin.topics.trust import TrustedTdns

QUESTION_KIND: Final = "tocsin-tdn-question+jws"
TDN_KIND: Final = "tocsin-tdn+jws"
ANSWER: Final = "tdn-answer"  # of the sealed message
FRESH_NS: Final = 300 * 10**9  # how far clocks may differ, and a request be old


class TdnQuestion(msgspec.Struct, frozen=True):
    """Who asks for nodes, and how the answers are to be sealed."""

    nonce: str
    asker: Entity
    reply_key: bytes  # X25519, made for this question
    asked_ns: int
    tdn: str = ""  # one that is asked for alone


class TdnIntroduction(msgspec.Struct, frozen=True):
    """What a node says of itself to one asker."""

    nonce: str
    tdn: str
    sealing_key: bytes  # X25519
    sealing_until_ns: int  # then it will have another
    name: str = ""
    institution: str = ""


class _Answer(msgspec.Struct, frozen=True):
    jws: str
    certificate: bytes  # DER, of the node


class KnownTdn(msgspec.Struct, frozen=True):
    """A node that answered, whose certificate the asker believes."""

    tdn: str
    sealing_key: bytes
    sealing_until_ns: int
    name: str
    institution: str
    certificate: bytes


def ask_for_tdns(
    identity: Identity, nonce: str, reply_key: X25519PrivateKey, now_ns: int, tdn: str = ""
) -> str:
    """The signed question."""
    public = reply_key.public_key().public_bytes_raw()
    question = TdnQuestion(nonce, identity.entity, public, now_ns, tdn)
    return statements.sign(QUESTION_KIND, question, identity.signing)


def read_question(text: str, now_ns: int) -> TdnQuestion:
    """A question that its asker has signed, and lately. Raises BadSignedStatement or
    BadCredential."""
    signed = statements.parse(QUESTION_KIND, text)
    found = statements.content(QUESTION_KIND, signed, TdnQuestion)
    statements.check(QUESTION_KIND, signed, found.asker.key)
    if not is_nonce(found.nonce):
        raise _bad("its nonce is malformed")
    check_fresh(found.asked_ns, now_ns)
    return found


def check_fresh(made_ns: int, now_ns: int) -> None:
    """Raise BadSignedStatement for a request of another time: it may have been recorded."""
    if abs(now_ns - made_ns) > FRESH_NS:
        raise _bad(f"it was made {abs(now_ns - made_ns) // 10**9} s from now")


def introduce(
    question: TdnQuestion, tdn: Identity, sealing_key: bytes, sealing_until_ns: int
) -> Sealed:
    """The answer of a node, for the asker alone. Raises BadCredential for a key of the asker that
    nothing can be sealed to."""
    introduction = TdnIntroduction(
        question.nonce, tdn.eid, sealing_key, sealing_until_ns,
        tdn.entity.name, tdn.entity.institution,
    )  # fmt: skip
    answer = _Answer(statements.sign(TDN_KIND, introduction, tdn.signing), tdn.certificate)
    content = msgspec.json.encode(answer)
    return seal(ANSWER, content, question.reply_key, question.asker.eid, question.nonce)


def read_introduction(
    sealed: Sealed,
    eid: str,
    nonce: str,
    reply_key: X25519PrivateKey,
    trusted: TrustedTdns,
    now_ns: int,
) -> KnownTdn:
    """The node that answered. Raises CannotOpen, BadAdvertisement for a node that is not trusted,
    or BadSignedStatement."""
    answer = decoded(open_sealed(sealed, ANSWER, [reply_key], eid, nonce), _Answer)
    key = trusted.check(answer.certificate, now_ns).key
    found = statements.verified(TDN_KIND, answer.jws, TdnIntroduction, key)
    if found.nonce != nonce:
        raise _bad("it answers another question")
    if found.tdn != key.eid or len(found.sealing_key) != 32:
        raise BadAdvertisement(
            f"a topic discovery node says that it is {found.tdn[:40]!r} and has the key of "
            f"{key.eid}",
            remedy="Use another node.",
        )
    if not now_ns < found.sealing_until_ns <= LATEST_NS:
        raise _bad("the key that it names is not used any more")
    return KnownTdn(
        found.tdn, found.sealing_key, found.sealing_until_ns, found.name, found.institution,
        answer.certificate,
    )  # fmt: skip


def _bad(why: str) -> TocsinError:
    return BadSignedStatement(f"a message is refused: {why}", remedy="Ask again.")
