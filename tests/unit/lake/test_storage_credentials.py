"""The credentials that a REST catalog gives out with its tables."""

from collections.abc import Callable
from typing import Any

import pytest

from calve.errors import LakeUnavailable, NotSupportedByCatalog
from calve.lake.storage_credentials import TableStorage, Vended, vended


def _credential(prefix: str, key: str, **more: str) -> dict[str, Any]:
    return {"prefix": prefix, "config": {"s3.access-key-id": key, **more}}


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("s3://b/t/metadata/x.avro", "table"),
        ("s3://b/t/data/secret/x", "folder"),
        ("s3://b/t2/x", "bucket"),  # a neighbour, whose name begins alike
        ("s3a://b/t/x", "store"),
        ("gs://b/x", None),
    ],
)
def test_the_longest_prefix_counts(path: str, key: str | None) -> None:
    """In whatever order they come, and rather the folder that is meant than a neighbour of it."""
    given = [("s3", "store"), ("s3://b/t", "table"), ("s3://b/t/data/secret/", "folder"), ("s3://b/", "bucket")]
    found = vended({"storage-credentials": [_credential(*each) for each in given]}, "t").properties_for(path)
    assert found.get("s3.access-key-id") == key


def test_the_config_of_a_table_counts_too() -> None:
    """Behind its credentials, and without what would name a class of this process."""
    response = {"config": {"s3.access-key-id": "old", "s3.endpoint": "e", "py-io-impl": "antigravity.Fly"}}
    assert vended(response, "t").properties_for("s3://b/x") == {"s3.access-key-id": "old", "s3.endpoint": "e"}
    both = vended(response | {"storage-credentials": [_credential("s3", "new")]}, "t")
    assert both.properties_for("s3://b/x") == {"s3.access-key-id": "new", "s3.endpoint": "e"}
    assert vended({"config": None, "storage-credentials": None}, "t").properties_for("s3://b/x") == {}


@pytest.mark.parametrize(
    "response",
    [
        {"storage-credentials": 7},
        {"storage-credentials": [7]},
        {"storage-credentials": [{"config": {}}]},
        {"storage-credentials": [{"prefix": "s3", "config": {"a": 1}}]},
        {"config": []},
    ],
)
def test_what_is_not_as_specified_is_an_error(response: dict[str, Any]) -> None:
    """The caller names the table."""
    with pytest.raises(TypeError):
        vended(response, "t")


class _Clock:
    now = 1_000_000

    def __call__(self) -> int:
        return self.now


def _until(end: int, key: str) -> Vended:
    return vended(
        {"storage-credentials": [_credential("s3", key, **{"s3.session-token-expires-at-ms": str(end)})]}, "t"
    )


def _storage(given: Vended, renew: Callable[[], Vended], clock: _Clock) -> TableStorage:
    return TableStorage("db.t", lambda: {"s3.region": "r"}, given, renew, clock)


def test_credentials_are_renewed_for_as_long_as_a_capture_takes() -> None:
    """A minute before each end, and not for each file; the address of the store stays."""
    clock, renewed = _Clock(), iter(["two", "three"])
    first = Vended({"s3.endpoint": "e"}, _until(clock.now + 600_000, "one").credentials)
    storage = _storage(first, lambda: _until(clock.now + 600_000, next(renewed)), clock)
    seen = []
    for _ in range(7):
        properties = storage.properties_for("s3://b/x")
        assert (properties["s3.endpoint"], properties["s3.region"]) == ("e", "r")
        seen.append(properties["s3.access-key-id"])
        clock.now += 200_000
    assert seen == ["one"] * 3 + ["two"] * 3 + ["three"]


def test_a_catalog_that_is_down_matters_only_when_credentials_have_ended() -> None:
    """Until then they are used, and each file asks again."""
    clock = _Clock()

    def down() -> Vended:
        raise LakeUnavailable

    storage = _storage(_until(clock.now + 30_000, "one"), down, clock)
    assert storage.properties_for("s3://b/x")["s3.access-key-id"] == "one"
    clock.now += 30_000
    with pytest.raises(LakeUnavailable):
        storage.properties_for("s3://b/x")


def test_remote_signing_needs_keys() -> None:
    """With keys of its own, the definition does not need the catalog's signature."""
    signing = vended({"config": {"s3.remote-signing-enabled": "true"}}, "t")
    with pytest.raises(NotSupportedByCatalog, match="remote signing"):
        _storage(signing, lambda: signing, _Clock()).properties_for("s3://b/x")
    keys = {"s3.access-key-id": "own"}
    own = TableStorage("db.t", lambda: keys, signing, lambda: signing, _Clock())
    assert own.properties_for("s3://b/x")["s3.access-key-id"] == "own"
