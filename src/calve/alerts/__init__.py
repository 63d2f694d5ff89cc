"""Who is told when something happens to a workflow, and how."""

from calve.alerts.alerts import Alerts
from calve.alerts.channels import channels_of
from calve.alerts.model import Alert, Message, MessageStatus, StoredMessage
from calve.alerts.policies import Policy
from calve.alerts.ports import AlertState, Channel

__all__ = [
    "Alert",
    "AlertState",
    "Alerts",
    "Channel",
    "Message",
    "MessageStatus",
    "Policy",
    "StoredMessage",
    "channels_of",
]
