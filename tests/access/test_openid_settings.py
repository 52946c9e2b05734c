"""How an issuer is configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.access.sign_in.issuer import Issuer
from tocsin.config import load
from tocsin.config.openid import OpenIdSettings, check_together, read_issuer
from tocsin.errors import BadSetting

GOOD = {"issuer": "https://sso.example.org/realms/lab", "audience": "tocsin", "prefix": ""}


def test_without_an_issuer_there_is_none() -> None:
    assert load({}, {})[0].openid.issuers() == ()


def test_an_issuer_is_read_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.toml"
    file.write_text(
        '[openid]\nissuer = "https://sso.example.org/realms/lab"\naudience = "tocsin"\n'
        'name_claim = "preferred_username"\nprefix = "lab:"\n'
    )

    [issuer] = load({}, {}, file)[0].openid.issuers()

    assert issuer == Issuer(
        "https://sso.example.org/realms/lab", "tocsin", "preferred_username", "groups", "lab:"
    )


def test_settings_without_an_issuer_are_an_error() -> None:
    with pytest.raises(BadSetting, match=r"openid\.issuer"):
        OpenIdSettings(audience="tocsin").issuers()


@pytest.mark.parametrize("audience", ["", "  "])
def test_an_issuer_needs_an_audience(audience: str) -> None:
    with pytest.raises(BadSetting, match="audience"):
        read_issuer(GOOD | {"audience": audience})
    with pytest.raises(BadSetting, match="audience"):
        read_issuer({"issuer": GOOD["issuer"], "prefix": ""})


TABLE = '[openid]\nissuer = "https://a.example"\naudience = "t"\n'


@pytest.mark.parametrize(
    "text",
    [TABLE, TABLE.replace("[openid]", "[[openid]]"), f"{TABLE}[groups]\nstaff = ['alice']\n"],
)
def test_whether_its_names_are_those_of_others_has_to_be_said(text: str, tmp_path: Path) -> None:
    """A user who is called admin there is the administrator here otherwise, by nobody's will."""
    file = tmp_path / "tocsin.toml"
    file.write_text(text)

    with pytest.raises(BadSetting, match=r"openid\.prefix is not set") as refused:
        load({}, {}, file)
    assert "prefix = 'lab:'" in refused.value.remedy
    assert "prefix = ''" in refused.value.remedy
    for prefix in ("", "lab:"):
        file.write_text(text.replace("audience", f'prefix = "{prefix}"\naudience'))
        (issuer,) = load({}, {}, file)[0].openid.issuers()
        assert issuer.prefix == prefix


def test_it_may_be_said_by_a_variable() -> None:
    named = {"TOCSIN_OPENID__ISSUER": "https://c.example", "TOCSIN_OPENID__AUDIENCE": "t"}

    with pytest.raises(BadSetting, match=r"openid\.prefix is not set \(TOCSIN_OPENID__ISSUER\)"):
        load({}, named)
    (issuer,) = load({}, named | {"TOCSIN_OPENID__PREFIX": ""})[0].openid.issuers()

    assert issuer.prefix == ""


@pytest.mark.parametrize(
    "url",
    ["", "sso.example.org", "http://sso.example.org", "ftp://sso.example.org", "https://",
     "https://a b", "https://user:pw@sso.example.org", "https://sso.example.org/#x",
     "https://sso.example.org/?x=1", "https://sso.example.org/?", "https://sso.example.org:99999",
     "https://sso.exämple.org", "http://127.0.0.1.example.org", "https://x/\n"],
)  # fmt: skip
def test_an_address_that_cannot_be_an_issuers_is_refused(url: str) -> None:
    with pytest.raises(BadSetting, match="issuer"):
        read_issuer(GOOD | {"issuer": url})


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8080", "http://localhost:1/x", "http://[::1]:8080", "https://x.example/"],
)
def test_only_an_issuer_on_this_machine_may_be_without_tls(url: str) -> None:
    assert read_issuer(GOOD | {"issuer": url}).issuer == url


def test_an_unknown_key_is_named_with_the_nearest() -> None:
    with pytest.raises(BadSetting, match="Did you mean audience"):
        read_issuer(GOOD | {"audiance": "x"})
    with pytest.raises(BadSetting, match="prefix"):
        read_issuer(GOOD | {"prefix": 5})
    with pytest.raises(BadSetting, match="prefix"):
        read_issuer(GOOD | {"prefix": " x"})
    with pytest.raises(BadSetting, match="name_claim"):
        read_issuer(GOOD | {"name_claim": ""})


@pytest.mark.parametrize(("one", "other"), [("", ""), ("", "x:"), ("lab", "lab2"), ("a:", "a:")])
def test_two_issuers_may_not_be_able_to_name_the_same_principal(one: str, other: str) -> None:
    first = Issuer("https://a.example", "tocsin", prefix=one)
    second = Issuer("https://b.example", "tocsin", prefix=other)
    with pytest.raises(BadSetting, match="same principal"):
        check_together([first, second])


def test_issuers_with_prefixes_of_their_own_are_fine() -> None:
    check_together([Issuer("https://a.example", "t"), *[]])
    check_together(
        [
            Issuer("https://a.example", "t", prefix="lab:"),
            Issuer("https://b.example", "t", prefix="guests:"),
        ]
    )
    with pytest.raises(BadSetting, match="twice"):
        check_together([Issuer("https://a.example", "t", prefix=each) for each in ("a:", "b:")])


def test_several_issuers_are_tables_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.toml"
    file.write_text(
        '[http]\nidle_s = 5.0\n\n[[openid]]\nissuer = "https://a.example"\naudience = "t"\n'
        'prefix = "a:"\n\n[[openid]]\nissuer = "https://b.example"\naudience = "t"\nprefix = "b:"\n'
    )
    one, other = load({}, {}, file)[0].openid.issuers()
    assert (one.issuer, other.issuer) == ("https://a.example", "https://b.example")

    third = {"TOCSIN_OPENID__ISSUER": "https://c.example", "TOCSIN_OPENID__AUDIENCE": "t"}
    with pytest.raises(BadSetting, match="same principal"):
        load({}, third | {"TOCSIN_OPENID__PREFIX": ""}, file)[0].openid.issuers()
    settings, _ = load({}, third | {"TOCSIN_OPENID__PREFIX": "c:"}, file)
    assert len(settings.openid.issuers()) == 3

    file.write_text(
        '[[openid]]\nissuer = "https://a.example"\naudience = "t"\nprefix = "a:"\n\n'
        "[[openid]]\nx = 1\n"
    )
    with pytest.raises(BadSetting, match="line 6"):
        load({}, {}, file)
    with pytest.raises(BadSetting, match=r"openid\.more"):
        load({}, {"TOCSIN_OPENID__MORE": "x"})
