"""``calve alerts``: the alerts that were sent, and tests of channels."""

import click

from calve.cli.command import option, performs
from calve.cli.output import moment, print_table
from calve.cli.session import Document


@performs("Maintenance.alerts", is_group=True)
def alerts(found: list[Document]) -> None:
    r"""Show the alerts that were sent, are waiting, or could not be sent, newest first.

    \b
      calve alerts
      calve alerts --status given_up
      calve alerts test ops

    Channels and rules are in the section [alerts] of the settings; workflows may have alerts of their own.
    """
    if not found:
        click.echo("There are no alerts. To try a channel: calve alerts test CHANNEL", err=True)
    else:
        rows = [(moment(one["made_at"]), one["status"], _route(one), _title(one)) for one in found]
        print_table(("at", "status", "channel", "alert"), rows)


@performs("Maintenance.test_channel", "test", below=alerts, to=option(metavar="ADDRESS"))
def _test(sent: Document) -> None:
    r"""Send a test message on CHANNEL, and report whether it was accepted.

    \b
      calve alerts test ops
      calve alerts test ops --to ann@example.com
    """
    click.echo(f"{sent['channel']} accepted the message {sent['id']}.")


def _route(alert: Document) -> str:
    return " ".join((alert["channel"], *alert["to"]))


def _title(alert: Document) -> str:
    title = str(alert["alert"]["title"])
    return f"{title} ({alert['error']})" if alert["error"] else title
