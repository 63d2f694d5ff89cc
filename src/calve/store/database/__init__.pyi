from .database import Database as Database
from .locks import has_scheduler as has_scheduler, only_scheduler as only_scheduler
from .notifications import Notifier as Notifier
from .statements import CHUNK as CHUNK, chunks as chunks, fits as fits, is_below as is_below
from .transactions import StartOver as StartOver, Transaction as Transaction, Transactions as Transactions
