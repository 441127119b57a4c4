"""Croissant metadata of a task's dataset: https://docs.mlcommons.org/croissant, version 1.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .document import is_ours

if TYPE_CHECKING:
    from .document import Column, DataFile, Export

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
#: The standard's context; validators compare it word by word.
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES = {
    "float32": "cr:Float32",
    "float64": "cr:Float64",
    "int64": "cr:Int64",
    "int32": "cr:Int32",
    "int16": "cr:Int16",
    "int8": "cr:Int8",
    "uint8": "cr:UInt8",
    "bool": "sc:Boolean",
}


def croissant(export: Export) -> dict[str, Any]:
    """The JSON-LD of a dataset: its files with their SHA-256, every column's type and shape."""
    document: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": f"iclbench-{export.task}",
        "description": f"{export.summary}. {export.prompts:,} prompts per case of the in-context "
        f"learning task {export.task}, made by `{export.command}`.",
        "version": f"{export.task_version}.0.0",
        "keywords": ["in-context learning", "iclbench", export.task],
        "isLiveDataset": False,
        "distribution": [_file_object(file) for file in export.files],
        "recordSet": [_record_set(file) for file in export.files],
    }
    if is_ours(export):
        document["license"] = "https://www.apache.org/licenses/LICENSE-2.0"
    return document


def _file_object(file: DataFile) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "contentUrl": file.path,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": "application/x-parquet",
        "sha256": file.sha256,
    }


def _record_set(file: DataFile) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": file.split,
        "name": file.split,
        "field": [_field(file, column) for column in file.columns],
    }


def _field(file: DataFile, column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{file.split}/{column.name}",
        "name": column.name,
        "dataType": _TYPES[column.dtype],
        "source": {"fileObject": {"@id": file.path}, "extract": {"column": column.name}},
    }
    if column.shape:
        field["isArray"] = True
        field["arrayShape"] = ",".join(map(str, column.shape))
    return field
