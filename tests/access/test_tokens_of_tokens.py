"""A token that somebody made for himself is over with the credential that he made it with."""

from __future__ import annotations

import pytest
from principals import Site, as_, event

from tocsin.access.policy.tokens import SECRET_BYTES
from tocsin.access.session import Session
from tocsin.access.sign_in.sign_in import SignIn
from tocsin.errors import BadRight, NotSignedIn
from tocsin.services.access.requests import TokenRequest
from tocsin.services.access.service import AccessOptions, AccessService

SECRET = "s" * (SECRET_BYTES * 4 // 3 + 1)
CERTIFICATE = "certificate/ca/7"
RULE: dict[str, object] = {"principal": "ann", "action": ["subscribe", "publish"]}


class Tokens:
    def __init__(self, site: Site) -> None:
        self.site = site
        self.service = AccessService(
            site.port,
            site.policy,
            AccessOptions(required=True),
            new_secret=lambda: SECRET,
            rights_changed=site.runtime.broker.rights_changed,
        )
        self.sign_in = SignIn(site.policy)

    def made_by(self, session: Session) -> tuple[str, Session]:
        """The text of a token for ann, and who shows it."""
        made = self.service.create_token(session, TokenRequest("ann"))
        token, text = self.site.runtime.run(made)
        return text, as_("ann", key=token.key)

    def is_good(self, text: str, session: Session) -> bool:
        """Signing in with it, and what has signed in with it already, are answered alike."""
        try:
            self.sign_in.by_token(text)
        except NotSignedIn:
            with pytest.raises(NotSignedIn):
                self.site.policy.validate(session)
            return False
        self.site.policy.validate(session)
        return True


def test_a_token_made_with_a_certificate_is_over_when_that_is_revoked() -> None:
    site = Site(RULE)
    tokens = Tokens(site)
    text, session = tokens.made_by(as_("ann", key=CERTIFICATE))
    later = tokens.made_by(session)
    box = site.subscribe(session, sink=None).subscription.id
    assert tokens.is_good(text, session)
    assert tokens.is_good(*later)

    site.policy.set_revoked([CERTIFICATE])
    site.publish(event(1))

    assert not tokens.is_good(text, session)
    assert not tokens.is_good(*later)
    assert site.port.view_box(as_("admin"), box).withheld == 1


def test_a_token_made_with_a_token_is_over_when_that_is_revoked() -> None:
    site = Site(RULE)
    tokens = Tokens(site)
    first, given = tokens.made_by(as_("admin"))
    own = tokens.made_by(given)

    tokens_before = Tokens(site)  # as after a restart
    site.runtime.run(tokens_before.service.revoke_token(as_("admin"), first.split("_")[1]))

    assert not tokens.is_good(*own)
    site.policy.set_revoked([])
    assert not Tokens(site).is_good(*own)


def test_a_token_that_an_administrator_gave_outlives_the_administrators() -> None:
    site = Site(RULE)
    tokens = Tokens(site)
    given = tokens.made_by(as_("admin", key=CERTIFICATE))

    site.policy.set_revoked([CERTIFICATE])

    assert tokens.is_good(*given)


def test_tokens_are_not_made_of_tokens_without_end() -> None:
    tokens = Tokens(Site(RULE))
    session = as_("ann", key=CERTIFICATE)
    for _ in range(8):
        _, session = tokens.made_by(session)

    with pytest.raises(BadRight):
        tokens.made_by(session)
