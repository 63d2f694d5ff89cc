"""Programs of Debian packages, installed by a stand-in for apt-get."""

import os
from functools import partial
from pathlib import Path

import pytest

from calve.errors import EnvironmentUnfit
from calve.testing.debian import on_path, program


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is the whole PATH of a process that is root."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def write(file: Path, script: str) -> None:
    """Write a program."""
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_program_that_is_missing_is_installed(bin_folder: Path) -> None:
    """After an update of the lists; one that is there is left alone."""
    write(bin_folder / "apt-get", f'echo "$@" >> {bin_folder}/said; [ "$3" = update ] || : > {bin_folder}/tool')
    (bin_folder / "tool").touch()
    find = partial(lambda name: on_path(name) or _plain(bin_folder / name), "tool")
    assert program(find, "tool") == bin_folder / "tool"
    assert not (bin_folder / "said").exists()
    (bin_folder / "tool").unlink()
    assert program(find, "tool", "fonts") == bin_folder / "tool"
    wait = "-o DPkg::Lock::Timeout=600"
    assert (bin_folder / "said").read_text() == (
        f"{wait} update\n{wait} install -y --no-install-recommends tool fonts\n"
    )


def _plain(file: Path) -> Path | None:
    return file if file.exists() else None


def test_what_apt_get_says_is_in_the_error(bin_folder: Path) -> None:
    """And how to install it by hand."""
    write(bin_folder / "apt-get", "echo 'E: Unable to fetch some archives' >&2; exit 100")
    with pytest.raises(EnvironmentUnfit, match=r"tool is not installed\. apt-get failed: E: Unable to fetch") as raised:
        program(partial(on_path, "tool"), "tool", "fonts")
    assert raised.value.remedy.endswith("apt-get install -y --no-install-recommends tool fonts")
