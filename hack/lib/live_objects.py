"""What a KluctlDeployment has in the cluster, and how two looks at it differ. Seen from outside, not from its status."""

import json

from control_plane import ControlPlane

# Set by the API server or by Kubernetes' own controllers: no part of what was deployed.
SERVER_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


class LiveObjects:
    """The objects that carry a discriminator and were applied by `kluctl`, by readable name, in reading order."""

    def __init__(self, objects: dict[str, dict]):
        self.objects = objects

    @classmethod
    def read(cls, control_plane: ControlPlane, discriminator: str) -> "LiveObjects":
        """Looks through all kinds. Objects that a controller derived from ours (and copied our labels to) are left out."""
        kinds = control_plane.kubectl("api-resources", "--verbs=list", "--output=name").split()
        listed = control_plane.kubectl(
            "get", ",".join(kinds), "--all-namespaces", f"--selector=kluctl.io/discriminator={discriminator}",
            "--show-managed-fields", "--output=json",
        )
        objects = {}
        for item in json.loads(listed)["items"]:
            if any(entry["manager"].startswith("kluctl") for entry in item["metadata"].get("managedFields", [])):
                objects[name_of(item)] = item
        return cls(dict(sorted(objects.items(), key=lambda entry: ("/" in entry[0], entry[0]))))

    def actions_since(self, before: "LiveObjects") -> list[tuple[str, str, str]]:
        """Object, action and readiness of everything that is or was there."""
        rows = []
        for name, item in {**before.objects, **self.objects}.items():
            if name not in self.objects:
                rows.append((name, "deleted", "-"))
                continue
            old = before.objects.get(name)
            action = "created" if old is None else "changed" if differences(old, item) else "unchanged"
            rows.append((name, action, readiness(item)))
        return rows

    def diff_since(self, before: "LiveObjects") -> list[str]:
        """The lines to print: which field of which object changed from what to what."""
        lines = []
        for name, item in self.objects.items():
            if name in before.objects and (changes := differences(before.objects[name], item)):
                lines.append(name)
                for path, old, new in changes:
                    lines += [f"  - {path}: {json.dumps(old)}"] if old is not None else []
                    lines += [f"  + {path}: {json.dumps(new)}"] if new is not None else []
        return lines


def name_of(item: dict) -> str:
    """`Kind name` or `Kind namespace/name`."""
    metadata = item["metadata"]
    return f"{item['kind']} {'/'.join(filter(None, (metadata.get('namespace'), metadata['name'])))}"


def readiness(item: dict) -> str:
    """How far an object is, in one word."""
    if item["metadata"].get("deletionTimestamp"):
        return "terminating"
    status = item.get("status", {})
    if item["kind"] in ("Deployment", "StatefulSet"):
        ready, wanted = status.get("readyReplicas", 0), item["spec"].get("replicas", 1)
        observed = status.get("observedGeneration") == item["metadata"]["generation"]
        done = observed and status.get("updatedReplicas", 0) == ready == wanted
        return f"{'yes' if done else 'no'}, {ready}/{wanted}"
    if item["kind"] == "Namespace":
        return "yes" if status.get("phase") == "Active" else "no"
    return "yes"


def differences(old: dict, new: dict) -> list[tuple[str, object, object]]:
    """Path, old and new value of every field that differs, with None for a field that is not there."""
    before, after = fields(deployed_part(old)), fields(deployed_part(new))
    return [
        (path, before.get(path), after.get(path))
        for path in sorted({**before, **after})
        if before.get(path) != after.get(path)
    ]


def deployed_part(item: dict) -> dict:
    metadata = {key: value for key, value in item["metadata"].items() if key not in SERVER_FIELDS}
    annotations = metadata.get("annotations", {}).items()
    metadata["annotations"] = {key: value for key, value in annotations if not key.startswith("deployment.kubernetes.io/")}
    return {**{key: value for key, value in item.items() if key != "status"}, "metadata": metadata}


def fields(value, path: str = "") -> dict[str, object]:
    """The leaves of a document by their path."""
    if isinstance(value, dict) and value:
        return {k: v for key, child in value.items() for k, v in fields(child, f"{path}.{key}" if path else key).items()}
    if isinstance(value, list) and value:
        return {k: v for index, child in enumerate(value) for k, v in fields(child, f"{path}[{index}]").items()}
    return {path: value}
