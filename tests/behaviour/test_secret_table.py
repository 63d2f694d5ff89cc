"""The encrypted table of secrets, on both databases."""

import secrets

import pytest
from sqlalchemy import text
from tests.access_setup import LOCAL

from calve.access import TableSecrets, verify
from calve.errors import ParamError, RequestInvalid
from calve.store import Store

pytestmark = pytest.mark.each_store

CANARY = "canary-7f3a-Äpfel"
KEY = b"k" * 32


@pytest.fixture
def table(store: Store) -> TableSecrets:
    """Give a table with its key."""
    return TableSecrets(store.access, lambda: KEY)


def test_a_secret_is_set_found_and_deleted(table: TableSecrets, store: Store) -> None:
    """The newest text counts; the audit log says who did it, and not what it is."""
    for value in ("old", CANARY):
        table.put("db", value, LOCAL, 5, secrets.token_bytes)
    assert table.find("db") == CANARY
    assert [(one.name, one.changed_at, one.changed_by) for one in store.access.secrets()] == [
        ("db", 5, "loopback:local")
    ]
    table.delete("db", LOCAL, 6)
    assert table.find("db") is None
    with pytest.raises(RequestInvalid):
        table.delete("db", LOCAL, 7)
    entries = list(store.access.entries())
    assert [one.act.action for one in entries] == ["set_secret", "set_secret", "delete_secret"]
    assert verify(entries).is_whole
    assert CANARY not in repr(entries)


def test_the_database_does_not_hold_the_text(table: TableSecrets, store: Store) -> None:
    """Neither in clear nor so that another key opens it; without a key, the error says what is missing."""
    table.put("db", CANARY, LOCAL, 5, secrets.token_bytes)
    with store._database.read() as connection:
        assert CANARY not in str(connection.execute(text("SELECT * FROM secret")).all())
    with pytest.raises(ParamError, match="cannot be decrypted"):
        TableSecrets(store.access, lambda: b"x" * 32).find("db")
    with pytest.raises(ParamError, match="key"):
        TableSecrets(store.access, lambda: None).find("db")
    assert TableSecrets(store.access, lambda: None).find("other") is None


@pytest.mark.parametrize(
    ("name", "value"), [("", "x"), ("a b", "x"), ("../a", "x"), ("a\0", "x"), ("a", ""), ("a", "x\0")]
)
def test_odd_names_and_texts_are_refused(table: TableSecrets, store: Store, name: str, value: str) -> None:
    """Before anything is written."""
    with pytest.raises(RequestInvalid):
        table.put(name, value, LOCAL, 5, secrets.token_bytes)
    assert store.access.secrets() == []
    assert table.find("a\0") is None
