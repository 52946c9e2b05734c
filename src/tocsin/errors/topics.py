"""What may go wrong about topics: statements and their signatures, rights that are passed on,
advertisements, and how topics are written."""

from __future__ import annotations

from tocsin.errors.access import NotAllowed
from tocsin.errors.root import TocsinError


class BadSignedStatement(TocsinError):
    """A signed statement cannot be used: it is malformed, of another kind, or wrongly signed.

    Statements are advertisements of topics, requests for them, grants, proofs and revocations. The
    message says which one it is and what is wrong. Have it made again by whoever signed it.
    """

    code = "T222"


class GrantRefused(NotAllowed):
    """A chain of grants does not give this right now. The message names the link that failed.

    Link 1 is signed by the owner of the topic, each later one by the holder of the one before.
    Whoever signed the link that failed can give another.
    """

    code = "T223"


class ProofRefused(NotAllowed):
    """Whoever presented a grant or signs in did not prove to hold its key.

    A proof is for one nonce of one broker, and for a short time. Ask for a nonce and sign again.
    """

    code = "T224"
    http_status = 401


class BadSynopsis(TocsinError):
    """The synopsis of a topic is invalid: how its events look, and where its UUID goes."""

    code = "T360"


class BadDescriptors(TocsinError):
    """The description of a topic is invalid, or larger than a topic discovery node keeps."""

    code = "T361"


class BadAdvertisement(TocsinError):
    """An advertisement of a topic does not hold: it was not made as it says, or not for this use.

    The message says what does not fit. Do not use the topic under the name that it claims.
    """

    code = "T362"


class AdvertisementEnded(TocsinError):
    """The advertisement of a topic has expired, was withdrawn, or there is a newer version."""

    code = "T363"
    http_status = 410
    exit_code = 5


class CannotOpen(TocsinError):
    """A sealed message cannot be opened: it is for another recipient or request, or was changed."""

    code = "T364"


class CreationRefused(TocsinError):
    """A topic discovery node does not create or renew this topic. Nothing was kept of the request.

    The message says what is wrong with the request. Change it, or ask another node.
    """

    code = "T365"


class BadEventSignature(TocsinError):
    """An event says that it is signed, and the signature does not hold.

    It was changed after it was signed, another key signed it, or the signature is malformed.
    """

    code = "T366"
