"""A process of calve shows neither its variables nor its memory to others of the same user."""

import json
import os
import subprocess
import sys
from pathlib import Path

import lazy_loader  # type: ignore[import-untyped]
import pytest

from calve import environment

PYTHON = next(path for path in (sys.executable, "/usr/bin/python3") if not Path(path).resolve().is_relative_to("/root"))
"""A Python that other users can run."""
SCRIPT = """
import json, os, subprocess, sys
from calve.environment import given, withdraw
withdraw()
own = open("/proc/self/environ", "rb").read() if os.geteuid() == 0 else b""
look = "import os, sys\\nfor name in ('environ', 'mem', 'fd/0', 'maps'):\\n"
look += "    try:\\n        open(f'/proc/{os.getppid()}/{name}', 'rb').read(10)\\n        print('read', name)\\n"
look += "    except OSError as error:\\n        print('refused', error.errno)\\n"
told = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True).stdout.splitlines()
print(json.dumps([own.decode(), sorted(os.environ), given()["CALVE_SECRETS__A"], os.environ["AWS_KEY"], told]))
"""


def _run(user: str | None = None) -> list[object]:
    paths = (Path(module.__file__ or "").parents[1] for module in (environment, lazy_loader))
    variables = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(map(str, paths)), "AWS_KEY": "ä=canary"}
    said = subprocess.run(
        [PYTHON, "-c", SCRIPT],
        env={**variables, "CALVE_SECRETS__A": "canary", "CALVE_EMPTY": ""},
        user=user,
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[object] = json.loads(said.stdout)
    return found


def test_variables_are_taken_out_of_what_a_process_shows() -> None:
    """Our own are gone from the environment, and known to the settings; those of others stay for libraries."""
    shown, names, own, other, _ = _run()
    assert isinstance(shown, str)
    assert shown.strip("\0") == ""
    assert isinstance(names, list)
    assert not [name for name in names if name.startswith("CALVE_")]
    assert (own, other) == ("canary", "ä=canary")


@pytest.mark.skipif(os.geteuid() != 0, reason="root can run a process as another user, and no process is closed to it")
def test_a_process_is_closed_to_others_of_the_same_user() -> None:
    """Its variables, memory and open files."""
    *_, told = _run("nobody")
    assert told == ["refused 13"] * 4


def test_what_was_withdrawn_is_handed_over_by_a_pipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """To processes of ours; whatever it holds, and however much it is."""
    monkeypatch.setattr(environment, "_withdrawn", {"CALVE_A": "canary" * 50_000, "CALVE_B": "\udce4"})
    script = (
        "import os, sys\nfrom calve.environment import given, withdraw\nwithdraw()\n"
        "both = os.fsencode(given()['CALVE_A'] + given()['CALVE_B'])\n"
        f"open({str(tmp_path / 'got')!r}, 'wb').write(both)\n"
        f"open({str(tmp_path / 'shown')!r}, 'wb').write(open('/proc/self/environ', 'rb').read())"
    )
    assert environment.start([sys.executable, "-c", script]).wait() == 0
    assert (tmp_path / "got").read_bytes() == b"canary" * 50_000 + b"\xe4"
    assert b"canary" not in (tmp_path / "shown").read_bytes()
