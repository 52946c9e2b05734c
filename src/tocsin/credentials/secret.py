"""Secret: a text that is not printed by accident."""

from __future__ import annotations

from typing import Final, NoReturn

from tocsin.errors import BadCredential

TOKEN_CHARS_MAX: Final = 8_192  # an OpenID token with many groups has some thousands


class Secret:
    """Shows its text to `reveal` alone: not to a log, an error, a traceback or a pickle."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text, to be sent or stored."""
        return self._text

    def __repr__(self) -> str:
        return "<secret>"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


def read_token(text: str, where: str) -> Secret:
    """A token as it is sent; BadCredential, without it, if it is none."""
    token = text.strip()
    if not token:
        problem = "has no token in it"
    elif len(token) > TOKEN_CHARS_MAX:
        problem = f"is longer than a token, over {TOKEN_CHARS_MAX} characters"
    elif not (token.isascii() and token.isprintable()) or " " in token:
        problem = "is not a token: it has spaces or other characters that a token cannot have"
    else:
        return Secret(token)
    raise BadCredential(
        f"{where} {problem}",
        remedy="Put the token there alone, on one line, as the broker gave it.",
    )
