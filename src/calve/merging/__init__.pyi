from .execution import Merged as Merged, MergePart as MergePart
from .merge_into import active_session as active_session, merge as merge
