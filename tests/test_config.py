"""Settings: flags, then the environment, then a file, then defaults; a mistake is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.config import Settings, find_file, keys, load
from tocsin.errors import BadSetting


def write(directory: Path, text: str) -> Path:
    path = directory / "tocsin.toml"
    path.write_text(text)
    return path


def test_what_is_not_said_has_its_default_and_says_so() -> None:
    settings, origins = load({}, {})

    assert settings == Settings()
    assert set(origins.values()) == {"default"}
    assert origins.keys() == keys().keys()


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        '[http]\naddress = "127.0.0.1:1"\nheaders_max = 11\n\n[delivery]\nattempts = 3\n',
    )
    environment = {"TOCSIN_HTTP__ADDRESS": "127.0.0.1:2", "TOCSIN_HTTP__HEADERS_MAX": "22"}

    settings, origins = load(
        {"http.address": "127.0.0.1:3", "log.directory": None}, environment, file
    )

    assert settings.http.address == "127.0.0.1:3"
    assert settings.http.headers_max == 22
    assert settings.delivery.attempts == 3
    assert origins["http.address"] == "flag"
    assert origins["http.headers_max"] == "TOCSIN_HTTP__HEADERS_MAX"
    assert origins["delivery.attempts"] == f"{file} line 6"
    assert origins["log.directory"] == "default"


def test_an_unknown_key_is_named_with_its_file_and_line_and_the_nearest_one(tmp_path: Path) -> None:
    file = write(tmp_path, "[http]\n\nadress = 'x'\n")

    with pytest.raises(BadSetting) as caught:
        load({}, {}, file)

    assert "http.adress" in caught.value.problem
    assert f"{file} line 3" in caught.value.problem
    assert "http.address" in caught.value.remedy


def test_an_unknown_variable_is_named() -> None:
    with pytest.raises(BadSetting, match="TOCSIN_LOG__DIRECTRY"):
        load({}, {"TOCSIN_LOG__DIRECTRY": "x"})


def test_the_nearest_setting_of_a_variable_is_named_as_one() -> None:
    with pytest.raises(BadSetting) as caught:
        load({}, {"TOCSIN_AUTH_MODE": "required"})

    assert "Did you mean TOCSIN_AUTH__MODE?" in caught.value.remedy


def test_variables_of_clients_and_of_others_are_no_settings() -> None:
    settings, _ = load({}, {"TOCSIN_BROKER": "http://x", "PATH": "/bin", "TOCSIN_CONFIG": "y"})

    assert settings == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("http.headers_max", "many"),
        ("http.headers_max", 0),
        ("http.headers_max", -5),
        ("delivery.timeout_s", "nan"),
        ("delivery.timeout_s", 1e300),
        ("log.synchronous", "OFF"),
        ("delivery.private", "perhaps"),
        ("http.open", "maybe"),
        ("delivery.trusted", 7),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_key(name: str, value: object) -> None:
    with pytest.raises(BadSetting) as caught:
        load({name: value}, {})

    assert name in caught.value.problem
    assert caught.value.remedy


def test_a_list_may_be_written_with_commas() -> None:
    settings, _ = load({}, {"TOCSIN_DELIVERY__TRUSTED": "a.example, 10.0.0.0/8 ,"})

    assert settings.delivery.trusted == ("a.example", "10.0.0.0/8")


def test_a_broken_file_is_a_clear_error(tmp_path: Path) -> None:
    file = write(tmp_path, "[http\n")

    with pytest.raises(BadSetting, match="cannot read"):
        load({}, {}, file)


def test_a_key_outside_a_table_is_told_where_it_belongs(tmp_path: Path) -> None:
    file = write(tmp_path, "address = 'x'\n")

    with pytest.raises(BadSetting) as caught:
        load({}, {}, file)

    assert "[http]" in caught.value.remedy


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"nowhere\.toml"):
        find_file(str(tmp_path / "nowhere.toml"), {})


def test_the_file_is_found_where_people_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tocsin").mkdir()
    home = tmp_path / "tocsin" / "config.toml"
    home.write_text("")
    assert find_file(None, {"XDG_CONFIG_HOME": str(tmp_path)}) == home

    write(tmp_path, "")
    assert find_file(None, {"XDG_CONFIG_HOME": str(tmp_path)}) == Path("tocsin.toml")


@pytest.mark.parametrize("entry", ["lines", "lines=", "=127.0.0.1:1"])
def test_a_dialect_without_a_name_or_an_address_is_refused(entry: str) -> None:
    with pytest.raises(BadSetting, match=r"dialects\.listen has the entry") as refused:
        load({"dialects.listen": ["other=127.0.0.1:2", entry]}, {})

    assert refused.value.remedy == "Write each entry as name=host:port."


def test_peers_are_separated_by_semicolons_and_standby_peers_by_commas() -> None:
    settings, _ = load({}, {"TOCSIN_OVERLAY__PEERS": "one:8403; two:8403,[::1]:8403"})

    assert settings.overlay.peers == ("one:8403", "two:8403,[::1]:8403")
    assert settings.overlay.link_options().peers == settings.overlay.peers


@pytest.mark.parametrize("peer", ["one", "one:x", ":8403", "one:0", "a:1,", "a:1,b", "::1:8403"])
def test_a_peer_that_is_no_address_is_refused(peer: str) -> None:
    wrong = r"overlay\.peers has the entry .*is not an address"
    with pytest.raises(BadSetting, match=wrong) as caught:
        load({"overlay.peers": ["two:8403", peer]}, {})

    assert "host:port" in caught.value.remedy


def test_a_standby_peer_named_twice_is_refused() -> None:
    with pytest.raises(BadSetting, match="twice"):
        load({"overlay.peers": ["a:1,a:1"]}, {})


def test_a_filter_of_what_is_advertised_is_checked() -> None:
    settings, _ = load({"overlay.advertises": ["topic lead/**", "load5 > 3"]}, {})
    assert settings.overlay.link_options().routing.advertises == ("topic lead/**", "load5 > 3")

    with pytest.raises(BadSetting, match=r"overlay\.advertises has the entry 'load5 >'"):
        load({"overlay.advertises": ["load5 >"]}, {})


def test_a_broker_that_names_nothing_advertises_everything() -> None:
    assert load({}, {})[0].overlay.link_options().routing.advertises == ("",)


def test_the_settings_of_links_become_those_of_the_service() -> None:
    flags = {"overlay.pause_s_min": 2, "overlay.forget_after_s": 60, "overlay.covering": False}
    options = load(flags, {})[0].overlay.link_options()

    assert options.reconnect.pause_ns_min == 2_000_000_000
    assert options.routing.forget_after_ns == 60_000_000_000
    assert options.routing.covering is False
