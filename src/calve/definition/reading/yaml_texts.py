"""How YAML becomes events: with PyYAML's parser, and nothing of it that makes objects."""

import re
from typing import Any

import yaml

from calve.definition.document import Mark
from calve.definition.reading.composing import Composer, Halted
from calve.definition.reading.faults import explain
from calve.definition.reading.scalars import Unfit

# A loader, but only its events are asked for: what it could construct is never reached.
_PARSER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TAG_SHOWN = 100
# Line breaks to YAML 1.1 and so to its parsers, characters like others to YAML 1.2; some parsers skip the last.
_DOUBTFUL = re.compile("[\x85\u2028\u2029\ufeff]")


def compose_yaml(text: str, composer: Composer) -> None:
    """Feed the first document of a text to a composer."""
    if found := _DOUBTFUL.search(text):
        raise _refusal(text, found.start())
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


def _refusal(text: str, offset: int) -> Halted:
    code = ord(text[offset])
    mark = Mark(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
    message = f"the character U+{code:04X} means different things to different readers of YAML"
    return Halted("character", message, mark, hint=f'write "\\u{code:04x}" in double quotes, or leave it out')


def _mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)
