"""Deploying, comparing and pruning from the command line, against a control plane on loopback."""

from __future__ import annotations

import json
from pathlib import Path

APPS = [100, 400]
RUNS = 5
APP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: "app-{{ NAME }}", namespace: "{{ args.namespace }}"}
spec:
  replicas: 0
  selector: {matchLabels: {app: "app-{{ NAME }}"}}
  template:
    metadata: {labels: {app: "app-{{ NAME }}"}}
    spec:
      containers:
      - name: main
        image: registry.example.com/app:v1
        ports: [{containerPort: 8080, name: http}]
        envFrom: [{configMapRef: {name: "app-{{ NAME }}"}}]
        resources: {requests: {cpu: 10m, memory: 20Mi}, limits: {memory: 40Mi}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "app-{{ NAME }}", namespace: "{{ args.namespace }}"}
data: {color: blue, size: "3", url: "https://app-{{ NAME }}.example.com"}
---
apiVersion: v1
kind: Service
metadata: {name: "app-{{ NAME }}", namespace: "{{ args.namespace }}"}
spec: {selector: {app: "app-{{ NAME }}"}, ports: [{port: 80, targetPort: http}]}
"""


def project(apps: int) -> dict:
    """A project of a Namespace and that many items with a Deployment, a ConfigMap and a Service, by file name."""
    files = {
        ".kluctl.yaml": "discriminator: bench-{{ args.namespace }}\nargs:\n  - name: namespace\n",
        "namespace/namespace.yaml": 'apiVersion: v1\nkind: Namespace\nmetadata: {name: "{{ args.namespace }}"}\n',
    }
    items = ["namespace"]
    for index in range(apps):
        items.append(f"apps/app-{index:05}")
        files[f"apps/app-{index:05}/app.yaml"] = APP.replace("{{ NAME }}", f"{index:05}")
    files["deployment.yaml"] = json.dumps({"deployments": [{"path": item} for item in items]})
    return files


def bench_commands(state: Path, kluctl: Path, kubeconfig: Path, write, measure) -> list:
    """First and second `deploy`, `diff` and `prune` of each size, results not stored."""
    rows = []
    for apps in APPS:
        work, namespace = state / f"commands-{apps}", f"bench-{apps}"
        write(work, project(apps))
        common = ["--project-dir", work, "--kubeconfig", kubeconfig, "-a", f"namespace={namespace}", "--quiet"]
        unstored = ["--yes", "--write-command-result=false"]
        commands = [
            ("first deploy", ["deploy", *common, *unstored], 1),
            ("deploy that changes nothing", ["deploy", *common, *unstored], RUNS),
            ("diff of that", ["diff", *common], RUNS),
            ("prune of that", ["prune", *common, *unstored], RUNS),
        ]
        for what, arguments, runs in commands:
            wall, cpu, memory = measure([kluctl, *arguments], runs)
            rows.append((f"{what}, {apps * 3 + 1} objects", f"{wall:.2f} s, {cpu:.2f} s CPU, {memory:.0f} MiB", ""))
    return rows
