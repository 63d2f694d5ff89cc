"""Fetches a Git repository for a step."""

import re
from collections.abc import Mapping
from pathlib import Path

from calve.engine.ports import StepContext
from calve.steps.failures import fatal
from calve.steps.processes import Ending, How, Program, run
from calve.steps.surroundings import Surroundings

_NAME = re.compile(r"[0-9A-Za-z_][\w./+@-]*")


def fetch(
    context: StepContext, surroundings: Surroundings, repository: str, branch: str | None, commit: str | None
) -> tuple[Path, Ending]:
    """Fetch what a branch or commit holds, and nothing of its past; return the folder, and how the last command ended.

    The address goes in by the environment: it may hold a token, and others can read an argument list.

    Raises:
        StepFailed: the names cannot be those of a branch or commit, or there is no git.
    """
    wanted = branch or commit or "HEAD"
    if not _NAME.fullmatch(wanted) or ".." in wanted:
        raise fatal(f"{wanted!r} cannot be the name of a branch or commit.")
    folder = context.folder / "repository"
    git = _Git(context, surroundings, folder, _address(surroundings, repository))
    ending = git.run("git-init", "init", "--quiet", str(folder))
    if _is_well(ending):
        ending = git.run("git-fetch", "fetch", "--quiet", "--depth=1", "origin", wanted)
    checked_out = "FETCH_HEAD"
    if commit and ending.how is How.EXITED and ending.code != 0:
        # Not every server hands out a commit by its name, and none does by a part of it.
        ending = git.run("git-fetch-all", "fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*")
        checked_out = commit
    if _is_well(ending):
        ending = git.run("git-checkout", "checkout", "--quiet", "--force", "--detach", checked_out)
    return folder, ending


def _address(surroundings: Surroundings, repository: str) -> str:
    path = surroundings.resolve(repository, "git_repo")
    return str(path) if path.exists() else repository


def _is_well(ending: Ending) -> bool:
    return ending.how is How.EXITED and ending.code == 0


class _Git:
    """Runs git's commands on one repository."""

    def __init__(self, context: StepContext, surroundings: Surroundings, folder: Path, address: str) -> None:
        self._context = context
        self._surroundings = surroundings
        self._folder = folder
        self._address = address

    def run(self, name: str, *arguments: str) -> Ending:
        """Run a command, under a name of its own for the case that a worker takes over."""
        return run(self._context, self._surroundings, lambda _: self._program(arguments), name=name)

    def _program(self, arguments: tuple[str, ...]) -> Program:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return Program(("git", *arguments), self._environment(), self._folder)

    def _environment(self) -> Mapping[str, str]:
        given = {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "remote.origin.url",
            "GIT_CONFIG_VALUE_0": self._address,
        }
        return self._surroundings.environment_for(self._context, given)
