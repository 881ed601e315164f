"""Measures templates beside Python's Jinja2: the time of rendering alone, without the start of either program. Outputs have to be equal."""

import json
import statistics
import subprocess
from pathlib import Path

from bench_project import measure

RUNS = 10
TEMPLATES = {
    "10 000 rounds of a loop with arithmetic and a condition": (
        "{% for i in range(10000) %}{{ i }}: {{ (i * 7) % 13 }}{% if i % 3 == 0 %} fizz{% endif %}\n{% endfor %}"
    ),
    "10 000 calls of a macro with defaults": (
        "{% macro line(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}"
        "{% for i in range(10000) %}{{ line(i, c=loop.index0) }}\n{% endfor %}"
    ),
    "10 000 texts through three filters": (
        "{% for i in range(10000) %}{{ ('item-' ~ i) | upper | replace('-', '_') | trim }}\n{% endfor %}"
    ),
    "2000 mappings in a list, through map, selectattr and sum": (
        "{% set rows = [] %}{% for i in range(2000) %}{% set _ = rows.append({'name': 'n' ~ i, 'port': i, 'on': i % 2 == 0, 'x': 'y', 'z': i / 2}) %}"
        "{% endfor %}{{ rows | length }} {{ rows | map(attribute='port') | sum }} {{ rows | selectattr('on') | list | length }}\n"
    ),
}
# Prints the median of the seconds, and writes the text.
PYTHON = """
import json, statistics, sys, time
import jinja2
environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
template, runs, target = json.load(sys.stdin)
seconds = []
for _ in range(runs):
    started = time.process_time()
    text = environment.from_string(template).render()
    seconds.append(time.process_time() - started)
open(target, "w").write(text)
print(statistics.median(seconds))
"""


def rows(state: Path, kluctl: Path, python: Path) -> list:
    """One row of the table per template."""
    empty = render(state / "template-empty", kluctl, "{{ 1 }}\n")[0]
    found = []
    for number, (what, template) in enumerate(TEMPLATES.items()):
        seconds, text = render(state / f"template-{number}", kluctl, template)
        target = state / f"template-{number}.txt"
        request = json.dumps([template, RUNS, str(target)])
        printed = subprocess.run([python, "-c", PYTHON], input=request, stdout=subprocess.PIPE, text=True, check=True).stdout
        if target.read_text() != text:
            raise SystemExit(f"{template} is rendered differently")
        ours, theirs = max(seconds - empty, 0.0001), float(printed)
        found.append((f"template: {what}", f"{ours * 1000:.1f} ms user CPU", f"Jinja2: {theirs * 1000:.1f} ms, {theirs / ours:.1f} times ours"))
    return found


def render(directory: Path, kluctl: Path, template: str) -> tuple:
    """Median seconds of user CPU of a project with this template only, and what it renders to."""
    files = {"deployment.yaml": "deployments: [{path: app, onlyRender: true}]\n", "app/text": template}
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(content)
    texts = []
    keep = lambda output: texts.append((output / "0" / "app" / "text").read_text())  # noqa: E731
    user, _, _ = measure(kluctl, directory, directory / "rendered", RUNS, keep=keep)
    return user, texts[-1]
