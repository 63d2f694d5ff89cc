"""Runs the peers' scripts, each with its own interpreter, and reads what they print."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from peers.environments import BENCH, PEERS, PeerMissing, environment

ROUNDS = 3
SHOWN = 20  # lines of what a peer said before it failed
CLEAN = {"PATH": os.defpath, "LANG": "C.UTF-8"}  # a server or profile that the caller has set up is not what we measure


class PeerFailed(Exception):
    """The peer's script ended without a figure."""


@dataclass(frozen=True, slots=True)
class Result:
    """How long a peer took for a chain of steps that do nothing: the median of its rounds, after a warm-up."""

    peer: str
    version: str
    steps: int
    seconds: float
    ms_per_step: float
    best_ms_per_step: float
    includes: str


def measure(peers: Sequence[str], steps: int, *, rounds: int = ROUNDS) -> list[Result]:
    """Return the figures of some installed peers, measured one after the other on this machine."""
    return [_measured(name, steps, rounds) for name in peers]


def _measured(name: str, steps: int, rounds: int) -> Result:
    peer, python = PEERS[name], environment(name)
    if python is None:
        raise PeerMissing(f"{name} is not installed here: --install-peers makes its environment")
    some = min(steps, peer.most_steps or steps)
    # From bench/ and by module name: a script's own folder would come first, and hide the peer behind its namesake.
    command = [str(python), "-m", peer.module, "--steps", str(some), "--rounds", str(rounds)]
    ended = subprocess.run(  # noqa: S603 - our own
        command, cwd=BENCH, env=CLEAN, check=False, capture_output=True, text=True
    )
    if ended.returncode or not ended.stdout.strip():
        said = "\n".join(ended.stderr.splitlines()[-SHOWN:])
        raise PeerFailed(f"{name} ended with {ended.returncode} and no figure:\n{said}")
    return Result(**json.loads(ended.stdout.splitlines()[-1]), includes=peer.includes)
