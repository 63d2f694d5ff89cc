"""What a server knows of data: signals, captures, checkpoints, how far consumers are behind."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calve.client.server import Document, Server, path
from calve.client.workflows import document, pages


class Data:
    """Announces signals, and tells what has been captured and committed."""

    server: Server

    def announce(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        payload: Mapping[str, Any] | None = None,
        request_id: str | None = None,
    ) -> Document:
        """Announce a signal.

        Args:
            name: its name.
            params: texts and whole numbers, which triggers and steps match.
            payload: what goes with it, and is matched with nothing.
            request_id: announces a request once, whatever its params; without it, the same name and params are one
                signal, however often they are announced.
        """
        body = {**(payload or {}), "name": name, "params": dict(params or {})}
        body |= {} if request_id is None else {"request_id": request_id}
        return document(self.server.ask("POST", path("signals"), body, is_repeatable=True))

    def signals(self, name: str | None = None) -> Iterator[Document]:
        """Yield signals, newest first: of a name, or all."""
        return pages(self.server, path("signals"), name=name)

    def lineage(self, name: str, seq: int | str = "latest") -> Document:
        """Return a signal, who sent it, and what it started and released."""
        return document(self.server.get(path("signals", name, "instances", seq, "lineage")))

    def signal(self, name: str, seq: int | str = "latest") -> Document:
        """Return an announced signal: the latest one, or the one of a number."""
        return document(self.server.get(path("signals", name, "instances", seq)))

    def captures(self, *, consumer: str | None = None) -> list[Document]:
        """Return the captures of a consumer, or all, newest first."""
        return list(pages(self.server, path("captures"), consumer=consumer))

    def capture(self, capture_id: str) -> Document:
        """Return a capture in full."""
        return document(self.server.get(path("captures", capture_id)))

    def capture_files(self, capture_id: str, *, is_checked: bool = False) -> dict[str, list[Document]]:
        """Return the files that a capture references, by table.

        Raises:
            FilesLost: they were to be checked, and some are gone.
        """
        return document(self.server.get(path("captures", capture_id, "files"), check=is_checked))

    def plan(self, tables: Sequence[str], consumer: str, **options: Any) -> Document:
        """Return what the next capture of a consumer would contain; options that are None are left out."""
        given = {name: value for name, value in options.items() if value is not None}
        body = {"tables": list(tables), "consumer": consumer, **given}
        return document(self.server.ask("POST", path("captures", "plan"), body, is_repeatable=True))

    def checkpoint_moves(self, *, consumer: str | None = None) -> list[Document]:
        """Return every move of a checkpoint, and why, newest first."""
        return list(pages(self.server, path("checkpoints", "log"), consumer=consumer))

    def checkpoints(self, *, consumer: str | None = None) -> list[Document]:
        """Return up to where each consumer has committed each table."""
        return list(pages(self.server, path("checkpoints"), consumer=consumer))

    def commit_capture(self, capture_id: str) -> Document:
        """Move the checkpoints past a capture that has been processed; repeating it changes nothing."""
        return document(self.server.ask("POST", path("captures", capture_id, "actions", "commit"), is_repeatable=True))

    def abandon_capture(self, capture_id: str) -> Document:
        """Give a capture up: the next one starts from the same checkpoint."""
        return document(self.server.ask("POST", path("captures", capture_id, "actions", "abandon"), is_repeatable=True))

    def set_checkpoint(self, table: str, consumer: str, *, to: str, reason: str) -> Document:
        """Move a consumer's checkpoint by hand to a snapshot, tag, branch, time or ``latest``."""
        body = {"table": table, "consumer": consumer, "to": to, "reason": reason}
        return document(self.server.ask("PUT", path("checkpoints"), body))

    def reset_checkpoint(self, table: str, consumer: str, *, reason: str) -> None:
        """Forget a consumer's checkpoint: its next capture is a first one."""
        query = {"table": table, "consumer": consumer, "reason": reason}
        self.server.ask("DELETE", path("checkpoints"), query=query)

    def lag(self, *, consumer: str | None = None) -> list[Document]:
        """Return how far consumers are behind their tables."""
        return list(pages(self.server, path("lag"), consumer=consumer))
