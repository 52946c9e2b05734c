"""Regular expressions over topics, by RE2: linear in the topic, without backreferences.

RE2 is not free of cost either. An expression of the largest size takes 1 ms for the longest topic,
and one such as `\\p{L}{500}` takes a second to compile where there is memory for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from tocsin.errors import BadTopicPattern

CHARS_MAX: Final = 256
PROGRAM_SIZE_MAX: Final = 1_000  # instructions; `lab/(radar|lidar)-[0-9]+/.*` has 30
MEMORY_BYTES_MAX: Final = 1 << 17  # of one expression; a larger one is refused when it is compiled
COMPILED_MAX: Final = 1_024  # one more, and with every event each is compiled again, in 50 us

_REMEDY: Final = "Use the syntax of RE2, as in topic regex:'lab/(radar|lidar)-[0-9]+'."


@lru_cache(maxsize=COMPILED_MAX)
def compile_topic_regex(text: str) -> Callable[[str], bool]:
    """Whether a topic is, as a whole, what the expression says. Raises BadTopicPattern."""
    import re2

    if not text or len(text) > CHARS_MAX:
        raise BadTopicPattern(
            f"the regular expression has {len(text)} characters", remedy=f"Use 1 to {CHARS_MAX}."
        )
    options = re2.Options()
    options.max_mem = MEMORY_BYTES_MAX
    options.log_errors = False
    options.never_capture = True
    try:
        compiled = re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise BadTopicPattern(
            f"the regular expression {text[:80]!r} cannot be used: {_problem(error)}",
            remedy=_REMEDY,
        ) from None
    if compiled.programsize > PROGRAM_SIZE_MAX:
        raise BadTopicPattern(
            f"the regular expression {text[:80]!r} is too large: {compiled.programsize} "
            f"instructions, and {PROGRAM_SIZE_MAX} are possible",
            remedy="Use fewer and smaller counts, and no classes of Unicode characters.",
        )
    return _matcher(compiled.fullmatch)


def _matcher(fullmatch: Any) -> Callable[[str], bool]:
    def matches(topic: str) -> bool:
        return fullmatch(topic) is not None

    return matches


def _problem(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "it has half of a surrogate pair"
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
