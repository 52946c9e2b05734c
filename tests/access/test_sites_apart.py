"""A token of one broker is worth nothing at another, however it is shown. That certificates of
another site are not, `test_certificates_walk.py` shows, and of OpenID tokens for another broker,
`test_openid_tokens.py`."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import uvloop
from http_walk import BODIES, code_in, fetch
from refusing import refusing
from site_clients import REQUIRED

from tocsin.access.policy.rights import EVERY_RIGHT
from tocsin.access.policy.tokens import Token, hash_of, token_text

SECRET = "t" * 43
WAYS = {
    "bearer": lambda token: {"authorization": f"Bearer {token}"},
    "password": lambda token: {
        "authorization": f"Basic {base64.b64encode(f'ann:{token}'.encode()).decode()}"
    },
    "cookie": lambda token: {"cookie": f"tocsin_token={token}"},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_token_of_another_broker_signs_nobody_in(way: str, tmp_path: Path) -> None:
    """Not even where somebody of the same name has a token of the same id."""

    async def main() -> None:
        async with (
            refusing(tmp_path / "one", settings_of=REQUIRED) as one,
            refusing(tmp_path / "other", settings_of=REQUIRED) as other,
        ):
            admin = Token("d" * 24, "admin", hash_of(SECRET), 0, rights=(EVERY_RIGHT,))
            one.policy.set_token(admin)
            asked = {"principal": "ann", "rights": [{"action": "*"}]}
            by_admin = {"authorization": f"Bearer {token_text(admin.id, SECRET)}"}
            status, text = await fetch(one.http.port, "POST", "/access/tokens", asked, by_admin)
            assert status == 201, text
            made = json.loads(text)
            shown = WAYS[way](made["token"])
            event = BODIES["POST /events"]

            assert (await fetch(one.http.port, "GET", "/access/whoami", None, shown))[0] == 200
            for _ in range(2):
                status, text = await fetch(other.http.port, "POST", "/events", event, shown)
                assert (status, code_in(text)) == (401, "T216")
                same = Token(made["id"], "ann", hash_of("u" * 43), 0, rights=(EVERY_RIGHT,))
                other.policy.set_token(same)

    uvloop.run(main())


def test_the_page_to_sign_in_takes_no_token_of_another_broker(tmp_path: Path) -> None:
    async def main() -> None:
        async with refusing(tmp_path, settings_of=REQUIRED) as broker:
            body = f"token={token_text('d' * 24, SECRET)}&next=/".encode()
            form = {"content-type": "application/x-www-form-urlencoded"}
            status, text = await fetch(broker.http.port, "POST", "/login", body, form)

            assert status == 401
            assert SECRET not in text

    uvloop.run(main())
