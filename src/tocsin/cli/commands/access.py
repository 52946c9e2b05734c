"""`tocsin access`: who may do what, and why."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from tocsin.cli.parser import Parser, add_actions, add_broker

if TYPE_CHECKING:
    from tocsin.cli.rest import Rest

SUMMARY = "Show and grant rights, make and revoke tokens, explain decisions"
EXAMPLES = """
  tocsin access ls                                  the rules
  tocsin access allow alice publish 'lead/**'
  tocsin access allow @operators read               a group, everything
  tocsin access allow bob subscribe 'lead/**' --filter 'load5 < 9' --expires P30D
  tocsin access deny RULE                           take a right back
  tocsin access token alice --right publish:lead/** --expires PT1H --out alice.token
  tocsin access token bob --right 'subscribe:lead/**' --filter 'load5 < 9'
  tocsin access tokens                              those there are
  tocsin access revoke TOKEN
  tocsin access check alice publish lead/ohio       exit code 4 if it is not allowed
  tocsin access why alice publish lead/ohio         the same, with the rule that decides
  tocsin access whoami
  tocsin access audit --denied --since 1h           what was refused, to whom and by which rule
  tocsin access audit --since 30d --csv > audit.csv
  tocsin access audit --verify                      whether the audit log is as it was written
  tocsin access quotas                              how much everybody has, and may have
"""
ACTIONS = ("publish", "subscribe", "read", "manage")
_TOKENS = (
    "tocsin access token alice --right read --expires PT1H",
    "tocsin access token ci --right 'publish:lead/test/**' --out ci.token",
    "tocsin access token bob --right 'subscribe:lead/**' --filter 'load5 < 9' --withheld",
    "tocsin access token eve --right read --resource 'run/*' --right read --resource status",
)


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    _add(actions, "ls", "list the rules", "tocsin access ls --json")
    allow = _add(actions, "allow", "grant a right", "tocsin access allow alice publish 'lead/**'")
    allow.add_argument("who", metavar="WHO", help="a principal, or @GROUP")
    allow.add_argument("action_name", metavar="ACTION", help=f"{', '.join(ACTIONS)}, or several")
    allow.add_argument("topic", metavar="TOPIC", nargs="?", help="a pattern; default: everything")
    allow.add_argument("--filter", metavar="FILTER", help="of these events, those that pass it")
    allow.add_argument("--resource", metavar="NAME", help="no events, but this, as in run/*")
    allow.add_argument("--expires", metavar="WHEN", help="a moment or a duration, as in P30D")
    allow.add_argument(
        "--withheld", action="store_true", help="may learn how many events are withheld"
    )
    deny = _add(actions, "deny", "take a right back", "tocsin access deny 6a0f")
    deny.add_argument("id", metavar="RULE", help="the id of a rule made over the API")
    _add_token(_add(actions, "token", "make a token", *_TOKENS))
    _add(actions, "tokens", "list tokens", "tocsin access tokens --json")
    revoke = _add(actions, "revoke", "revoke a token", "tocsin access revoke 6a0f")
    revoke.add_argument("id", metavar="TOKEN", help="the id of the token")
    for name in ("check", "why"):
        asks = _add(
            actions,
            name,
            "what would be decided" if name == "check" else "and by which rule",
            f"tocsin access {name} alice publish lead/ohio",
        )
        asks.add_argument("who", metavar="WHO", help="a principal; `me` for oneself")
        asks.add_argument("action_name", metavar="ACTION", choices=ACTIONS, help=", ".join(ACTIONS))
        asks.add_argument("topic", metavar="TOPIC", nargs="?", help="a topic")
        asks.add_argument("--resource", metavar="NAME", help="no events, but this, as in run/r1")
        asks.add_argument("--group", metavar="NAMES", help="groups of its credential")
        asks.add_argument("--token", metavar="ID", help="the id of the token that it would use")
    _add(actions, "whoami", "who the broker takes the caller for", "tocsin access whoami")
    _add_audit(_add(actions, "audit", "what was decided", "tocsin access audit --denied"))
    _add(actions, "quotas", "use beside limits", "tocsin access quotas")


def _add_token(parser: Parser) -> None:
    from tocsin.cli.access.rights import AddRight, OfRight

    option = parser.add_argument
    option("who", metavar="PRINCIPAL", help="whose token it is")
    option(
        "--right",
        metavar="ACTION[:TOPIC]",
        action=AddRight,
        help="what it is good for; without any, what the rules give to the principal",
    )
    words = "of the events of the --right before it, those that pass it"
    option("--filter", metavar="FILTER", action=OfRight, help=words)
    words = "the --right before it is about no events, but this, as in run/*"
    option("--resource", metavar="NAME", action=OfRight, help=words)
    words = "until when the --right before it holds, a moment or a duration"
    option("--right-expires", metavar="WHEN", action=OfRight, help=words)
    words = "by the --right before it, may learn how many events are withheld"
    option("--withheld", nargs=0, action=OfRight, help=words)
    option("--group", metavar="NAME", action="append", help="a group it belongs to")
    option("--expires", metavar="WHEN", help="a moment or a duration (12 hours)")
    option("--out", metavar="FILE", help="write it to a file that its owner alone can read")


def _add_audit(parser: Parser) -> None:
    option = parser.add_argument
    option("--principal", metavar="NAME", help="by whom")
    option("--action", dest="action_name", choices=ACTIONS, help=", ".join(ACTIONS))
    option("--denied", action="store_true", help="only what was refused")
    option("--topic", metavar="PATTERN", help="about events on these topics")
    option("--kind", metavar="KIND", help="only such records: sign-in, change, quota, ...")
    option("--since", metavar="T", help="from then on: 1h, 7d, 2026-03-01T12:00:00Z")
    option("--until", metavar="T", help="before then")
    option("--limit", metavar="N", type=int, help="so many at most (the last 100)")
    option("--csv", action="store_true", help="as CSV, with a line of names")
    option("--follow", action="store_true", help="go on with what is decided from now on")
    option("--verify", action="store_true", help="whether the log is as it was written")
    option("--data", metavar="DIR", help="with --verify: of a data directory on this machine")


def _add(actions: Any, name: str, words: str, *examples: str) -> Parser:
    lines = "".join(f"\n  {each}" for each in examples)
    parser: Parser = actions.add_parser(name, examples=f"{lines}\n", help=words)
    add_broker(parser)
    return parser


def run(arguments: Namespace) -> int:
    from tocsin.cli.rest import Rest

    with Rest(arguments.broker) as rest:
        return _RUN[arguments.action](rest, arguments)


def _ls(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.render import show_json, table

    rules = rest.get("/access/rules")["rules"]
    if arguments.json:
        show_json({"rules": rules})
        return 0
    rows = [
        (
            each["id"],
            f"@{each['group']}" if "group" in each else each["principal"],
            _joined(each["action"]),
            each.get("resource") or each.get("topic", ""),
            each.get("filter", ""),
            each.get("expires", ""),
            _expired(each),
        )
        for each in rules
    ]
    table(("rule", "who", "may", "what", "filter", "until", ""), rows)
    return 0


def _expired(shown: dict[str, Any]) -> str:
    return "expired" if shown.get("expired") else ""


def _joined(action: str | list[str]) -> str:
    return action if isinstance(action, str) else ",".join(action)


def _allow(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.render import say, show_json

    who = arguments.who
    rule: dict[str, object] = {"group": who[1:]} if who.startswith("@") else {"principal": who}
    rule["action"] = arguments.action_name.split(",")
    for name in ("topic", "filter", "resource", "expires"):
        if getattr(arguments, name):
            rule[name] = getattr(arguments, name)
    if arguments.withheld:
        rule["withheld"] = True
    made = rest.post("/access/rules", rule)
    if arguments.json:
        show_json(made)
    else:
        say(f"rule {made['id']}")
    return 0


def _deny(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.rest import remove

    return remove(rest, "access/rules", arguments)


def _token(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.render import say, show_json

    asked: dict[str, object] = {"principal": arguments.who}
    if arguments.right:
        asked["rights"] = arguments.right
    if arguments.group:
        asked["groups"] = arguments.group
    if arguments.expires:
        asked["expires"] = arguments.expires
    made = rest.post("/access/tokens", asked)
    if arguments.out is not None:
        _keep(rest, made, arguments.out)
    if arguments.json:
        show_json(made)
        return 0
    if arguments.out is None:
        print(made["token"])
    say(f"token {made['id']} of {made['principal']}, good until {made['expires']}; not shown again")
    return 0


def _keep(rest: Rest, made: dict[str, Any], path: str) -> None:
    """Write the token to the file; a token that nobody gets to know is revoked."""
    from tocsin.cli.rest import item
    from tocsin.credentials.files import write_private
    from tocsin.errors import BadCredential

    try:
        write_private(path, made["token"] + "\n")
    except BadCredential:
        rest.delete(item("access/tokens", made["id"]))
        raise
    del made["token"]


def _tokens(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.access.rights import right_words
    from tocsin.cli.render import show_json, table

    tokens = rest.get("/access/tokens")["tokens"]
    if arguments.json:
        show_json({"tokens": tokens})
        return 0
    rows = [
        (
            each["id"],
            each["principal"],
            "; ".join(map(right_words, each.get("rights", []))) or "by the rules",
            each["expires"] or "never",
            f"revoked {each['revoked']}" if "revoked" in each else _expired(each),
        )
        for each in tokens
    ]
    table(("token", "principal", "may", "until", ""), rows)
    return 0


def _revoke(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.rest import remove

    return remove(rest, "access/tokens", arguments, "revoked")


def _check(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.render import say, show_json

    found = rest.get(
        "/access/check",
        principal=None if arguments.who == "me" else arguments.who,
        action=arguments.action_name,
        topic=arguments.topic,
        resource=arguments.resource,
        group=arguments.group,
        token=arguments.token,
    )
    if arguments.json:
        show_json(found)
    else:
        print("allowed" if found["allowed"] else "not allowed")
        if arguments.action == "why":
            print(_why(found))
            if not found["allowed"] and arguments.token is None and arguments.who != "me":
                say("This is by the rules; for a token with rights of its own give --token ID.")
    return 0 if found["allowed"] else 4


def _why(found: dict[str, Any]) -> str:
    rule = found.get("rule")
    if rule is None:
        return str(found["reason"])
    from tocsin.cli.access.rights import right_words

    whose = f"@{rule['group']}" if "group" in rule else rule["principal"]
    return f"rule {rule['id']}: {whose} may {right_words(rule)}"


def _whoami(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.render import show_json

    found = rest.get("/access/whoami")
    if arguments.json:
        show_json(found)
        return 0
    groups = f", in {', '.join(found['groups'])}" if found["groups"] else ""
    until = f", until {found['expires']}" if found["expires"] else ""
    by = f" by {found['credential']}" if found["credential"] else ", not signed in"
    print(f"{found['principal']}{groups}{by}{until}")
    return 0


def _audit(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.access.audit import audit

    return audit(rest, arguments)


def _quotas(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.access.audit import quotas

    return quotas(rest, arguments)


_RUN = {
    "audit": _audit,
    "quotas": _quotas,
    "ls": _ls,
    "allow": _allow,
    "deny": _deny,
    "token": _token,
    "tokens": _tokens,
    "revoke": _revoke,
    "check": _check,
    "why": _check,
    "whoami": _whoami,
}
