from .alerts import DEFINITIONS as DEFINITIONS, EVENTS as EVENTS, Alerts as Alerts
from .channels import channels_of as channels_of
from .model import (
    Alert as Alert,
    Message as Message,
    MessageStatus as MessageStatus,
    Route as Route,
    StoredMessage as StoredMessage,
)
from .policy import Policy as Policy
from .ports import AlertState as AlertState, Channel as Channel
from .rules import may_come_again as may_come_again
