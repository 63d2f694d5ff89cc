"""What a name stands for: a variable, a class, the parameters or one of them, or nothing."""

from calve.expressions.boxing import box
from calve.expressions.meter import Run
from calve.expressions.text import from_units
from calve.expressions.values import CLASSES, NULL, PARAMS, Text, Value

PARAMS_NAME = "params"


def resolve(run: Run, slot: int) -> Value:
    """Return what a name stands for that is no variable yet; a parameter becomes a variable by this."""
    name = run.names[slot]
    if name in CLASSES:
        # An assignment changes the class for the rest of this evaluation, as it does in Maestro.
        value = CLASSES[name]()
    elif name == PARAMS_NAME:
        value = PARAMS
    elif (key := from_units(name)) in run.params:
        value = box(run, run.params[key])
    else:
        return NULL
    run.slots[slot] = value
    return value


def target_of(run: Run, slot: int, value: Value) -> Value:
    """Return what a name that is no variable yet becomes when ``value`` is assigned to it."""
    name = run.names[slot]
    if name in CLASSES or name == PARAMS_NAME or from_units(name) in run.params:
        return resolve(run, slot)
    target = run.slots[slot] = run.blank(value.type)
    return target


def param(run: Run, key: Text) -> Value:
    """Return a copy of a parameter, or null."""
    name = None if key.val is None else from_units(key.val)
    return box(run, run.params[name]) if name is not None and name in run.params else NULL
