"""Proofs of catalogs that work, and of some that cannot be used: what is told, and that nothing is left."""

import json
import signal
from pathlib import Path

import psycopg
import pytest
from tests.catalog_proofs import SPARK_ONLY, ToldProof, left_in, project, rows_in

from calve.cli import entry
from calve.conformance import CHECKS, CLEANUP, Check, Outcome, ProofOptions, Workspace, proof_document, proof_markdown
from calve.errors import CatalogUnknown, RequestInvalid
from calve.lake import TableName
from calve.settings import Settings, load

NAMES = [check.name for check in (*CHECKS, CLEANUP)]


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Return a project with an SQL catalog, in SQLite or in PostgreSQL."""
    return project(tmp_path, "" if request.param == "sqlite" else request.getfixturevalue("postgres_database"))


def _uri(settings: Settings) -> str:
    return settings.catalogs["prod"].properties["uri"]


def test_a_catalog_that_works_passes_and_nothing_is_left(settings: Settings, tmp_path: Path) -> None:
    """Neither tables, namespaces and files in the catalog, nor a state in the project."""
    told = ToldProof(settings)
    proof = told.prove()
    assert told.outcomes(Outcome.FAILED) == {}
    assert told.outcomes(Outcome.SKIPPED) == dict.fromkeys(SPARK_ONLY, "--no-spark")
    assert [result.check for result in proof.results] == [result.check for result in told.told] == NAMES
    assert "except-all" in told.outcomes(Outcome.PASSED)["changes"]
    assert not proof.has_failed
    assert rows_in(_uri(settings)) == []
    assert left_in(tmp_path / "warehouse") == []
    assert not settings.home.exists()


def test_a_location_for_captures_is_used_and_cleaned_up(tmp_path: Path) -> None:
    """It is part of what is proved."""
    project(tmp_path)
    with (tmp_path / "calve.toml").open("a") as file:
        file.write(f'[capture]\nlocation = "{tmp_path}/captures"\n')
    settings, seen = load(tmp_path, {}), list[str]()

    def look(workspace: Workspace) -> str:
        seen.extend(left_in(tmp_path / "captures"))
        return workspace.namespace

    told = ToldProof(settings)
    told.prove(checks=[*CHECKS[:7], Check("look", "Files are there.", look)])
    assert len(seen) >= 5
    assert told.told[-1].outcome is Outcome.PASSED
    assert left_in(tmp_path / "captures") == []


def test_two_proofs_have_namespaces_of_their_own(tmp_path: Path) -> None:
    """So they may run at the same time."""
    first, second = (ToldProof(project(tmp_path)).prove(checks=CHECKS[:2]).namespace for _ in range(2))
    assert first != second
    assert first.startswith("calve_proof_")


def test_a_catalog_that_may_only_be_read_fails_by_name(postgres_database: str, tmp_path: Path) -> None:
    """The first check that writes fails, the rest says why it is skipped, and there is nothing to remove."""
    ToldProof(project(tmp_path, postgres_database)).prove(checks=CHECKS[:2])
    name = postgres_database.rpartition("/")[2]
    plain = postgres_database.replace("+psycopg", "")
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE reader_{name} LOGIN PASSWORD 'canary-1'".encode())
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_{name}".encode())
    try:
        settings = project(tmp_path, postgres_database.replace("postgres@", f"reader_{name}:canary-1@"))
        told = ToldProof(settings)
        proof = told.prove()
        failed = told.outcomes(Outcome.FAILED)
        assert list(failed) == ["namespace"]
        assert "permission denied" in failed["namespace"]
        skipped = told.outcomes(Outcome.SKIPPED)
        assert skipped == dict.fromkeys([name for name in NAMES[2:] if name != "cleanup"], "namespace failed")
        assert proof.leftovers == ()
        assert "canary-1" not in json.dumps(proof_document(proof, settings))
    finally:
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY reader_{name}".encode())
            connection.execute(f"DROP ROLE reader_{name}".encode())


def test_what_was_made_before_a_failure_is_removed(tmp_path: Path) -> None:
    """Here the namespace, in a catalog whose warehouse cannot be written."""
    (tmp_path / "file").write_text("not a folder")
    settings = project(tmp_path, warehouse=f"{tmp_path}/file/warehouse")
    told = ToldProof(settings)
    told.prove()
    assert list(told.outcomes(Outcome.FAILED)) == ["create"]
    assert set(told.outcomes(Outcome.SKIPPED).values()) == {"--no-spark", "create failed"}
    assert told.told[-1].outcome is Outcome.PASSED
    assert rows_in(_uri(settings)) == []


def test_ctrl_c_ends_the_proof_after_it_has_cleaned_up(tmp_path: Path) -> None:
    """In the middle of a capture."""
    settings, seen = project(tmp_path), list[str]()

    def interrupt(workspace: Workspace) -> str:
        workspace.captures.capture([workspace.events.identifier], "someone", lease=True)
        seen.extend(workspace.catalog.tables((workspace.namespace,)))
        signal.raise_signal(signal.SIGINT)
        return "not reached"

    told = ToldProof(settings)
    with pytest.raises(KeyboardInterrupt):
        told.prove(checks=[*CHECKS[:9], Check("interrupted", "Ctrl-C is pressed.", interrupt)])
    assert len(seen) == 3
    assert told.told[-1].check == "cleanup"
    assert told.told[-1].outcome is Outcome.PASSED
    assert rows_in(_uri(settings)) == []
    assert left_in(tmp_path / "warehouse") == []


def test_everything_is_kept_if_that_is_wanted(tmp_path: Path) -> None:
    """And a proof never uses a namespace in which something is, nor removes it."""
    settings = project(tmp_path)
    kept = ProofOptions("kept", uses_spark=False, keeps=True)
    told = ToldProof(settings)
    assert not told.prove(kept).has_failed
    assert told.outcomes(Outcome.SKIPPED)["cleanup"] == "--keep: everything is in the namespace kept"
    before = rows_in(_uri(settings))
    assert len(before) >= 3
    again = ToldProof(settings)
    again.prove(ProofOptions("kept", uses_spark=False))
    assert list(again.outcomes(Outcome.FAILED)) == ["namespace"]
    assert rows_in(_uri(settings)) == before


def test_a_namespace_of_others_is_refused_even_if_it_is_empty(tmp_path: Path) -> None:
    """It may be waiting for its first table."""
    settings = project(tmp_path)
    told = ToldProof(settings)

    def make(workspace: Workspace) -> str:
        workspace.catalog.pyiceberg().create_namespace("theirs", {"owner": "ann"})
        return ""

    told.prove(checks=[Check("others", "Others make a namespace.", make)])
    told.prove(ProofOptions("theirs", uses_spark=False))
    assert "theirs exists already" in told.outcomes(Outcome.FAILED)["namespace"]
    assert rows_in(_uri(settings)) == [("theirs",)]


def test_an_empty_namespace_that_a_proof_left_is_used_again(tmp_path: Path) -> None:
    """It has the mark of a proof."""
    settings = project(tmp_path)
    ToldProof(settings).prove(ProofOptions("mine", uses_spark=False, keeps=True), CHECKS[:2])
    assert rows_in(_uri(settings)) == [("mine",)]
    assert not ToldProof(settings).prove(ProofOptions("mine", uses_spark=False), CHECKS[:4]).has_failed
    assert rows_in(_uri(settings)) == []


@pytest.mark.parametrize("name", ["a.b", "a b", "", "7", "a`b", "x;y"])
def test_a_namespace_that_needs_quotes_is_refused(name: str, tmp_path: Path) -> None:
    """Before anything is done; an empty name is not a missing one."""
    with pytest.raises(RequestInvalid):
        ToldProof(project(tmp_path)).prove(ProofOptions(name))


def test_a_catalog_that_the_settings_lack_is_an_error(tmp_path: Path) -> None:
    """Not a proof that failed."""
    settings = project(tmp_path)
    del settings.catalogs["prod"]
    settings.catalogs["other"] = project(tmp_path).catalogs["prod"]
    with pytest.raises(CatalogUnknown):
        ToldProof(settings).prove()


def test_the_report_has_no_secret_and_no_host(tmp_path: Path) -> None:
    """Neither in its properties nor in the error of a database that cannot be reached."""
    uri = "postgresql+psycopg://ann:canary-pass@127.0.0.1:9/canary_database?application_name=canary-app"
    secrets = {"s3.secret-access-key": "canary-key", "token": "canary-token", "credential": "canary-id:canary-secret"}
    settings = project(tmp_path, uri, "s3://canary-bucket/warehouse", **secrets)
    told = ToldProof(settings)
    proof = told.prove()
    assert "127.0.0.1" in told.outcomes(Outcome.FAILED)["reach"]
    document = proof_document(proof, settings)
    assert document["properties"] == {
        "type": "sql",
        "uri": "postgresql+psycopg://***",
        "warehouse": "s3://***",
        **dict.fromkeys(secrets, "***"),
    }
    for text in (json.dumps(document), proof_markdown(document)):
        assert "canary" not in text
        assert "127.0.0.1" not in text
        assert str(tmp_path) not in text


def test_texts_of_errors_are_masked(tmp_path: Path) -> None:
    """Also addresses and tokens that no property has, such as those that a server sent."""

    def fail(_: Workspace) -> str:
        raise OSError(
            "GET https://me:pw@10.1.2.3/v1?key=k failed for s3.eu.canary.internal (10.1.2.3): Bearer abc.def-ghi "
            f"{tmp_path}/warehouse java.net.ConnectException"
        )

    settings = project(tmp_path)
    proof = ToldProof(settings).prove(checks=[Check("broken", "A check fails.", fail)])
    (found, _) = proof_document(proof, settings)["checks"]
    assert found["detail"] == "GET https://*** failed for *** (***): Bearer *** *** java.net.ConnectException"
    assert (found["outcome"], found["code"]) == ("failed", "OSError")


def test_what_cannot_be_removed_is_named_with_the_way_out(tmp_path: Path) -> None:
    """The proof then failed, even if all other checks passed."""
    settings = project(tmp_path)

    def disturb(workspace: Workspace) -> str:
        stray = TableName("prod", (workspace.namespace,), "stray")
        workspace.catalog.register(stray, workspace.catalog.load(workspace.events.name).metadata_location)
        return ""

    told = ToldProof(settings)
    proof = told.prove(checks=[*CHECKS[:4], Check("disturbed", "Others use the namespace.", disturb)])
    assert proof.has_failed
    (left,) = proof.leftovers
    assert left.what == f"the namespace {proof.namespace}"
    assert f"{proof.namespace}.stray" in left.why
    assert f"DROP NAMESPACE `prod`.`{proof.namespace}`" in left.by_hand
    assert left.by_hand in told.told[-1].remedy


# The command.


def _run(folder: Path, *arguments: str) -> int:
    return entry.run(["-C", str(folder), "doctor", "--prove", "prod", "--no-spark", *arguments])


def test_the_command_prints_the_report_and_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Progress goes to standard error; the report and the file are the same Markdown."""
    project(tmp_path)
    assert _run(tmp_path, "--report", str(tmp_path / "proof.md")) == 0
    printed = capsys.readouterr()
    assert (tmp_path / "proof.md").read_text() == printed.out
    for check in (*CHECKS, CLEANUP):
        assert f"| `{check.name}` | " in printed.out
        assert check.proves in printed.out
        assert f" {check.name} " in printed.err
    assert "18 passed, 3 skipped" in printed.out


def test_the_command_prints_json_and_fails_if_a_check_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The document has everything that the page has."""
    (tmp_path / "file").write_text("not a folder")
    project(tmp_path, warehouse=f"{tmp_path}/file/warehouse")
    assert _run(tmp_path, "--json") == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["failed"]
    assert document["versions"].keys() >= {"calve", "pyiceberg", "pyspark", "iceberg", "python", "java"}
    assert [check["check"] for check in document["checks"]] == NAMES
    assert printed.err == ""


@pytest.mark.parametrize("option", [["--keep"], ["--no-spark"], ["--namespace", "x"], ["--report", "x"]])
def test_options_of_a_proof_need_one(option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They would have no effect otherwise."""
    assert entry.run(["-C", str(tmp_path), "doctor", *option]) == 2
    assert "need --prove" in capsys.readouterr().err


def test_a_server_cannot_be_asked_for_a_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalogs of this project need not be those of the server."""
    project(tmp_path)
    monkeypatch.setenv("CALVE_URL", "http://127.0.0.1:9")
    assert _run(tmp_path) == 1
    assert "not through the server" in capsys.readouterr().err


def test_every_check_needs_only_checks_before_it() -> None:
    """And names are used once."""
    assert len(set(NAMES)) == len(NAMES)
    for number, check in enumerate(CHECKS):
        assert set(check.needs) <= set(NAMES[:number]), check.name
