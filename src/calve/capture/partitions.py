"""Which partitions a change touches. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calve.capture.manifests import Manifest
from calve.capture.source import Source
from calve.capture.values import bound_decoder, partition_to_json
from calve.lake import decoding

Fields = Sequence[Mapping[str, Any]]


def has_one_partition(manifest: Manifest) -> bool:
    """Tell whether the manifest list shows that all files of a manifest are in one partition."""
    return manifest.file.partitions is not None and all(
        not summary.contains_null and summary.lower_bound is not None and summary.lower_bound == summary.upper_bound
        for summary in manifest.file.partitions
    )


def partitions_of(source: Source, manifests: Iterable[Manifest]) -> list[dict[str, Any]]:
    """Return the partitions of some files, each once: its spec, and the values as Iceberg shows them."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for manifest in manifests:
        spec_id = manifest.file.partition_spec_id
        fields = source.specs[spec_id]
        if not fields:
            continue
        kinds = [kind_of(source, field["source-id"]) for field in fields]
        if manifest.kept is None and has_one_partition(manifest):
            tuples: Iterable[Sequence[Any]] = (_from_summaries(manifest, fields, kinds) for _ in range(1))
        else:
            tuples = (list(entry.partition.values()) for entry in manifest.entries())
        with decoding(manifest.file.manifest_path):
            for values in tuples:
                key = (spec_id, *values)
                if key not in found:
                    found[key] = {"spec_id": spec_id, "values": shown_values(fields, kinds, values)}
    return sorted(found.values(), key=lambda item: (item["spec_id"], [str(v) for v in item["values"].values()]))


def shown_values(fields: Fields, kinds: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return the values of a partition by the names of its fields, as Iceberg shows them."""
    return {
        field["name"]: partition_to_json(field["transform"], kind, value)
        for field, kind, value in zip(fields, kinds, values, strict=True)
        # A field dropped from a spec of format v1 stays as void, so that later fields keep their places.
        if field["transform"] != "void"
    }


def _from_summaries(manifest: Manifest, fields: Fields, kinds: Sequence[str]) -> list[Any]:
    bounds = [summary.lower_bound for summary in manifest.file.partitions or ()]
    return [
        None if bound is None else bound_decoder(_result_kind(field["transform"], kind))(bound)
        for field, kind, bound in zip(fields, kinds, bounds, strict=True)
    ]


def _result_kind(transform: str, source_kind: str) -> str:
    return source_kind if transform == "identity" or transform.startswith("truncate") else "int"


def kind_of(source: Source, field_id: int) -> str:
    """Return the type of a partition's source column, which may have been dropped since."""
    # A dropped column is only in an older schema.
    for schema in (source.schema, *source.schemas.values()):
        left = list(schema["fields"])
        while left:
            field = left.pop()
            if field["id"] == field_id:
                return str(field["type"])
            if isinstance(field["type"], dict):
                left += field["type"].get("fields", ())
    return "binary"
