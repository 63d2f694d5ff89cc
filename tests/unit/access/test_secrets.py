"""Where secrets come from, and who can read them."""

import secrets
from pathlib import Path

import pytest

from calve.access.records import SealedSecret
from calve.access.secrets import (
    FileSecrets,
    GivenSecrets,
    Secrets,
    make_key,
    opened,
    parse_key,
    read_key,
    sealed,
)
from calve.errors import CalveError, ParamError, SettingsInvalid

KEY = b"k" * 32


def _file(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_first_place_that_has_a_secret_gives_it() -> None:
    """One after the other; where none has it, the error says how to set it."""
    look_up = Secrets([GivenSecrets({"a": "first"}), GivenSecrets({"a": "second", "b": "other"})])
    assert (look_up("a"), look_up("b")) == ("first", "other")
    with pytest.raises(ParamError, match="c") as raised:
        look_up("c")
    assert "calve secret set c" in raised.value.remedy


def test_no_step_gets_secrets_that_calve_itself_uses() -> None:
    """Or whoever may push a workflow could learn how calve signs in elsewhere."""
    look_up = Secrets([GivenSecrets({"smtp": "one", "db": "other"})], own={"smtp"})
    assert look_up("smtp") == "one"
    assert look_up.for_step("w", "db") == "other"
    with pytest.raises(ParamError, match="reserved for calve"):
        look_up.for_step("w", "smtp")


def test_a_file_holds_a_secret(tmp_path: Path) -> None:
    """Without the newline that editors put at its end."""
    _file(tmp_path / "db", "pass word\n")
    assert FileSecrets(tmp_path).find("db") == "pass word"
    assert FileSecrets(tmp_path).find("other") is None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """What it holds is not in the error."""
    _file(tmp_path / "db", "password", mode)
    with pytest.raises(ParamError, match="readable by other") as raised:
        FileSecrets(tmp_path).find("db")
    assert "password" not in str(raised.value.as_json())


@pytest.mark.parametrize("name", ["../db", "..", ".", "", "/etc/passwd", "a/b", "a\0b", "-x"])
def test_a_name_cannot_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    """It is the name of nothing."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    _file(tmp_path / "db", "password")
    assert FileSecrets(folder).find(name) is None


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Those within it are not: Kubernetes mounts secrets so."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "out").symlink_to(_file(tmp_path / "db", "password"))
    (folder / "in").symlink_to(_file(folder / "real", "mine"))
    assert FileSecrets(folder).find("in") == "mine"
    with pytest.raises(ParamError, match="outside its folder"):
        FileSecrets(folder).find("out")


def test_a_file_that_is_not_text_or_too_long_is_refused(tmp_path: Path) -> None:
    """With an error that does not hold it."""
    (tmp_path / "odd").write_bytes(b"\xff\xfe")
    (tmp_path / "odd").chmod(0o600)
    _file(tmp_path / "long", "x" * 100_000)
    for name in ("odd", "long"):
        with pytest.raises(CalveError):
            FileSecrets(tmp_path).find(name)


def test_a_sealed_secret_opens_with_its_key_and_name_only() -> None:
    """Neither with another key, nor under another name, nor changed; twice sealed it looks another way."""
    text = sealed("db", "password", KEY, secrets.token_bytes)
    assert "password" not in text
    assert text != sealed("db", "password", KEY, secrets.token_bytes)
    assert opened(SealedSecret("db", text, 0, ""), KEY) == "password"
    for name, given, key in (
        ("db", text, b"x" * 32),
        ("other", text, KEY),
        ("db", text[:-8] + "AAAAAAA=", KEY),
        ("db", "v1:?", KEY),
    ):
        with pytest.raises(ParamError, match="cannot be decrypted") as raised:
            opened(SealedSecret(name, given, 0, ""), key)
        assert "password" not in repr(raised.value.as_json())


def test_a_key_is_made_once_in_a_file_of_ones_own(tmp_path: Path) -> None:
    """Whoever comes second takes the one that is there."""
    file = tmp_path / "home" / "secret.key"
    assert read_key(file) is None
    key = make_key(file, secrets.token_bytes)
    assert file.stat().st_mode & 0o777 == 0o600
    assert make_key(file, secrets.token_bytes) == read_key(file) == key
    file.chmod(0o644)
    with pytest.raises(ParamError, match="readable by other"):
        read_key(file)


@pytest.mark.parametrize("text", ["", "short", "💧", "AAAA"])
def test_what_is_no_key_is_refused(text: str) -> None:
    """The error does not show it."""
    with pytest.raises(SettingsInvalid) as raised:
        parse_key(text)
    assert not text or text not in str(raised.value.as_json())
