#!/usr/bin/env python3
"""Writes the tables of the kustomize build from a Kubernetes OpenAPI v2 document: `builtin.json` and `scopes.txt`.

    go mod download -json k8s.io/kubernetes@v1.21.2      # the version whose merge keys kustomize v5 uses
    hack/kustomize-schema.py DIR/api/openapi-spec/swagger.json src/kustomize/schema

Only what a strategic merge needs is kept: fields below which some list merges by key. Types are named after their OpenAPI
definitions. The second file tells which kinds are cluster-scoped. One line per type or kind keeps differences readable.
"""
import json
import sys
from pathlib import Path

# Kinds newer than the document that kustomize treats as cluster-scoped all the same.
ALSO_CLUSTER_SCOPED = [
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding",
]


def short(name):
    for prefix in ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.kube-aggregator.pkg.apis.",
                   "io.k8s.apiextensions-apiserver.pkg.apis."):
        if name.startswith(prefix):
            return name[len(prefix):]
    return name


def reference(schema):
    return short(schema["$ref"].rsplit("/", 1)[1]) if "$ref" in schema else None


def field(schema):
    """The table entry of one property: a type name, or a mapping with `items`, `values`, `merge`."""
    if "$ref" in schema:
        return reference(schema)
    if schema.get("type") == "array":
        entry = {}
        if "merge" in schema.get("x-kubernetes-patch-strategy", "").split(","):
            key = schema.get("x-kubernetes-patch-merge-key")
            entry["merge"] = schema.get("x-kubernetes-list-map-keys") or ([key] if key else [])
        items = reference(schema.get("items", {}))
        if items:
            entry["items"] = items
        return entry or None
    values = schema.get("additionalProperties")
    if isinstance(values, dict) and "$ref" in values:
        return {"values": reference(values)}
    return None


def targets(entry):
    if isinstance(entry, str):
        return [entry]
    return [entry[key] for key in ("items", "values") if key in entry]


def kind_name(gvk):
    version = f"{gvk['group']}/{gvk['version']}" if gvk.get("group") else gvk["version"]
    return f"{version} {gvk['kind']}"


def main():
    document = json.load(open(sys.argv[1]))
    types, kinds = {}, {}
    for name, definition in document["definitions"].items():
        entries = {key: field(schema) for key, schema in definition.get("properties", {}).items()}
        types[short(name)] = {key: entry for key, entry in entries.items() if entry}
        gvks = definition.get("x-kubernetes-group-version-kind", [])
        if len(gvks) == 1 and "alpha" not in gvks[0]["version"] and not gvks[0]["kind"].endswith("List"):
            kinds[kind_name(gvks[0])] = short(name)

    # Keep what leads to a merging list.
    useful = set()
    while True:
        found = {
            name
            for name, entries in types.items()
            if any(isinstance(e, dict) and "merge" in e or any(t in useful for t in targets(e))
                   for e in entries.values())
        }
        if found == useful:
            break
        useful = found
    kept, pending = {}, sorted(set(kinds.values()) & useful)
    while pending:
        name = pending.pop()
        if name in kept:
            continue
        kept[name] = {
            key: entry
            for key, entry in types[name].items()
            if isinstance(entry, dict) and "merge" in entry or any(t in useful for t in targets(entry))
        }
        for entry in kept[name].values():
            pending += [t for t in targets(entry) if t in useful]
    for entries in kept.values():
        for entry in entries.values():
            if isinstance(entry, dict) and entry.get("items") not in useful:
                entry.pop("items", None)

    namespaced, cluster = set(), set(ALSO_CLUSTER_SCOPED)
    for path, operations in document["paths"].items():
        gvk = operations.get("get", {}).get("x-kubernetes-group-version-kind")
        if gvk and "alpha" not in gvk["version"]:
            (namespaced if "namespaces/{namespace}" in path else cluster).add(kind_name(gvk))

    def block(entries):
        return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(entries[key], sort_keys=True)}"
                                  for key in sorted(entries)) + "\n}"

    directory = Path(sys.argv[2])
    table = f'{{\n"types": {block(kept)},\n"kinds": {block({k: t for k, t in kinds.items() if t in kept})}\n}}\n'
    (directory / "builtin.json").write_text(table)
    scopes = {kind: "cluster" for kind in cluster} | {kind: "namespaced" for kind in namespaced}
    (directory / "scopes.txt").write_text("".join(f"{scopes[kind]} {kind}\n" for kind in sorted(scopes)))


main()
