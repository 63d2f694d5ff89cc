"""The values of the language, as objects that can be changed.

A variable is bound to an object, and an assignment changes the content of the object: all names of the object see it.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from calve.expressions.java import HashMap
    from calve.expressions.joda import (
        DateTime as Instant,
        Formatter as Pattern,
        Property as InstantProperty,
        Zone as TimeZone,
    )


class ResultType(StrEnum):
    """The type of a value."""

    STRING = "STRING"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    STRING_ARRAY = "STRING_ARRAY"
    LONG_ARRAY = "LONG_ARRAY"
    DOUBLE_ARRAY = "DOUBLE_ARRAY"
    BOOLEAN_ARRAY = "BOOLEAN_ARRAY"
    MAP = "MAP"
    NULL = "NULL"
    VOID = "VOID"
    ERROR = "ERROR"
    PRESET_PARAMS = "PRESET_PARAMS"
    PRESET_UTIL_FUNCTION = "PRESET_UTIL_FUNCTION"
    PRESET_MISC_FUNC_FIELDS = "PRESET_MISC_FUNC_FIELDS"
    DATETIME = "DATETIME"
    DATETIME_ZONE = "DATETIME_ZONE"
    DATETIME_FORMATTER = "DATETIME_FORMATTER"
    DATETIME_PROPERTY = "DATETIME_PROPERTY"
    DATETIME_DAYS = "DATETIME_DAYS"
    UUID = "UUID"
    MATH = "MATH"


class Value:
    """Any value."""

    __slots__ = ()
    type: ResultType
    java_class: ClassVar[str]


class Text(Value):
    """A string, in UTF-16 units; None if it is declared but not assigned."""

    __slots__ = ("val",)
    type = ResultType.STRING
    java_class = "SelString"

    def __init__(self, val: str | None) -> None:
        self.val = val


class Long(Value):
    """A whole number of 64 bits."""

    __slots__ = ("val",)
    type = ResultType.LONG
    java_class = "SelLong"

    def __init__(self, val: int) -> None:
        self.val = val


class Double(Value):
    """A floating-point number."""

    __slots__ = ("val",)
    type = ResultType.DOUBLE
    java_class = "SelDouble"

    def __init__(self, val: float) -> None:
        self.val = val


class Bool(Value):
    """True or false."""

    __slots__ = ("val",)
    type = ResultType.BOOLEAN
    java_class = "SelBoolean"

    def __init__(self, val: bool) -> None:  # noqa: FBT001 - it is the value
        self.val = val


class Array(Value):
    """An array of one of the four simple types."""

    __slots__ = ("type", "val")
    java_class = "SelArray"

    def __init__(self, val: list[Value], type: ResultType) -> None:  # noqa: A002 - every value has one
        self.val = val
        self.type = type


class Map(Value):
    """A map from strings to values; None if it is declared but not assigned."""

    __slots__ = ("val",)
    type = ResultType.MAP
    java_class = "SelMap"

    def __init__(self, val: "HashMap[Text, Value] | None") -> None:
        self.val = val


class DateTime(Value):
    """An instant in a time zone."""

    __slots__ = ("val",)
    type = ResultType.DATETIME
    java_class = "SelJodaDateTime"

    def __init__(self, val: "Instant | None") -> None:
        self.val = val


class Zone(Value):
    """A time zone."""

    __slots__ = ("val",)
    type = ResultType.DATETIME_ZONE
    java_class = "SelJodaDateTimeZone"

    def __init__(self, val: "TimeZone | None") -> None:
        self.val = val


class Formatter(Value):
    """A formatter of dates."""

    __slots__ = ("val",)
    type = ResultType.DATETIME_FORMATTER
    java_class = "SelJodaDateTimeFormatter"

    def __init__(self, val: "Pattern | None") -> None:
        self.val = val


class Property(Value):
    """A field of a DateTime, such as its month."""

    __slots__ = ("val",)
    type = ResultType.DATETIME_PROPERTY
    java_class = "SelJodaDateTimeProperty"

    def __init__(self, val: "InstantProperty | None") -> None:
        self.val = val


class Days(Value):
    """A number of days."""

    __slots__ = ("val",)
    type = ResultType.DATETIME_DAYS
    java_class = "SelJodaDateTimeDays"

    def __init__(self, val: int | None) -> None:
        self.val = val


class Uuid(Value):
    """A random identifier."""

    __slots__ = ("val",)
    type = ResultType.UUID
    java_class = "SelJavaUUID"

    def __init__(self, val: str | None) -> None:
        self.val = val


class Null(Value):
    """``null``, or a name that is not declared."""

    __slots__ = ()
    type = ResultType.NULL
    java_class = "SelType$1"


class Void(Value):
    """The result of a statement without a value."""

    __slots__ = ()
    type = ResultType.VOID
    java_class = "SelType$2"


class Thrown(Value):
    """The result of a ``throw``."""

    __slots__ = ("val",)
    type = ResultType.ERROR
    java_class = "SelError"

    def __init__(self, val: str | None) -> None:
        self.val = val


class Params(Value):
    """The parameters, under the name ``params``."""

    __slots__ = ()
    type = ResultType.PRESET_PARAMS
    java_class = "SelParams"


class UtilClass(Value):
    """The functions of ``Util``."""

    __slots__ = ()
    type = ResultType.PRESET_UTIL_FUNCTION
    java_class = "SelUtilFunc"


class MiscClass(Value):
    """The functions of ``System``, ``Arrays`` and ``DateTimeConstants``."""

    __slots__ = ()
    type = ResultType.PRESET_MISC_FUNC_FIELDS
    java_class = "SelMiscFunc"


class MathClass(Value):
    """The functions of ``Math``."""

    __slots__ = ()
    type = ResultType.MATH
    java_class = "SelJavaMath"


NULL = Null()
VOID = Void()
PARAMS = Params()

TYPES: dict[str, ResultType] = {
    "int": ResultType.LONG,
    "long": ResultType.LONG,
    "Integer": ResultType.LONG,
    "Long": ResultType.LONG,
    "float": ResultType.DOUBLE,
    "double": ResultType.DOUBLE,
    "Float": ResultType.DOUBLE,
    "Double": ResultType.DOUBLE,
    "boolean": ResultType.BOOLEAN,
    "Boolean": ResultType.BOOLEAN,
    "String": ResultType.STRING,
    "Map": ResultType.MAP,
    "HashMap": ResultType.MAP,
    "LinkedHashMap": ResultType.MAP,
    "DateTime": ResultType.DATETIME,
    "DateTimeZone": ResultType.DATETIME_ZONE,
    "DateTimeFormatter": ResultType.DATETIME_FORMATTER,
    "DateTimeFormat": ResultType.DATETIME_FORMATTER,
    "Property": ResultType.DATETIME_PROPERTY,
    "Days": ResultType.DATETIME_DAYS,
    "UUID": ResultType.UUID,
}
"""The types by their names in the language."""

ELEMENTS: dict[ResultType, Callable[[], Value]] = {
    ResultType.STRING: lambda: Text(None),
    ResultType.LONG: lambda: Long(0),
    ResultType.DOUBLE: lambda: Double(0.0),
    ResultType.BOOLEAN: lambda: Bool(False),
}
"""The initial elements of an array."""

ARRAYS: dict[ResultType, ResultType] = {
    ResultType.STRING: ResultType.STRING_ARRAY,
    ResultType.LONG: ResultType.LONG_ARRAY,
    ResultType.DOUBLE: ResultType.DOUBLE_ARRAY,
    ResultType.BOOLEAN: ResultType.BOOLEAN_ARRAY,
}
"""The type of an array by the type of its elements."""

BLANKS: dict[ResultType, Callable[[], Value]] = {
    **ELEMENTS,
    ResultType.STRING_ARRAY: lambda: Array([], ResultType.STRING_ARRAY),
    ResultType.LONG_ARRAY: lambda: Array([], ResultType.LONG_ARRAY),
    ResultType.DOUBLE_ARRAY: lambda: Array([], ResultType.DOUBLE_ARRAY),
    ResultType.BOOLEAN_ARRAY: lambda: Array([], ResultType.BOOLEAN_ARRAY),
    ResultType.MAP: lambda: Map(None),
    ResultType.DATETIME: lambda: DateTime(None),
    ResultType.DATETIME_ZONE: lambda: Zone(None),
    ResultType.DATETIME_FORMATTER: lambda: Formatter(None),
    ResultType.DATETIME_PROPERTY: lambda: Property(None),
    ResultType.DATETIME_DAYS: lambda: Days(None),
    ResultType.UUID: lambda: Uuid(None),
}
"""The value of a variable that is declared but not assigned."""

CLASSES: dict[str, Callable[[], Value]] = {
    **{name: BLANKS[type_] for name, type_ in TYPES.items()},
    "DateTimeConstants": MiscClass,
    "System": MiscClass,
    "Arrays": MiscClass,
    "Math": MathClass,
    "Util": UtilClass,
}
"""The classes, whose names are variables like others."""

SIMPLE_ARRAYS = frozenset(ARRAYS.values())
