"""Channels send messages, and never say what is secret."""

import smtplib
import socket
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from tests.http_receiver import Receiver, receiving

from calve.alerts import Alert, Message, channels_of
from calve.alerts.channels import Email, _said, signature
from calve.alerts.model import Route
from calve.definition.model import AlertType
from calve.errors import AlertNotSent, ParamError
from calve.settings import AlertSettings, EmailChannel

ALERT = Alert("k", AlertType.STEP_FAILURE, "w", 5, 1, 1, title="w 1 failed", text="step <!channel> & co")
NOW = 1_700_000_000_000
SECRETS = {"key": "hush", "password": "hush"}


def secret(name: str) -> str:
    """Return a secret of these tests."""
    if name not in SECRETS:
        raise ParamError(f"The secret [{name}] does not exist.")
    return SECRETS[name]


def to(*people: str, mention: tuple[str, ...] = ()) -> Message:
    """Return a message on a way."""
    return Message(ALERT, Route("c", people, mention))


def channel(server: str = "", **settings: Any) -> Any:
    """Return a channel of these settings."""
    parsed = AlertSettings.model_validate({"channels": {"c": settings}})
    return channels_of(parsed, secret, server)["c"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Give a server that keeps what it gets."""
    with receiving() as found:
        yield found


class Inbox:
    """Keeps mails; refuses what goes to nobody@."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.to: list[list[str]] = []

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802 - aiosmtpd's name
        """Take a recipient."""
        if address.startswith("nobody@"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - the same
        """Take a mail."""
        self.mails.append(message_from_bytes(envelope.content))
        self.to.append(envelope.rcpt_tos)
        return "250 OK"


@pytest.fixture
def inbox() -> Iterator[tuple[Inbox, int]]:
    """Give a mail server and its port."""
    found = Inbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(found, hostname="127.0.0.1", port=port)
    controller.start()
    yield found, port
    controller.stop()


def email(port: int, **more: Any) -> Any:
    """Return a channel to a mail server."""
    return channel(type="email", host="127.0.0.1", port=port, security="none", sender="calve@example.com", **more)


def test_an_email_arrives(inbox: tuple[Inbox, int]) -> None:
    """With the title as its subject, at the channel's people, under the message's id."""
    kept, port = inbox
    email(port, to=["ops@example.com"]).send(to(), NOW)
    (mail,) = kept.mails
    assert mail["Subject"] == "[calve] w 1 failed"
    assert mail["Message-ID"] == f"<{to().id}@calve>"
    assert "step <!channel> & co" in str(mail.get_payload())
    assert kept.to == [["ops@example.com"]]


def test_a_definition_names_its_own_people(inbox: tuple[Inbox, int]) -> None:
    """Then the channel's are left alone."""
    kept, port = inbox
    email(port, to=["ops@example.com"]).send(to("a@example.com", "b@example.com"), NOW)
    assert kept.to == [["a@example.com", "b@example.com"]]


def test_who_is_refused_is_reported(inbox: tuple[Inbox, int]) -> None:
    """Whether it is one of many, or all."""
    _, port = inbox
    with pytest.raises(AlertNotSent, match=r"refused nobody@example\.com"):
        email(port).send(to("a@example.com", "nobody@example.com"), NOW)
    with pytest.raises(AlertNotSent, match=r"refused nobody@example\.com"):
        email(port).send(to("nobody@example.com"), NOW)


def test_an_email_needs_someone_to_go_to(inbox: tuple[Inbox, int]) -> None:
    """And a header cannot be smuggled in."""
    _, port = inbox
    with pytest.raises(AlertNotSent, match="no recipients") as caught:
        email(port).send(to(), NOW)
    assert caught.value.context["is_final"]
    with pytest.raises(AlertNotSent, match="e-mail is invalid"):
        email(port).send(to("a@example.com\r\nBcc: b@example.com"), NOW)


def test_a_mail_server_that_is_unavailable_or_unfit_is_reported(inbox: tuple[Inbox, int]) -> None:
    """The password is in none of it."""
    _, port = inbox
    with pytest.raises(AlertNotSent, match="rejected the message"):
        email(1).send(to("a@example.com"), NOW)
    for security in ("starttls", "tls"):
        unfit = EmailChannel(type="email", host="127.0.0.1", port=port, security=security, sender="c@example.com")
        with pytest.raises(AlertNotSent, match="rejected the message"):
            Email(unfit, secret).send(to("a@example.com"), NOW)
    for name in ("password", "missing", None):
        with pytest.raises(AlertNotSent) as caught:
            email(port, user="u", password_secret=name).send(to("a@example.com"), NOW)
        assert "hush" not in caught.value.message
    assert _said(smtplib.SMTPResponseException(535, b"no")) == "535 no"
    assert _said(smtplib.SMTPResponseException(535, "no")) == "535 no"


def test_slack_gets_its_own_form(receiver: Receiver) -> None:
    """What users wrote means nothing to Slack: nobody is called who is not named."""
    SECRETS["slack"] = f"{receiver.url}/hook/t0ps3cret"
    slack = channel(type="slack", url_secret="slack")
    slack.send(to(), NOW)
    slack.send(to("#data", mention=("@ann", "bob")), NOW)
    text = "*w 1 failed*\nstep &lt;!channel&gt; &amp; co"
    assert receiver.documents == [{"text": text}, {"text": f"<@ann> <@bob>\n{text}", "channel": "#data"}]


def test_each_channel_links_to_the_page(receiver: Receiver, inbox: tuple[Inbox, int]) -> None:
    """Where the server's address is known; else none does, and the webhook says null."""
    SECRETS["slack"] = receiver.url
    kept, port = inbox
    alert = replace(ALERT, page="/workflows/w/instances/1?step=loop%2F3%2Fjob")
    message = Message(alert, Route("c", ("ops@example.com",)))
    for server in ("https://calve.example.com", ""):
        email(port, server=server).send(message, NOW)
        channel(server, type="slack", url_secret="slack").send(message, NOW)
        channel(server, type="webhook", url=receiver.url).send(message, NOW)
    link = f"https://calve.example.com{alert.page}"
    slack, hook, slack_without, hook_without = receiver.documents
    assert [link in str(mail.get_payload()) for mail in kept.mails] == [True, False]
    assert (link in slack["text"], "://" in slack_without["text"]) == (True, False)
    assert (hook["url"], hook_without["url"]) == (link, None)


def test_a_webhook_is_signed(receiver: Receiver) -> None:
    """Whoever knows the key can tell that it is from us, and when; and drop what came already by its id."""
    hook = channel(type="webhook", url=f"{receiver.url}/calve", key_secret="key")
    hook.send(to(), NOW)
    ((path, headers, body),) = receiver.requests
    assert path == "/calve"
    assert headers["calve-message-id"] == receiver.documents[0]["id"] == to().id
    assert headers["calve-signature"] == signature("hush", body, NOW // 1_000)
    assert receiver.documents[0]["type"] == "STEP_FAILURE"


def test_a_webhook_need_not_be_signed(receiver: Receiver) -> None:
    """And its address may be a secret."""
    SECRETS["address"] = receiver.url
    channel(type="webhook", url_secret="address").send(to(), NOW)
    assert "calve-signature" not in receiver.requests[0][1]


@pytest.mark.parametrize(("status", "is_final"), [(500, False), (429, False), (404, True)])
def test_what_a_receiver_refuses_is_reported(receiver: Receiver, status: int, is_final: bool) -> None:  # noqa: FBT001 - a case
    """It is sent again unless the receiver says that this makes no sense."""
    receiver.answers = [status]
    with pytest.raises(AlertNotSent, match=str(status)) as caught:
        channel(type="webhook", url=receiver.url).send(to(), NOW)
    assert caught.value.context["is_final"] is is_final


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/t0ps3cret", "http://[t0ps3cret", "gopher://t0ps3cret"])
def test_an_address_is_never_told(url: str) -> None:
    """As it is a key in itself."""
    SECRETS["slack"] = url
    with pytest.raises(AlertNotSent, match="could not be reached") as caught:
        channel(type="slack", url_secret="slack").send(to(), NOW)
    assert "t0ps3cret" not in str(caught.value.as_json())


def test_a_secret_that_is_missing_is_named() -> None:
    """So that someone can set it."""
    with pytest.raises(AlertNotSent, match="does not exist"):
        channel(type="slack", url_secret="nowhere").send(to(), NOW)
