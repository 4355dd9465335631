"""The schemas of the Prometheus Operator's resources, for the manifests that need it.

``python -m tests.deploy.operator_schemas FOLDER`` writes them again from the files of a release's ``example/prometheus-operator-crd``
(https://github.com/prometheus-operator/prometheus-operator, Apache-2.0): without descriptions, and refusing fields that they do not have,
as ``kubectl apply`` does. Rules in CEL (``x-kubernetes-validations``) are omitted.
"""

import gzip
import json
import sys
from pathlib import Path

import yaml

FOLDER = Path(__file__).with_name("operator")
NAMES = ("podmonitors", "scrapeconfigs")
OMITTED = {"description", "example", "default", "x-kubernetes-validations"}
NAMED = ("properties", "patternProperties")
"""Their keys are names, not keywords."""


def load():
    """Return the schemas by apiVersion and kind."""
    schemas = {}
    for file in sorted(FOLDER.glob("*.json.gz")):
        schemas |= {
            tuple(place.split()): schema for place, schema in json.loads(gzip.decompress(file.read_bytes())).items()
        }
    return schemas


def closed(schema):
    """Return a schema without what only people read, that takes no field that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: closed(each) for name, each in schema.items() if name not in OMITTED}
    for name in NAMED:
        if name in schema:
            kept[name] = {field: closed(each) for field, each in schema[name].items()}
    if "properties" in kept and not kept.get("x-kubernetes-preserve-unknown-fields"):
        kept.setdefault("additionalProperties", False)
    return kept


def write(folder):
    """Write the schemas of the definitions in a folder."""
    for name in NAMES:
        definition = yaml.safe_load((Path(folder) / f"monitoring.coreos.com_{name}.yaml").read_text())["spec"]
        schemas = {
            f"{definition['group']}/{version['name']} {definition['names']['kind']}": closed(
                version["schema"]["openAPIV3Schema"]
            )
            for version in definition["versions"]
        }
        text = json.dumps(schemas, separators=(",", ":"), sort_keys=True)
        (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    write(sys.argv[1])
