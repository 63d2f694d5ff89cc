"""Git repositories: fetches one for a step."""

import re
from collections.abc import Mapping
from pathlib import Path

from calve.engine import StepContext
from calve.steps.failures import fatal
from calve.steps.processes import CompletedProcess, EndReason, Program, Workspace, run_program

_NAME = re.compile(r"[0-9A-Za-z_][\w./+@-]*")


def fetch(
    context: StepContext, workspace: Workspace, repository: str, branch: str | None, commit: str | None
) -> tuple[Path, CompletedProcess]:
    """Fetch a branch or commit without its history; return the folder, and the result of the last git command.

    The URL is passed in the environment: it may hold a token, and other users can read a command line.

    Raises:
        StepFailed: the name of the branch or commit is invalid, or git is not installed.
    """
    wanted = branch or commit or "HEAD"
    if not _NAME.fullmatch(wanted) or ".." in wanted:
        raise fatal(f"{wanted!r} is not a valid name of a branch or commit.")
    folder = context.folder / "repository"
    git = _Git(context, workspace, folder, _address(workspace, repository))
    completed = git.run("git-init", "init", "--quiet", str(folder))
    if _succeeded(completed):
        completed = git.run("git-fetch", "fetch", "--quiet", "--depth=1", "origin", wanted)
    checked_out = "FETCH_HEAD"
    if commit and completed.reason is EndReason.EXITED and completed.code != 0:
        # Not every server serves a commit by its hash, and none by an abbreviated hash.
        completed = git.run("git-fetch-all", "fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*")
        checked_out = commit
    if _succeeded(completed):
        completed = git.run("git-checkout", "checkout", "--quiet", "--force", "--detach", checked_out)
    return folder, completed


def _address(workspace: Workspace, repository: str) -> str:
    path = workspace.resolve(repository, "git_repo")
    return str(path) if path.exists() else repository


def _succeeded(completed: CompletedProcess) -> bool:
    return completed.reason is EndReason.EXITED and completed.code == 0


class _Git:
    """Runs git commands on one repository."""

    def __init__(self, context: StepContext, workspace: Workspace, folder: Path, address: str) -> None:
        self._context = context
        self._workspace = workspace
        self._folder = folder
        self._address = address

    def run(self, name: str, *arguments: str) -> CompletedProcess:
        """Run a command; a worker that takes over finds its result by ``name``."""
        return run_program(self._context, self._workspace, lambda _: self._program(arguments), name=name)

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
        return self._workspace.environment_for(self._context, given)
