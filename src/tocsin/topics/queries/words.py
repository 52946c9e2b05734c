"""Text queries: words without case and accents, all of which must occur.

The index and a query take words from a text by the same function, so that they agree on what a
word is, in every script.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from tocsin.errors import BadTopicQuery

QUERY_CHARS_MAX: Final = 256
TERMS_MAX: Final = 16
WORD_CHARS_MAX: Final = 64  # of a longer word only these count
# All words with a beginning are gathered first: 40 ms for `w*` among 30,000 advertisements.
PREFIX_CHARS_MIN: Final = 2
PREFIXES_MAX: Final = 4

# A letter or digit in any script; the rest stands between words.
_WORD = re.compile(r"[^\W_]+")
_TERM = re.compile(r'"([^"]*)"|([^\s"]+)')


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must follow each other in one text. The last may be only a word's beginning."""

    words: tuple[str, ...]
    is_prefix: bool = False


def words_of(text: str) -> list[str]:
    """The words of a text in their order, each in the form by which it is found."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in decomposed if not unicodedata.combining(char))
    return [word[:WORD_CHARS_MAX] for word in _WORD.findall(text.casefold())]


def parse_text_query(text: str) -> tuple[Term, ...]:
    """`doppler radar`: both words; `rad*`: a beginning; `"doppler radar"`: one after the other."""
    if len(text) > QUERY_CHARS_MAX:
        raise BadTopicQuery(
            f"the text query has {len(text)} characters",
            remedy=f"Write at most {QUERY_CHARS_MAX}.",
        )
    if text.count('"') % 2:
        raise BadTopicQuery(
            "a quoted phrase has no end",
            remedy='Close it with a second ".',
            text=text,
            position=text.rindex('"'),
        )
    terms: list[Term] = []
    for found in _TERM.finditer(text):
        words = tuple(words_of(found[0]))
        if words:
            terms.append(Term(words, is_prefix=found[0].endswith("*")))
    if not terms:
        raise BadTopicQuery(
            "the text query has no word",
            remedy="Write words that occur in the topic's description.",
        )
    if len(terms) > TERMS_MAX:
        raise BadTopicQuery(
            f"the text query has {len(terms)} words", remedy=f"Write at most {TERMS_MAX}."
        )
    prefixes = [term.words[-1] for term in terms if term.is_prefix]
    if len(prefixes) > PREFIXES_MAX or any(len(each) < PREFIX_CHARS_MIN for each in prefixes):
        raise BadTopicQuery(
            "the text query has too many words that end in *, or too short ones",
            remedy=f"Use * after {PREFIX_CHARS_MIN} letters or more, {PREFIXES_MAX} times at most.",
        )
    return tuple(dict.fromkeys(terms))
