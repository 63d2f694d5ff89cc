from .search import replace_all as replace_all, split as split
from .sets import PatternInvalid as PatternInvalid
