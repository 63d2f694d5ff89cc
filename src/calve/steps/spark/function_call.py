"""Calls a user's function with a Spark session, in the process that ``python_runner`` runs in."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from calve.lake import hush
from calve.steps.spark.client import limit_retries
from calve.steps.spark.progress import Progress


class Unusable(Exception):
    """The function does not accept the arguments."""


def call(function: str, url: str, args: Sequence[Any], parameters: Mapping[str, Any]) -> Any:
    """Call a function, ``module:name`` or ``path.py:name``, with the session at ``url``, arguments and keywords."""
    from pyspark.sql.connect.session import SparkSession

    hush()
    found = find(function)
    spark = SparkSession.builder.remote(url).getOrCreate()
    limit_retries(spark, tries=30)
    spark.registerProgressHandler(Progress(sys.stderr.write))  # type: ignore[arg-type]  # it is one by its shape
    _check(found, function, spark, args, parameters)
    return found(spark, *args, **parameters)


def _check(
    found: Callable[..., Any], name: str, spark: Any, args: Sequence[Any], parameters: Mapping[str, Any]
) -> None:
    try:
        inspect.signature(found).bind(spark, *args, **parameters)
    except TypeError as error:
        raise Unusable(f"{name} cannot be called with a session and these arguments: {error}.") from None
    except ValueError:
        return  # a built-in function without a signature


def find(name: str) -> Callable[..., Any]:
    """Return a function by its name.

    Raises:
        ImportError: the module or file does not exist, or has no such function.
    """
    where, _, what = name.rpartition(":")
    module = _loaded(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    found: Any = module
    for part in what.split("."):
        if not hasattr(found, part):
            raise ImportError(f"{where} has no {what}.")
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]  # whatever it is, it is called


def _loaded(path: Path) -> Any:
    """Import a file; modules beside it can be imported too, as for a script."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"The Python file {path} does not exist.")
    sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
