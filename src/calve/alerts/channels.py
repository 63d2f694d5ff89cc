"""The channels of the settings: e-mail, Slack and webhooks."""

import hmac
import json
import logging
import smtplib
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, assert_never

import httpx

from calve.alerts.model import Alert, Message
from calve.alerts.ports import Channel
from calve.errors import AlertNotSent, ParamError
from calve.settings import AlertSettings, EmailChannel, SlackChannel, WebhookChannel

Resolve = Callable[[str], str]
"""Returns the text of a secret by its name."""


def channels_of(settings: AlertSettings, secret: Resolve, server: str = "") -> Mapping[str, Channel]:
    """Return the channels by name.

    Args:
        settings: the settings of alerts.
        secret: reads secrets, each time that a message is sent.
        server: the address of the server whose pages messages link to; empty if unknown.
    """
    return {name: _channel(settings.channels[name], secret, server) for name in settings.channels}


def _channel(settings: EmailChannel | SlackChannel | WebhookChannel, secret: Resolve, server: str) -> Channel:
    match settings:
        case EmailChannel():
            return Email(settings, secret, server)
        case SlackChannel():
            return SlackHook(settings, secret, server)
        case WebhookChannel():
            return Webhook(settings, secret, server)
        case _:
            assert_never(settings)


def _link(alert: Alert, server: str) -> str:
    """Return the full address of the page that shows an alert; empty if the server's address is unknown."""
    return server + alert.page if server and alert.page else ""


SECONDS = 15
"""Seconds that a mail server may take to respond."""


class Email:
    """Sends messages through a mail server."""

    def __init__(self, settings: EmailChannel, secret: Resolve, server: str = "") -> None:
        self._settings, self._secret, self._server_url = settings, secret, server

    def send(self, message: Message, now: int) -> None:
        """Send a message to its own addresses, or to those of the channel.

        Raises:
            AlertNotSent: it could not be sent to all of them.
        """
        to = message.route.to or self._settings.to
        if not to:
            raise AlertNotSent("The channel has no recipients.", remedy="Set `to`.", is_final=True)
        try:
            mail = _mail(message, self._settings.sender, to, now, _link(message.alert, self._server_url))
        except ValueError as error:
            raise AlertNotSent(f"The e-mail is invalid: {error}", is_final=True) from None
        try:
            with self._server() as server:
                refused = server.send_message(mail)
        except (OSError, smtplib.SMTPException) as error:
            raise AlertNotSent(f"The mail server rejected the message: {_said(error)}") from None
        if refused:
            raise AlertNotSent(f"The mail server refused {', '.join(refused)}.")

    @contextmanager
    def _server(self) -> Iterator[smtplib.SMTP]:
        settings, tls = self._settings, ssl.create_default_context()
        if settings.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(settings.host, settings.port, timeout=SECONDS, context=tls)
        else:
            server = smtplib.SMTP(settings.host, settings.port, timeout=SECONDS)
        with server:
            if settings.security == "starttls":
                server.starttls(context=tls)
            if settings.user is not None:
                server.login(settings.user, self._password())
            yield server

    def _password(self) -> str:
        if self._settings.password_secret is None:
            return ""
        try:
            return self._secret(self._settings.password_secret)
        except ParamError as error:
            raise AlertNotSent(error.message, remedy=error.remedy) from None


def _mail(message: Message, sender: str, to: tuple[str, ...], now: int, link: str) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = f"[calve] {' '.join(message.alert.title.split())}"
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Date"] = format_datetime(datetime.fromtimestamp(now / 1_000, UTC))
    # The same id at each try: mail programs show a repeated message once.
    mail["Message-ID"] = f"<{message.id}@calve>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content("\n\n".join(part for part in (message.alert.title, message.alert.text, link) if part) + "\n")
    return mail


def _said(error: Exception) -> str:
    """Return the message of an error, on one line."""
    if isinstance(error, smtplib.SMTPResponseException):
        words = error.smtp_error
        text = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
        return f"{error.smtp_code} {text}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"it refused {', '.join(error.recipients)}"
    return f"{type(error).__name__}: {error}"


logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs complete addresses, which may be secrets

ID, SIGNATURE = "Calve-Message-Id", "Calve-Signature"
_PASSING = frozenset({408, 425, 429})
_MARK = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class SlackHook:
    """Sends messages to an incoming webhook of Slack, or of a service with the same format."""

    def __init__(self, settings: SlackChannel, secret: Resolve, server: str = "") -> None:
        self._settings, self._secret, self._server = settings, secret, server

    def send(self, message: Message, now: int) -> None:
        """Send a message.

        Raises:
            AlertNotSent: it could not be sent.
        """
        del now
        body = json.dumps(_slack_body(message, _link(message.alert, self._server))).encode()
        _post(_resolved(self._secret, self._settings.url_secret), body, {ID: message.id})


class Webhook:
    """Sends messages as JSON, signed if there is a key."""

    def __init__(self, settings: WebhookChannel, secret: Resolve, server: str = "") -> None:
        self._settings, self._secret, self._server = settings, secret, server

    def send(self, message: Message, now: int) -> None:
        """Send a message.

        Raises:
            AlertNotSent: it could not be sent.
        """
        settings = self._settings
        url = settings.url or _resolved(self._secret, settings.url_secret or "")
        link = _link(message.alert, self._server) or None
        body = json.dumps({"id": message.id, **message.alert.as_json(), "url": link}).encode()
        headers = {ID: message.id}
        if settings.key_secret is not None:
            headers[SIGNATURE] = signature(_resolved(self._secret, settings.key_secret), body, now // 1_000)
        _post(url, body, headers)


def signature(key: str, body: bytes, seconds: int) -> str:
    """Return the signature of a body and the time at which it is sent: the time, and an HMAC of both."""
    signed = hmac.new(key.encode(), f"{seconds}.".encode() + body, "sha256").hexdigest()
    return f"t={seconds},v1={signed}"


def _slack_body(message: Message, link: str) -> dict[str, Any]:
    alert, route = message.alert, message.route
    people = " ".join(f"<@{user.removeprefix('@')}>" for user in route.mention)
    text = "\n".join(part for part in (people, f"*{_plain(alert.title)}*", _plain(alert.text), _plain(link)) if part)
    return {"text": text, **({"channel": route.to[0]} if route.to else {})}


def _plain(text: str) -> str:
    """Escape a text for Slack: no links, no mentions."""
    return "".join(_MARK.get(letter, letter) for letter in text)


def _resolved(secret: Resolve, name: str) -> str:
    try:
        return secret(name)
    except ParamError as error:
        raise AlertNotSent(error.message, remedy=error.remedy) from None


def _post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Send a request; the error never contains the address, which may be a secret."""
    try:
        # trust_env off: a proxy from the environment would see addresses and bodies.
        with httpx.Client(timeout=SECONDS, trust_env=False) as client:
            response = client.post(url, content=body, headers={"Content-Type": "application/json", **headers})
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise AlertNotSent(f"The receiver could not be reached ({type(error).__name__}).") from None
    if not response.is_success:
        code = response.status_code
        is_final = 400 <= code < 500 and code not in _PASSING
        raise AlertNotSent(f"The receiver responded with {code}.", is_final=is_final)
