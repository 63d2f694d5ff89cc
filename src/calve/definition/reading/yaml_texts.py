"""How YAML becomes events: with PyYAML's parser, and nothing of it that makes objects."""

from typing import Any

import yaml

from calve.definition.document import Mark
from calve.definition.reading.composing import Composer, Halted
from calve.definition.reading.faults import explain
from calve.definition.reading.scalars import Unfit

# A loader, but only its events are asked for: what it could construct is never reached.
_PARSER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TAG_SHOWN = 100


def compose_yaml(text: str, composer: Composer) -> None:
    """Feed the first document of a text to a composer."""
    documents = 0
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    hint = "put each into a file of its own"
                    raise Halted("several_documents", "a second document begins here", _mark(event), hint=hint)
            elif isinstance(event, yaml.NodeEvent):
                _feed(event, composer)
            elif isinstance(event, yaml.CollectionEndEvent):
                composer.end()
    except yaml.MarkedYAMLError as error:
        raise explain(text, error) from error


def _feed(event: Any, composer: Composer) -> None:
    mark = _mark(event)
    match event:
        case yaml.AliasEvent():
            composer.alias(str(event.anchor), mark)
            return
        case yaml.ScalarEvent():
            _refuse_properties(event, mark, composer)
            composer.scalar(event.value, mark, is_plain=not event.style)
        case yaml.SequenceStartEvent():
            _refuse_properties(event, mark, composer)
            composer.begin([], mark)
        case _:
            _refuse_properties(event, mark, composer)
            composer.begin({}, mark)


def _refuse_properties(event: Any, mark: Mark, composer: Composer) -> None:
    if event.anchor is not None:
        hint = "write the value out where it is needed"
        composer.refuse(mark, Unfit("anchor", f"&{event.anchor} names a value for use elsewhere", hint))
    if event.tag is not None:
        name = event.tag.replace("tag:yaml.org,2002:", "!!")
        hint = "leave it out; quotes make a text of anything"
        composer.refuse(mark, Unfit("tag", f"the tag {name[:_TAG_SHOWN]} is not allowed", hint))


def _mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)
