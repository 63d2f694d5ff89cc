"""The wheel, installed by itself into a clean environment."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

MAKE_TABLE = """
from pathlib import Path
import pyarrow as pa
from calve.lake import Lake
from calve.settings import load

catalog = Lake(load(Path.cwd(), {})).catalog("lake").pyiceberg()
catalog.create_namespace("db")
rows = pa.table({"id": [1, 2, 3]})
catalog.create_table("db.events", rows.schema).append(rows)
"""


def run(*command: str | Path, folder: Path) -> str:
    """Run a program, and return what it printed."""
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    run(BIN / "hatchling", "build", "-t", "wheel", "-d", folder, folder=ROOT)
    (built,) = folder.glob("calve-*.whl")
    return built


def test_the_wheel_holds_what_is_not_python(wheel: Path) -> None:
    """Migrations, the logging configuration, the demo's workflows and the type marker are inside."""
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "calve/py.typed",
        "calve/lake/log4j2.properties",
        "calve/store/migrations/versions/0010_first_release.py",
        "calve/demo/playback/clean.sql",
    ):
        assert wanted in names


def test_the_wheel_holds_the_web_ui(wheel: Path) -> None:
    """Every template and every file that pages load; those of others are the ones whose hashes are listed."""
    web = ROOT / "src" / "calve" / "web"
    archive = zipfile.ZipFile(wheel)
    wanted = [path for folder in ("templates", "static") for path in (web / folder).rglob("*") if path.is_file()]
    assert {f"calve/web/{path.relative_to(web).as_posix()}" for path in wanted} <= set(archive.namelist())
    vendor = "calve/web/static/vendor"
    for package in json.loads(archive.read(f"{vendor}/vendor.json")):
        for file in package["files"]:
            assert hashlib.sha256(archive.read(f"{vendor}/{file['path']}")).hexdigest() == file["sha256"]


def test_the_wheel_captures_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    """Installed with nothing but its dependencies, calve passes its own check and captures."""
    run(BIN / "uv", "venv", "--quiet", "--python", sys.executable, "clean", folder=tmp_path)
    clean = tmp_path / "clean" / "bin"
    lock = ROOT / "requirements.lock"
    run(
        *(BIN / "uv", "pip", "install", "--quiet", "--python", clean / "python"),
        *("--constraint", lock, wheel),
        folder=tmp_path,
    )
    assert json.loads(run(clean / "calve", "doctor", "--json", folder=tmp_path))
    run(clean / "python", "-c", MAKE_TABLE, folder=tmp_path)
    change = json.loads(run(clean / "calve", "capture", "db.events", "-c", "clean", "--json", folder=tmp_path))
    assert (change["changed"], change["tables"][0]["records"]) == (True, 3)
    run(clean / "calve", "commit", change["capture_id"], folder=tmp_path)
