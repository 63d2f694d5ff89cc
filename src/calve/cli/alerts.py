"""``calve alerts``: what was told to whom, and whether a channel works."""

from typing import TYPE_CHECKING, Any

import click

from calve.cli.output import moment, print_json, print_table
from calve.cli.state import State, json_option
from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from calve.alerts import StoredMessage


@click.group(invoke_without_command=True)
@click.option("--status", type=click.Choice(["waiting", "sent", "given_up"]), help="Show only these.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Show at most so many.")
@json_option
@click.pass_context
def alerts(context: click.Context, status: str | None, limit: int) -> None:
    r"""Show the alerts that were sent, wait, or could not be sent, newest first.

    \b
      calve alerts
      calve alerts --status given_up
      calve alerts test ops

    Channels and rules stand in the settings, [alerts]; workflows may ask for alerts of their own.
    """
    if context.invoked_subcommand is not None:
        return
    from calve.alerts import MessageStatus

    state: State = context.obj
    with state.workplace() as workplace:
        wanted = None if status is None else MessageStatus(status)
        found = workplace.store.alerts.messages(status=wanted, limit=limit)
    if state.json:
        print_json([_as_json(stored) for stored in found])
    elif not found:
        click.echo("There are none. To try a channel: calve alerts test CHANNEL", err=True)
    else:
        rows = [(moment(stored.made_at), stored.status, _way(stored), _what(stored)) for stored in found]
        print_table(("at", "status", "channel", "alert"), rows)


@alerts.command(name="test")
@click.argument("channel")
@click.option(
    "--to", multiple=True, metavar="WHOM", help="An address or a Slack channel, instead of the channel's own."
)
@json_option
@click.pass_obj
def try_channel(state: State, channel: str, to: tuple[str, ...]) -> None:
    r"""Send a test message on CHANNEL, at once, and say whether it was taken.

    \b
      calve alerts test ops
      calve alerts test ops --to ann@example.com
    """
    from calve.alerts import channels_of
    from calve.app import test_message

    with state.workplace() as workplace:
        known = channels_of(state.settings.alerts, workplace.secrets)
        if channel not in known:
            names = ", ".join(known) or "none"
            raise RequestInvalid(
                f"There is no channel {channel}; there are: {names}.",
                remedy=f"Add [alerts.channels.{channel}] to calve.toml.",
            )
        message = test_message(channel, to)
        known[channel].send(message, message.alert.at)
    if state.json:
        print_json({"channel": channel, "id": message.id, "status": "sent"})
    else:
        click.echo(f"{channel} took the message {message.id}.")


def _as_json(stored: "StoredMessage") -> dict[str, Any]:
    return {
        "id": stored.message.id,
        "status": stored.status.value,
        "channel": stored.message.route.channel,
        "to": list(stored.message.route.to),
        "alert": stored.message.alert.as_json(),
        "tries": stored.tries,
        "error": stored.error,
        "made_at": stored.made_at,
        "sent_at": stored.sent_at,
    }


def _way(stored: "StoredMessage") -> str:
    return " ".join((stored.message.route.channel, *stored.message.route.to))


def _what(stored: "StoredMessage") -> str:
    title = stored.message.alert.title
    return f"{title} ({stored.error})" if stored.error else title
