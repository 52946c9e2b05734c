"""What a refusal says: the right that is missing, who grants it, and nothing about what exists."""

from __future__ import annotations

import pytest

from tocsin.access.decision import Action, not_allowed
from tocsin.access.policy.policy import Policy
from tocsin.access.resources import KINDS
from tocsin.access.session import Credential, CredentialKind, Principal, Session, anonymous
from tocsin.access.wording import MADE_BY
from tocsin.errors import NotAllowed, NotSignedIn

ANN = Session(
    Principal("ann"), "http", "192.0.2.1:1", Credential(CredentialKind.TOKEN, "certificate/1")
)


@pytest.mark.parametrize(
    ("action", "resource", "problem", "right"),
    [
        ("publish", "lead/ohio/radar", "publish to lead/ohio/radar", "publish lead/ohio/radar"),
        ("publish", "", "publish without a topic", "publish **"),
        ("publish", "*", "publish on any topic", "publish TOPIC"),
        ("publish", "endpoint/soap", "publish on any topic", "publish TOPIC"),
        ("subscribe", "filter/everything", "subscribe to any event", "subscribe TOPIC"),
        (
            "subscribe",
            "filter/load5 >= 5",
            "subscribe to events that pass load5 >= 5",
            "subscribe TOPIC",
        ),
        ("read", "subscription/own", "have subscriptions", "subscribe TOPIC"),
        ("read", "resource/own", "read resources", "read resource/*"),
        ("manage", "resource/own", "have resources", "publish TOPIC"),
        ("read", "events", "read the log", "read TOPIC"),
        ("read", "run/r1", "read the run r1", "read run/r1"),
        ("manage", "clock", "manage the clock of the broker", "manage clock"),
        ("manage", "subscription/4f2a", "manage the subscription 4f2a", "manage subscription/4f2a"),
        ("subscribe", "box/4f2a", "use the message box 4f2a", "subscribe box/4f2a"),
    ],
)
def test_a_refusal_names_the_right_as_one_would_grant_it(
    action: str, resource: str, problem: str, right: str
) -> None:
    error = not_allowed(ANN, Action(action), resource, "ops@example.org")

    assert error.problem == f"ann may not {problem}"
    assert f"`{right}`" in error.remedy
    assert "ops@example.org can grant" in error.remedy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("action", [Action.READ, Action.SUBSCRIBE, Action.MANAGE])
def test_no_refusal_has_a_name_that_only_the_broker_uses(kind: str, action: Action) -> None:
    names = ["own"] if kind in MADE_BY else []
    names += ["load5 > 3", "everything"] if kind == "filter" else []

    for name in names:
        assert f"{kind}/{name}" not in str(not_allowed(ANN, action, f"{kind}/{name}"))


def test_what_exists_is_refused_in_the_words_for_what_does_not() -> None:
    policy = Policy(lambda: 0)

    def words(resource: str) -> str:
        with pytest.raises(NotAllowed) as caught:
            policy.decide(ANN, Action.READ, resource)
        return str(caught.value).replace(resource.partition("/")[2], "X")

    assert words("run/there") == words("run/nowhere")


def test_a_refusal_is_one_line_however_it_was_asked() -> None:
    error = not_allowed(ANN, Action.PUBLISH, "a\r\n\x1b[31m" + "b" * 1_000)

    assert error.problem.isprintable()
    assert len(error.problem) < 300


def test_who_has_not_signed_in_is_told_whom_to_ask() -> None:
    policy = Policy(lambda: 0, contact="ops@example.org")

    with pytest.raises(NotSignedIn) as caught:
        policy.decide(anonymous("http"), Action.READ, "status")

    assert caught.value.problem == "to read the figures of the broker, a credential is needed"
    assert "ops@example.org" in caught.value.remedy
    assert caught.value.exit_code == 4
