from .change_map import LEGEND as LEGEND, ChangeMap as ChangeMap, Letter as Letter, Reader as Reader
from .facts import SECONDS as SECONDS, Cell as Cell, FactsCache as FactsCache, FactsReader as FactsReader
from .history import MetadataCache as MetadataCache, TableHistory as TableHistory, written_by as written_by
from .lag_history import (
    EVERY as EVERY,
    Behind as Behind,
    LagSample as LagSample,
    forecast as forecast,
    max_age as max_age,
)
from .lateness import Lateness as Lateness
from .tables import (
    CaptureDelivery as CaptureDelivery,
    Tables as Tables,
    TableServices as TableServices,
    TableUse as TableUse,
    Target as Target,
)
