"""The pages docs/settings.md and docs/errors.md, made from what the code knows.

python -m tocsin.cli.pages settings > docs/settings.md
python -m tocsin.cli.pages errors > docs/errors.md
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields

from tocsin import config
from tocsin.errors import catalogue

SETTINGS_HEAD = """\
# Settings

Made by `python -m tocsin.cli.pages settings`; the words are in `src/tocsin/config/tables.py`.

A setting comes from a flag, else from the environment, else from a file, else it has its default.
The file is the one that `--config` or `TOCSIN_CONFIG` names, or `./tocsin.toml`, or
`~/.config/tocsin/config.toml`, or `/etc/tocsin/tocsin.toml`. In the environment a setting is
`TOCSIN_TABLE__KEY`, as in `TOCSIN_HTTP__ADDRESS=127.0.0.1:8500`. What is unknown is an error that
names the nearest setting there is. `tocsin config show --origin` tells what is in force, and why.
"""

ERRORS_HEAD = """\
# Error codes

Made by `python -m tocsin.cli.pages errors`; the words are in `src/tocsin/errors`.

Every error has a code, which stays, and words, which may change. Over HTTP it is an RFC 9457
problem with `code` and `remedy`; on the command line it is two lines and an exit code.
`tocsin explain CODE` prints what stands here.

| code | name | HTTP | exit | what it means |
| --- | --- | --- | --- | --- |
"""


def settings() -> str:
    """Every table of the settings with its keys, defaults and reasons."""
    return "\n".join(
        [SETTINGS_HEAD, *(line for table in fields(config.Settings) for line in _table(table.name))]
    )


def _table(name: str) -> Iterator[str]:
    group = getattr(config.Settings(), name)
    about = inspect.cleandoc(type(group).__doc__ or "").partition(": ")[2]
    yield f"## [{name}]\n\n{about[:1].upper()}{about[1:]}\n"
    yield "| key | default | |\n| --- | --- | --- |"
    reasons = _reasons(type(group))
    for key in fields(group):
        shown = repr(getattr(group, key.name)).replace("'", '"')
        yield f"| `{key.name}` | `{shown}` | {reasons.get(key.name, '')} |"
    yield ""


def _reasons(kind: type) -> dict[str, str]:
    """The comment behind each key, which says why."""
    found = re.findall(r"^    (\w+): [^#\n]*#\s*(.+)$", inspect.getsource(kind), re.M)
    return dict(found)


def errors() -> str:
    """Every error by its code."""
    rows = []
    for code, error in catalogue().items():
        meaning = " ".join((error.__doc__ or "").split()).replace("|", "\\|")
        rows.append(
            f"| {code} | {error.__name__} | {error.http_status} | {error.exit_code} | {meaning} |"
        )
    return ERRORS_HEAD + "\n".join(rows) + "\n"


PAGES = {"settings": settings, "errors": errors}

if __name__ == "__main__":
    print(PAGES[sys.argv[1]](), end="")
