"""``calve user``, ``token``, ``audit`` and ``secret``, in this process."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from calve.app import open_project
from calve.cli import entry
from calve.errors import ParamError
from calve.settings import load

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Give a way to run a command with --json: what it prints, and its exit code."""

    def running(*arguments: str, given: str = "", code: int = 0) -> Any:
        monkeypatch.setattr("sys.stdin", io.StringIO(given))
        assert entry.run([*arguments, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return running


def test_people_are_added_changed_and_disabled(run: Any) -> None:
    """The password comes from standard input."""
    run("user", "add", "ann", "-g", "editor@sales", "-g", "viewer", given=f"{PASSWORD}\n")
    (ann,) = run("user", "list")
    ann.pop("created_at")
    shown = {"name": "ann", "shown": "", "has_password": True}
    assert ann == {**shown, "grants": ["viewer", "editor@sales"], "is_disabled": False}
    run("user", "password", "ann", given="quite another one\n")
    run("user", "grant", "ann", "runner")
    run("user", "disable", "ann")
    (ann,) = run("user", "list")
    ann.pop("created_at")
    assert ann == {**shown, "grants": ["runner"], "is_disabled": True}
    run("user", "enable", "ann")
    assert not run("user", "list")[0]["is_disabled"]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (("user", "add", "ann"), ""),
        (("user", "add", "ann"), "short"),
        (("user", "add", "ann", "-g", "king"), PASSWORD),
        (("user", "disable", "ann"), ""),
        (("token", "create", "ci", "-g", "admin", "--expires", "soon"), ""),
        (("token", "revoke", "1234"), ""),
        (("secret", "set", "a b"), "x"),
        (("secret", "set", "db"), ""),
        (("secret", "delete", "db"), ""),
    ],
)
def test_what_makes_no_sense_is_refused(run: Any, arguments: tuple[str, ...], given: str) -> None:
    """With an error that says what to do."""
    assert run(*arguments, given=given, code=1)["error"]["code"] == "request_invalid"


def test_a_token_is_shown_once(run: Any) -> None:
    """A list shows all but the token."""
    made = run("token", "create", "ci", "-g", "runner@sales", "--expires", "1d")
    assert made["token"].startswith("calve_")
    (listed,) = run("token", "list")
    assert listed["grants"] == ["runner@sales"]
    assert listed["expires_at"] == made["expires_at"]
    assert made["token"] not in str(listed)
    run("token", "revoke", made["token_id"])
    assert run("token", "list")[0]["revoked_at"] is not None
    assert run("token", "create", "ci", "-g", "admin", "--expires", "never")["expires_at"] is None


def test_the_audit_log_is_shown_and_checked(run: Any, folder: Path) -> None:
    """A change is found out, and so is a missing end by a digest that was noted."""
    run("token", "create", "ci", "-g", "runner")
    run("secret", "set", "db", given="password")
    assert [one["action"] for one in run("audit", "list")] == ["set_secret", "create_token"]
    head = run("audit", "verify")["head"]
    assert run("audit", "verify", "--head", head)["is_whole"]
    assert not run("audit", "verify", "--head", "0", code=1)["is_whole"]
    engine = create_engine(load(folder, {}).store.url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE audit SET who = 'user:eve' WHERE seq = 1"))
    engine.dispose()
    assert run("audit", "verify", code=1)["problem"] == "line 1 was changed"


def test_a_secret_is_set_listed_and_deleted_but_never_shown(run: Any, folder: Path) -> None:
    """A worker finds it with the key that was made; the database file does not hold it."""
    run("secret", "set", "db", given="canary-text\n")
    assert [one["name"] for one in run("secret", "list")] == ["db"]
    assert (folder / ".calve" / "secret.key").stat().st_mode & 0o777 == 0o600
    with open_project(load(folder, {})) as project:
        assert project.secrets("db") == "canary-text"
    for file in (folder / ".calve").rglob("*"):
        assert not file.is_file() or b"canary-text" not in file.read_bytes()
    run("secret", "delete", "db")
    with open_project(load(folder, {})) as project, pytest.raises(ParamError):
        project.secrets("db")


def test_secrets_are_looked_for_where_the_settings_say(folder: Path, run: Any) -> None:
    """In their order; the environment's names are in small letters."""
    run("secret", "set", "db", given="of the table")
    (folder / "secrets").mkdir()
    (folder / "secrets" / "db").write_text("of a file\n")
    (folder / "secrets" / "db").chmod(0o600)
    environ = {"CALVE_SECRETS__DB": "of the environment", "CALVE_SECRET_STORE__FOLDER": "secrets"}
    for order, expected in (
        ("env file table", "of the environment"),
        ("file env", "of a file"),
        ("table env", "of the table"),
    ):
        settings = load(folder, environ | {"CALVE_SECRET_STORE__BACKENDS": order})
        with open_project(settings) as project:
            assert project.secrets("db") == expected


def test_another_key_of_the_environment_opens_nothing(folder: Path, run: Any) -> None:
    """It wins over the file."""
    run("secret", "set", "db", given="of the table")
    settings = load(folder, {"CALVE_SECRET_STORE__KEY": "A" * 43 + "="})
    with open_project(settings) as project, pytest.raises(ParamError, match="cannot be decrypted"):
        project.secrets("db")


def test_what_is_hidden_is_asked_for_twice_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an echo."""
    asked: list[dict[str, Any]] = []

    def prompt(what: str, **options: Any) -> str:
        asked.append({"what": what, **options})
        return PASSWORD

    monkeypatch.setattr("sys.stdin", _Terminal())
    monkeypatch.setattr("click.prompt", prompt)
    assert entry.run(["user", "add", "ann"]) == 0
    assert asked[0]["hide_input"]
    assert asked[0]["confirmation_prompt"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("arguments", [["user", "list"], ["token", "list"], ["audit", "list"], ["secret", "list"]])
def test_lists_are_tables_for_people(run: Any, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """With what was made."""
    run("user", "add", "ann", "-g", "viewer", given=PASSWORD)
    run("token", "create", "ann", "-g", "runner")
    run("secret", "set", "ann", given="x")
    assert entry.run(arguments) == 0
    assert "ann" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["user", "list"], ["token", "list"]])
def test_an_empty_list_is_reported(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """With the command that changes it."""
    assert entry.run(arguments) == 0
    assert f"There are no {arguments[0]}s." in capsys.readouterr().err


def test_people_are_told_what_was_done(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In a sentence; a token stands alone on standard output, so that it can be piped."""
    monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD))
    assert entry.run(["user", "add", "ann"]) == 0
    assert capsys.readouterr().out == "ann can sign in now.\n"
    assert entry.run(["token", "create", "ci", "-g", "viewer"]) == 0
    made = capsys.readouterr()
    assert len(made.out.split()) == 1
    assert "not shown again" in made.err
    monkeypatch.setattr("sys.stdin", io.StringIO("x"))
    assert entry.run(["secret", "set", "db"]) == 0
    assert entry.run(["secret", "delete", "db"]) == 0
    assert entry.run(["audit", "verify"]) == 0
    assert "The log is intact: 4 lines" in capsys.readouterr().out
    assert entry.run(["audit", "verify", "--head", "0"]) == 1


def test_a_password_that_is_not_text_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that are not UTF-8, and a NUL."""
    for given in (b"a\xff", b"a\0"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
        assert entry.run(["secret", "set", "name"]) == 1
        assert "error: " in capsys.readouterr().err
