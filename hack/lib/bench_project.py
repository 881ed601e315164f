"""Measures `kluctl render` of generated projects: per item a kustomization with templated manifests; items in groups of includes.

No two items have the same text, so that nothing can be compiled once for all of them.
"""

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

ITEMS_PER_INCLUDE = 20
# Items, and how often they are rendered.
SIZES = [(20, 20), (100, 10), (400, 10), (10_000, 3)]
# Kluctl 2.28 (Go, warm caches, 2 cores) on such projects: seconds of user CPU, MiB.
REFERENCE = {20: (3.7, 99), 100: (5.0, 111), 400: (8.7, 134)}

KUSTOMIZATION = """\
resources:
- deploy.yaml
- service.yaml
- config.yaml
images:
- name: registry.example.com/shop
  newTag: {{ args.version }}
labels:
- pairs:
    app.kubernetes.io/part-of: shop
    environment: {{ args.environment }}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: NAME
spec:
  replicas: {{ args.replicas }}
  selector:
    matchLabels:
      app: NAME
  template:
    metadata:
      labels:
        app: NAME
    spec:
      containers:
      - name: main
        image: registry.example.com/shop
        ports:
        - containerPort: PORT
          name: http
        env:
        {% for key in ["MODE", "REGION", "LOG_LEVEL"] %}
        - name: {{ key }}
          value: "{{ settings[key | lower] }}"
        {% endfor %}
        envFrom:
        - configMapRef:
            name: NAME
        resources:
          requests: {cpu: 10m, memory: 20Mi}
          limits: {memory: 40Mi}
        {% if args.environment == "prod" %}
        readinessProbe:
          httpGet: {path: /ready, port: http}
        {% endif %}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: NAME
  annotations:
    example.com/version: {{ args.version }}
spec:
  selector:
    app: NAME
  ports:
  - port: 80
    targetPort: http
    name: http
"""
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: NAME
data:
  color: blue
  size: "{{ weight * 2 }}"
  url: "https://NAME.{{ args.environment }}.example.com:PORT/"
  settings.yaml: |
    {{ settings | to_yaml | indent(4) }}
"""


def rows(state: Path, kluctl: Path) -> list:
    """One row of the table per size of project."""
    found = []
    for items, runs in SIZES:
        directory = state / f"project-{items}"
        for name, content in project(items).items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        user, wall, memory = measure(kluctl, directory, state / "rendered", runs, ("--target=prod",))
        shutil.rmtree(directory)
        beside = ""
        if items in REFERENCE:
            seconds, mebibytes = REFERENCE[items]
            beside = f"kluctl 2.28: {seconds} s user CPU, {mebibytes} MiB; {seconds / user:.0f} times ours"
        what = f"render of {items} items ({3 * items} objects)"
        found.append((what, f"{user * 1000:.0f} ms user CPU, {wall * 1000:.0f} ms, {memory:.0f} MiB", beside))
    return found


def project(items: int) -> dict:
    """A project of that many items, by file name."""
    groups = [range(first, min(first + ITEMS_PER_INCLUDE, items)) for first in range(0, items, ITEMS_PER_INCLUDE)]
    files = {
        ".kluctl.yaml": (
            "discriminator: bench-{{ target.name }}\ntargets:\n- name: prod\n  args: {environment: prod}\n"
            "args:\n- name: environment\n- name: version\n  default: v1.2.3\n- name: replicas\n  default: 2\n"
        ),
        "deployment.yaml": (
            "vars:\n- values:\n    settings: {mode: fast, region: eu, log_level: info, hosts: [a.example.com, b.example.com]}\n"
            "commonLabels:\n  team: shop\noverrideNamespace: shop-{{ args.environment }}\ndeployments:\n"
            + "".join(f"- include: group-{group:03}\n" for group in range(len(groups)))
        ),
    }
    for group, members in enumerate(groups):
        deployments = "".join(f"- path: item-{index:05}\n  vars:\n  - values: {{weight: {index}}}\n" for index in members)
        files[f"group-{group:03}/deployment.yaml"] = f"tags: [group-{group:03}]\ndeployments:\n{deployments}"
        for index in members:
            directory = f"group-{group:03}/item-{index:05}"
            own = {"NAME": f"app-{index:05}", "PORT": str(8000 + index % 1000)}
            texts = {"kustomization": KUSTOMIZATION, "deploy": DEPLOYMENT, "service": SERVICE, "config": CONFIG}
            for name, text in texts.items():
                for word, value in own.items():
                    text = text.replace(word, value)
                files[f"{directory}/{name}.yaml"] = text
    return files


def measure(kluctl: Path, project_dir: Path, output: Path, runs: int, flags: tuple = (), keep: Callable = lambda _: None) -> tuple:
    """Median seconds of user CPU and of wall time, and peak memory in MiB. `keep` may read the files that a run wrote; then they
    are removed."""
    user, wall, peak = [], [], 0
    command = [kluctl, "render", "--offline-kubernetes", f"--project-dir={project_dir}", f"--render-output-dir={output}", *flags]
    for _ in range(runs):
        started = time.monotonic()
        child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        wall.append(time.monotonic() - started)
        if status != 0:
            raise SystemExit(f"{' '.join(map(str, command))} ended with {os.waitstatus_to_exitcode(status)}")
        user.append(usage.ru_utime)
        peak = max(peak, usage.ru_maxrss / 1024)
        keep(output)
        shutil.rmtree(output)
    return statistics.median(user), statistics.median(wall), peak
