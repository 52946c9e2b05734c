"""Regular expressions over every form of descriptor, by RE2, which takes linear time.

Linear is not cheap: limits on the expression keep one byte of text from costing more than some ten
nanoseconds, and `search` takes no more text at once than `SLICE_WORK_MAX` allows for, so that
whoever calls it can look at the clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tocsin.errors import BadTopicQuery
from tocsin.topics.queries.grams import in_grams
from tocsin.topics.queries.regex_literals import required_texts
from tocsin.topics.queries.requirement import Requirement

EXPRESSION_CHARS_MAX: Final = 256
MEMORY_BYTES_MAX: Final = 1 << 20  # what is larger is refused at once; 64 MB took RE2 a second
PROGRAM_SIZE_MAX: Final = 1_000  # an expression of 1,300 took 7 s for 100 kB
SLICE_WORK_MAX: Final = 16_000_000  # program size times bytes: some 0.2 s at worst

# What refers to the whole text and not to a line, or to single bytes: then texts are not joined.
_OF_THE_TEXT: Final = re.compile(r"\\[AzC]|\(\?[a-zA-Z]*-[a-zA-Z]*m")


@dataclass(frozen=True, slots=True)
class Regex:
    """An expression, to be found within a line: `^` and `$` are the line's ends."""

    compiled: Any  # a compiled expression of re2, which has no types
    size: int
    required: Requirement  # grams that must occur
    is_of_text: bool


def compile_regex(expression: str) -> Regex:
    """BadTopicQuery if it is none, or may take too long."""
    import re2

    if len(expression) > EXPRESSION_CHARS_MAX:
        raise BadTopicQuery(
            f"the regular expression has {len(expression)} characters",
            remedy=f"Write at most {EXPRESSION_CHARS_MAX}.",
        )
    options = re2.Options()
    options.max_mem = MEMORY_BYTES_MAX
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    try:
        compiled = re2.compile(f"(?m){expression}", options)
    except (re2.error, UnicodeEncodeError) as error:
        raise BadTopicQuery(
            f"the regular expression cannot be used: {_words(error)}",
            remedy="Write one of RE2, which has no backreferences and no look-around.",
        ) from None
    size = max(compiled.programsize, compiled.reverseprogramsize)
    if size > PROGRAM_SIZE_MAX:
        raise BadTopicQuery(
            f"the regular expression is too large: {size} instructions",
            remedy="Repeat less: counted repetitions such as {100} make it large.",
        )
    return Regex(
        compiled,
        size,
        in_grams(required_texts(expression)),
        _OF_THE_TEXT.search(expression) is not None,
    )


def search(regex: Regex, texts: Sequence[bytes]) -> Iterator[list[bool]]:
    """Whether it is found in each of the texts (lines in UTF-8), slice by slice."""
    bytes_max = 0 if regex.is_of_text else SLICE_WORK_MAX // max(1, regex.size)
    start = 0
    while start < len(texts):
        end, size = start + 1, len(texts[start])
        while end < len(texts) and size + len(texts[end]) <= bytes_max:
            size += len(texts[end])
            end += 1
        yield _found_in(regex, texts[start:end])
        start = end


def _found_in(regex: Regex, texts: Sequence[bytes]) -> list[bool]:
    """By one search through all of them: a call for each would cost more than the search."""
    joined = b"\n".join(texts)
    find = regex.compiled.search
    found = [False] * len(texts)
    start = 0
    match = find(joined)
    for at, text in enumerate(texts):
        if match is None:
            break
        end = start + len(text)
        if match.start() <= end:
            found[at] = True
            if at + 1 < len(texts):
                match = find(joined, end + 1)
        start = end + 1
    return found


def _words(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "it is not Unicode text"
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
