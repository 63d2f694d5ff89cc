"""The methods of a map."""

from calve.expressions.failures import class_cast, null_pointer
from calve.expressions.java.hash_map import HashMap
from calve.expressions.meter import Run
from calve.expressions.values import NULL, Bool, Long, Map, Text, Value


def call(run: Run, value: Map, name: str, arguments: list[Value]) -> Value | None:
    """Return what a method gives, or None if there is no such method."""
    match name, arguments:
        case "size", []:
            run.charge()
            return Long(0 if value.val is None else len(value.val))
        case "containsKey", [key]:
            found = value.val is not None and value.val.get(_key(key).val) is not None
            run.charge()
            return Bool(found)
        case "get", [key]:
            return _entries(value, key).get(_key(key).val) or NULL
        case "getOrDefault", [key, default]:
            return _entries(value, key).get(_key(key).val) or default
        case "put", [key, element]:
            return _entries(value, key).put(_key(key), element) or NULL
        case _:
            return None


def _key(key: Value) -> Text:
    if not isinstance(key, Text):
        raise class_cast(key.java_class, "SelString")
    return key


def _entries(value: Map, key: Value) -> HashMap[Text, Value]:
    _key(key)
    if value.val is None:
        raise null_pointer("the map holds nothing: it was declared and not set")
    return value.val
