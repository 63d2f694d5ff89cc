"""The engine's peers, measured on this machine: Prefect, Dagster and Airflow, each in an environment of its own."""

from peers.environments import PEERS, Peer, PeerMissing, environment, install, missing
from peers.measuring import PeerFailed, Result, measure

__all__ = ["PEERS", "Peer", "PeerFailed", "PeerMissing", "Result", "environment", "install", "measure", "missing"]
