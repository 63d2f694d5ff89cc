from .conditions import (
    Atom as Atom,
    Constant as Constant,
    ParamRead as ParamRead,
    atoms_of as atoms_of,
    satisfiable as satisfiable,
)
from .evaluation import (
    Program as Program,
    Result as Result,
    complete as complete,
    evaluate as evaluate,
    evaluate_text as evaluate_text,
    parse as parse,
)
from .limits import Clock as Clock, Limits as Limits, ParamFunctions as ParamFunctions, system_millis as system_millis
from .linter import Warning as Warning, lint as lint  # noqa: A004
from .references import ParamCall as ParamCall, calls as calls, inputs as inputs, names as names, reads as reads
from .values import ResultType as ResultType
