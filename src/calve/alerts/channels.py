"""The channels that the settings name, ready to send."""

from collections.abc import Callable, Mapping
from typing import assert_never

from calve.alerts.ports import Channel
from calve.settings import AlertSettings, EmailChannel, SlackChannel, WebhookChannel

Resolve = Callable[[str], str]
"""Gives the text of a secret by its name."""


def channels_of(settings: AlertSettings, secret: Resolve) -> Mapping[str, Channel]:
    """Return the channels by name; their secrets are looked up whenever something is sent."""
    return {name: _channel(settings.channels[name], secret) for name in settings.channels}


def _channel(settings: EmailChannel | SlackChannel | WebhookChannel, secret: Resolve) -> Channel:
    # What they send with takes longer to import than most commands take.
    from calve.alerts.email import Email
    from calve.alerts.webhooks import SlackHook, Webhook

    match settings:
        case EmailChannel():
            return Email(settings, secret)
        case SlackChannel():
            return SlackHook(settings, secret)
        case WebhookChannel():
            return Webhook(settings, secret)
        case _:
            assert_never(settings)
