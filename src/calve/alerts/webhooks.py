"""Alerts as HTTP requests: to a webhook of Slack, or of one's own."""

import hmac
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from calve.alerts.model import Message
from calve.errors import AlertNotSent, ParamError
from calve.settings import SlackChannel, WebhookChannel

logging.getLogger("httpx").setLevel(logging.WARNING)  # it writes down whole addresses, which may be secrets

SECONDS = 15.0
"""How long a receiver may take to answer."""
ID, SIGNATURE = "Calve-Message-Id", "Calve-Signature"
_PASSING = frozenset({408, 425, 429})
_MARK = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

Resolve = Callable[[str], str]


class SlackHook:
    """Sends messages to an incoming webhook of Slack, or of what understands the same."""

    def __init__(self, settings: SlackChannel, secret: Resolve) -> None:
        self._settings, self._secret = settings, secret

    def send(self, message: Message, now: int) -> None:
        """Send a message.

        Raises:
            AlertNotSent: it could not be sent.
        """
        del now
        body = json.dumps(_slack_body(message)).encode()
        _post(_resolved(self._secret, self._settings.url_secret), body, {ID: message.id})


class Webhook:
    """Sends messages as JSON, signed if there is a key."""

    def __init__(self, settings: WebhookChannel, secret: Resolve) -> None:
        self._settings, self._secret = settings, secret

    def send(self, message: Message, now: int) -> None:
        """Send a message.

        Raises:
            AlertNotSent: it could not be sent.
        """
        settings = self._settings
        url = settings.url or _resolved(self._secret, settings.url_secret or "")
        body = json.dumps({"id": message.id, **message.alert.as_json()}).encode()
        headers = {ID: message.id}
        if settings.key_secret is not None:
            headers[SIGNATURE] = signature(_resolved(self._secret, settings.key_secret), body, now // 1_000)
        _post(url, body, headers)


def signature(key: str, body: bytes, seconds: int) -> str:
    """Return the signature of a body that was sent at a time: the time, and an HMAC of both."""
    signed = hmac.new(key.encode(), f"{seconds}.".encode() + body, "sha256").hexdigest()
    return f"t={seconds},v1={signed}"


def _slack_body(message: Message) -> dict[str, Any]:
    alert, route = message.alert, message.route
    people = " ".join(f"<@{user.removeprefix('@')}>" for user in route.mention)
    text = "\n".join(part for part in (people, f"*{_plain(alert.title)}*", _plain(alert.text)) if part)
    return {"text": text, **({"channel": route.to[0]} if route.to else {})}


def _plain(text: str) -> str:
    """Return a text in which nothing means something to Slack: no links, no mentions of everybody."""
    return "".join(_MARK.get(letter, letter) for letter in text)


def _resolved(secret: Resolve, name: str) -> str:
    try:
        return secret(name)
    except ParamError as error:
        raise AlertNotSent(error.message, remedy=error.remedy) from None


def _post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Send a request; what is said of a failure never holds the address, which may be a secret."""
    try:
        with httpx.Client(timeout=SECONDS, trust_env=False) as client:
            response = client.post(url, content=body, headers={"Content-Type": "application/json", **headers})
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise AlertNotSent(f"The receiver could not be reached ({type(error).__name__}).") from None
    if not response.is_success:
        code = response.status_code
        is_final = 400 <= code < 500 and code not in _PASSING
        raise AlertNotSent(f"The receiver answered {code}.", is_final=is_final)
