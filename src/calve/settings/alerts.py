"""Alerts: which events are reported, to whom, and through which channel."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from calve.settings.fields import Duration, Section, Words, from_json, words


class EmailChannel(Section):
    """Alerts by e-mail."""

    type: Literal["email"]
    host: str
    port: Annotated[int, Field(ge=1, le=65_535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password_secret: str | None = None
    """The name of the secret that holds the password."""
    sender: str
    to: Words = ()
    """Recipients of what the rules send here; definitions name their own addresses."""


class SlackChannel(Section):
    """Alerts to a webhook with Slack's message format."""

    type: Literal["slack"]
    url_secret: str
    """The name of the secret with the webhook's address, which is a credential in itself."""


class WebhookChannel(Section):
    """Alerts as JSON to your own address."""

    type: Literal["webhook"]
    url: str | None = None
    url_secret: str | None = None
    """The name of the secret with the address, if it is secret."""
    key_secret: str | None = None
    """The name of the secret with which messages are signed."""

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if (self.url is None) == (self.url_secret is None):
            raise ValueError("a webhook requires either url or url_secret")
        return self


Channel = Annotated[EmailChannel | SlackChannel | WebhookChannel, Field(discriminator="type")]


class AlertRule(Section):
    """Which alerts of which workflows go where."""

    on: Annotated[tuple[Literal["failure", "success", "long_running", "late"], ...], BeforeValidator(words)]
    channels: Annotated[Words, Field(min_length=1)]
    workflows: Words = ("*",)
    """Patterns of their ids, such as ``sales.*``."""
    after: Duration | None = None
    """long_running: how long a run may take; late: how long after its scheduled time it must have ended."""

    @model_validator(mode="after")
    def _knows_how_long(self) -> Self:
        if self.after is None and {"long_running", "late"} & set(self.on):
            raise ValueError("long_running and late require `after`, such as 2h")
        return self


class AlertSettings(Section):
    """Channels and rules of alerts."""

    channels: dict[str, Channel] = Field(default_factory=dict)
    rules: Annotated[tuple[AlertRule, ...], BeforeValidator(from_json)] = ()
    tries: Annotated[int, Field(ge=1, le=100)] = 10
    """How often sending a message is tried before it is given up."""

    @model_validator(mode="after")
    def _channels_exist(self) -> Self:
        for rule in self.rules:
            for name in rule.channels:
                if name not in self.channels:
                    raise ValueError(f"a rule names the channel {name!r}, but the channels are: {list(self.channels)}")
        return self
