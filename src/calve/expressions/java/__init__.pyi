from .format import FormatFailed as FormatFailed, Shown as Shown, format_java as format_java
from .hash_map import HashMap as HashMap
from .json import json_escaped as json_escaped, json_scalar as json_scalar, json_text as json_text
from .numbers import (
    INT_MAX as INT_MAX,
    INT_MIN as INT_MIN,
    LONG_MAX as LONG_MAX,
    LONG_MIN as LONG_MIN,
    divide_doubles as divide_doubles,
    divide_longs as divide_longs,
    double_text as double_text,
    double_to_long as double_to_long,
    parse_double as parse_double,
    parse_long as parse_long,
    power as power,
    remainder_of_doubles as remainder_of_doubles,
    remainder_of_longs as remainder_of_longs,
    to_int as to_int,
    wrap as wrap,
)
from .regex import PatternInvalid as PatternInvalid, replace_all as replace_all, split as split
