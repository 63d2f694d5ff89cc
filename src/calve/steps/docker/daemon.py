"""A client of the Docker Engine's HTTP API."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from calve.engine import State
from calve.errors import StepFailed
from calve.steps.docker.containers import reference
from calve.steps.failures import failed, fatal, platform_error
from calve.steps.retries import Evidence, Kind, state_of

_SECONDS = 60.0
_HEADER = 8
_STREAMS = {1: "O", 2: "E"}


class ImageMissing(StepFailed):
    """The daemon does not have the image."""


class Daemon:
    """A Docker daemon, at ``unix://PATH``, ``tcp://HOST:PORT`` or an http address."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._client = _client(host)
        self._has_answered = False

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def create(self, name: str, body: Mapping[str, Any]) -> None:
        """Create a container, unless one with that name exists.

        Raises:
            StepFailed: the daemon refuses it, or does not have the image.
        """
        answer = self._send("POST", "/containers/create", params={"name": name}, json=body)
        if answer.status_code == httpx.codes.NOT_FOUND and "image" in _reason(answer).lower():
            raise ImageMissing(f"Docker does not have the image {body['Image']}.", state=State.FATAL_ERROR)
        if answer.status_code != httpx.codes.CONFLICT:
            _check(answer)

    def start(self, name: str) -> None:
        """Start a container; do nothing if it was started before.

        Raises:
            StepFailed: it cannot be started.
        """
        answer = self._send("POST", f"/containers/{name}/start")
        if answer.status_code == httpx.codes.NOT_FOUND:  # Docker also returns 404 if the image lacks the program
            raise fatal(f"The container cannot be started: {_reason(answer)}")
        _check(answer)

    def state(self, name: str) -> Mapping[str, Any] | None:
        """Return the state of a container; None if it does not exist."""
        answer = self._send("GET", f"/containers/{name}/json")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        state: Mapping[str, Any] = _check(answer).json()["State"]
        return state

    def output(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Yield a container's output until it ends: O for standard output or E for standard error, and the bytes."""
        query = {"follow": "true", "stdout": "true", "stderr": "true"}
        timeout = httpx.Timeout(_SECONDS, read=None)
        path = f"/containers/{name}/logs"
        with self._errors(), self._client.stream("GET", path, params=query, timeout=timeout) as answer:
            if answer.is_error:
                answer.read()
                _check(answer)
            yield from _frames(answer.iter_raw())

    def stop(self, name: str, grace_seconds: float) -> None:
        """Stop a container, kill it after the grace period, and wait until it has ended; it need not exist."""
        timeout = _SECONDS + grace_seconds
        self._send("POST", f"/containers/{name}/stop", params={"t": round(grace_seconds)}, timeout=timeout)

    def remove(self, name: str) -> None:
        """Remove a container and its anonymous volumes; it need not exist."""
        answer = self._send("DELETE", f"/containers/{name}", params={"force": "true", "v": "true"})
        if answer.status_code not in {httpx.codes.NOT_FOUND, httpx.codes.CONFLICT}:  # CONFLICT: it is being removed
            _check(answer)

    def pull(self, image: str) -> Iterator[str]:
        """Pull an image; yield its progress.

        Raises:
            StepFailed: it cannot be pulled.
        """
        repository, tag = reference(image)
        query = {"fromImage": repository, "tag": tag}
        with self._errors(), self._client.stream("POST", "/images/create", params=query, timeout=600) as answer:
            if answer.is_error:
                answer.read()
                refused = [] if answer.is_server_error else [(Kind.HTTP, str(answer.status_code))]
                raise _not_fetched(image, _reason(answer), *refused)
            for line in answer.iter_lines():
                said = json.loads(line) if line.strip() else {}
                if "error" in said:
                    raise _not_fetched(image, said["error"])
                yield str(said.get("status", ""))

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        with self._errors():
            answer = self._client.request(method, path, **more)
        self._has_answered = True
        return answer

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn connection errors into failures."""
        try:
            yield
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            if self._has_answered or not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                raise platform_error(f"The Docker daemon at {self._host} closed the connection: {reason}.") from None
            remedy = "Start one, or name another in the settings: [docker] host."
            raise fatal(f"There is no Docker daemon at {self._host}: {reason}.", remedy=remedy) from None


def _client(host: str) -> httpx.Client:
    scheme, _, rest = host.partition("://")
    match scheme:
        case "unix":
            transport = httpx.HTTPTransport(uds=rest, trust_env=False)
            return httpx.Client(transport=transport, base_url="http://docker", timeout=_SECONDS, trust_env=False)
        case "tcp" | "http":
            return httpx.Client(base_url=f"http://{rest}", timeout=_SECONDS, trust_env=False)
        case "https":
            return httpx.Client(base_url=host, timeout=_SECONDS, trust_env=False)
        case _:
            raise fatal(f"docker.host is {host}: write unix:///PATH, tcp://HOST:PORT or https://HOST:PORT.")


def _not_fetched(image: str, reason: str, *more: Evidence) -> StepFailed:
    state = state_of([(Kind.IMAGE, reason), *more], State.PLATFORM_ERROR)
    return failed(state, f"The image {image} cannot be fetched: {reason}")


def _check(answer: httpx.Response) -> httpx.Response:
    if answer.is_server_error:
        raise platform_error(f"Docker failed: {_reason(answer)}")
    if answer.is_error:
        raise fatal(f"Docker refused: {_reason(answer)}")
    return answer


def _reason(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, LookupError, TypeError):
        return f"{answer.status_code} {answer.text[:500]}"


def _frames(parts: Iterator[bytes]) -> Iterator[tuple[str, bytes]]:
    """Split a container's log into standard output and error: each frame has a header with stream and length."""
    data = b""
    for part in parts:
        data += part
        while len(data) >= _HEADER and len(data) >= (end := _HEADER + int.from_bytes(data[4:_HEADER], "big")):
            yield _STREAMS.get(data[0], "O"), data[_HEADER:end]
            data = data[end:]
