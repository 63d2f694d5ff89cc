"""Alerts: which events are reported, to whom, and through which channel."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from calve.settings.fields import Duration, Section, Words, from_json, words


class EmailChannel(Section):
    """Alerts by e-mail."""

    type: Literal["email"]
    host: str
    """The mail server."""
    port: Annotated[int, Field(ge=1, le=65_535)] = 587
    """Its port."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """``starttls``, ``tls`` (from the first byte, port 465 as a rule) or ``none``."""
    user: str | None = None
    """The name to sign in with."""
    password_secret: str | None = None
    """The name of the secret that holds the password."""
    sender: str
    """The address that messages come from."""
    to: Words = ()
    """The recipients of what the rules send here; definitions name their own addresses."""


class SlackChannel(Section):
    """Alerts to a webhook with Slack's message format."""

    type: Literal["slack"]
    url_secret: str
    """The name of the secret that holds the address."""


class WebhookChannel(Section):
    """Alerts as JSON to your own address."""

    type: Literal["webhook"]
    url: str | None = None
    """The address, if it is not a secret."""
    url_secret: str | None = None
    """The name of the secret that holds the address."""
    key_secret: str | None = None
    """The name of the secret that messages are signed with."""

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if (self.url is None) == (self.url_secret is None):
            raise ValueError("a webhook requires either url or url_secret")
        return self


Channel = Annotated[EmailChannel | SlackChannel | WebhookChannel, Field(discriminator="type")]


class AlertRule(Section):
    """Which alerts of which workflows go where."""

    on: Annotated[tuple[Literal["failure", "success", "long_running", "late"], ...], BeforeValidator(words)]
    """Some of ``failure``, ``success``, ``long_running`` and ``late``."""
    channels: Annotated[Words, Field(min_length=1)]
    """The names of channels."""
    workflows: Words = ("*",)
    """Patterns of workflow ids, such as ``sales.*``."""
    after: Duration | None = None
    """Required by ``long_running`` and ``late``: how long a run may take, and how long after its scheduled time it must
    have ended."""

    @model_validator(mode="after")
    def _knows_how_long(self) -> Self:
        if self.after is None and {"long_running", "late"} & set(self.on):
            raise ValueError("long_running and late require `after`, such as 2h")
        return self


class AlertSettings(Section):
    """Channels and rules of alerts."""

    channels: dict[str, Channel] = Field(default_factory=dict)
    """Where alerts can be sent."""
    rules: Annotated[tuple[AlertRule, ...], BeforeValidator(from_json)] = ()
    """Which alerts go to which channels."""
    tries: Annotated[int, Field(ge=1, le=100)] = 10
    """The maximum number of attempts to send a message."""

    @model_validator(mode="after")
    def _channels_exist(self) -> Self:
        for rule in self.rules:
            for name in rule.channels:
                if name not in self.channels:
                    raise ValueError(f"a rule names the channel {name!r}, but the channels are: {list(self.channels)}")
        return self
