"""Alerts by e-mail, over SMTP."""

import smtplib
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from calve.alerts.model import Message
from calve.errors import AlertNotSent, ParamError
from calve.settings import EmailChannel

SECONDS = 15
"""How long a mail server may take to answer."""


class Email:
    """Sends messages through a mail server."""

    def __init__(self, settings: EmailChannel, secret: Callable[[str], str]) -> None:
        self._settings, self._secret = settings, secret

    def send(self, message: Message, now: int) -> None:
        """Send a message to its own addresses, or to those of the channel.

        Raises:
            AlertNotSent: it could not be sent to all of them.
        """
        to = message.route.to or self._settings.to
        if not to:
            raise AlertNotSent("The channel has no addresses to send to.", remedy="Set `to`.", is_final=True)
        try:
            mail = _mail(message, self._settings.sender, to, now)
        except ValueError as error:
            raise AlertNotSent(f"This makes no e-mail: {error}", is_final=True) from None
        try:
            with self._server() as server:
                refused = server.send_message(mail)
        except (OSError, smtplib.SMTPException) as error:
            raise AlertNotSent(f"The mail server did not take it: {_said(error)}") from None
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


def _mail(message: Message, sender: str, to: tuple[str, ...], now: int) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = f"[calve] {' '.join(message.alert.title.split())}"
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Date"] = format_datetime(datetime.fromtimestamp(now / 1_000, UTC))
    mail["Message-ID"] = f"<{message.id}@calve>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{message.alert.title}\n\n{message.alert.text}".strip() + "\n")
    return mail


def _said(error: Exception) -> str:
    """Return what an error says, in one line and no more than that."""
    if isinstance(error, smtplib.SMTPResponseException):
        words = error.smtp_error
        text = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
        return f"{error.smtp_code} {text}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"it refused {', '.join(error.recipients)}"
    return f"{type(error).__name__}: {error}"
