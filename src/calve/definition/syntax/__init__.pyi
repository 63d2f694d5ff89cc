from .composer import Unsupported as Unsupported, looks_boolean as looks_boolean, resolve as resolve
from .reader import read as read
from .writer import to_json as to_json, to_yaml as to_yaml
