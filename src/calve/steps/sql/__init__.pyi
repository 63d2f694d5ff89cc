from .error_positions import SqlText as SqlText, offset_of as offset_of, written_at as written_at
from .results import Rows as Rows, check_expectation as check_expectation, result_outputs as result_outputs
from .runtime import WORK as WORK, Sql as Sql
from .statements import Statement as Statement, check_values as check_values, split as split
