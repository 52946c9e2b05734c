"""A service of message boxes, where clients have to sign in: its owner and who sends to it, by
what their messages say."""

from __future__ import annotations

import asyncio
from pathlib import Path

import uvloop
from lxml import etree

from soap.security.signers import IDS, SECRETS, TOKENS
from tocsin.access.policy.rights import read_rule
from tocsin.access.policy.tokens import Token, hash_of
from tocsin.access.session import anonymous
from tocsin.config import load
from tocsin.drivers.logger import Logger
from tocsin.drivers.soap_services import MailboxNode, soap_context
from tocsin.services.soap.call import SoapCall
from tocsin.services.soap_services import mailbox_dispatcher
from tocsin.wire.pullpoint import operations as pullpoint
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.wss import write

BASE = "http://127.0.0.1:8400"
SENDER = anonymous("soap", "127.0.0.1:1")
EVENT = b"<reading>7</reading>"


def test_a_box_is_made_filled_and_read_by_who_may(tmp_path: Path) -> None:
    async def main() -> None:
        required = {"log.directory": str(tmp_path), "auth.mode": "required"}
        settings, _ = load(required, {})
        boxes = MailboxNode(settings, Logger())
        app = boxes.open()
        policy = app.access_control.service.policy
        for name, secret in SECRETS.items():
            policy.set_token(Token(IDS[name], name, hash_of(secret), created_ns=0))
        policy.set_rules([read_rule({"principal": "alice", "action": "*"}, "alice", 0)])
        dispatcher = mailbox_dispatcher(soap_context(app), boxes.mailboxes)

        async def ask(path: str, body: bytes, name: str = "", *, private: bool = True) -> bytes:
            message = write_envelope("1.1", body=body)
            if name:
                token = write.username_token(name, TOKENS[name])
                message = etree.tostring(write.with_security(message, [token]))
            call = SoapCall(message, "text/xml", "", path, "", BASE, SENDER, is_private=private)
            return (await dispatcher.answer(call)).body

        create = pullpoint.create_request()
        assert b'code="T216"' in await ask("/soap", create)
        assert b'code="T215"' in await ask("/soap", create, "bob")
        assert b"InvalidSecurity" in await ask("/soap", create, "alice", private=False)
        made = await ask("/soap", create, "alice")
        path = pullpoint.read_pull_point(read_envelope(made)).address.removeprefix(BASE)

        assert b'code="T216"' in await ask(path, EVENT)
        assert await ask(path, EVENT, "alice") == b""
        assert EVENT not in await ask(path, pullpoint.get_request(5), "bob")
        assert EVENT in await ask(path, pullpoint.get_request(5), "alice")
        dispatcher.close()
        await boxes.close()

    uvloop.run(asyncio.wait_for(main(), 30))
