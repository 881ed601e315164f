"""Makes the inputs that fuzzing starts from out of the tests' data, and a dictionary of their words for each target.

    seeds.py DIR     writes DIR/TARGET/seed-* and DIR/TARGET.dict
"""

import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"


def templates():
    data = TESTS / "differential" / "jinja"
    for line in (data / "expressions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield "{{ " + line + " }}"
    for part in (data / "statements.txt").read_text().split("\n=== ")[1:]:
        yield part.partition("\n")[2]
    yield "{% include 'self' %}"
    yield "{% extends 'module' %}{% block b %}{{ super() }}{% endblock %}"
    yield "{% import 'module' as m %}{{ m.m(1) }}{{ m.v }}"


def texts(pattern):
    for path in sorted(TESTS.glob(pattern)):
        if path.stat().st_size < 4096:
            yield path.read_text(errors="ignore")


def yaml():
    for probe in json.loads((ROOT / "src" / "yaml" / "tests" / "reading.json").read_text()):
        yield probe["text"]
    yield from texts("golden/*/project/**/*.yaml")
    yield from texts("golden/*/project/**/.kluctl.y*ml")


def kustomize():
    for case in sorted((TESTS / "differential" / "kustomize").iterdir()):
        files = [path for path in sorted(case.rglob("*")) if path.is_file() and not path.name.startswith(("better", "expected"))]
        text = "".join(f"=== {path.relative_to(case)}\n{path.read_text(errors='ignore')}" for path in files)
        if len(text) < 4096:
            yield text


def variables():
    yield "a: {b: 1, c: [1]}\n---\na: {b: {d: 2}}\n---\na: null\n"
    yield "values: {a: {b: 1}}\ntargetPath: x.y\n---\nfile: vars.yaml\nnoOverride: true\n---\nwhen: x.y.a.b == 1\nvalues: {'{{ x.y }}': '{{ x }}'}\n"
    yield "systemEnvVars: {a: 'HOME:x', b: [C]}\nignoreMissing: true\n---\nvalues: {}\nsensitive: true\n"
    yield "clusterConfigMap: {name: a, namespace: b, key: c}\n---\ngit: {url: 'https://h/x', path: p}\n---\nhttp: {url: 'http://h'}\n"
    yield from texts("golden/*/project/**/vars*.y*ml")


def objects():
    path = "['a.b', 'a[0]', 'a.*', 'a..b', '$[\"x.y\"]', 'a[1:-1:2]', 'a[0,2]', 'l[?(@.name == \"web\")].image', 'l[?(@.n > 1 && !@.x)]']\n"
    yield "{a: {b: [1, 2, {c: 3}]}, l: [{name: web, n: 1}]}\n---\n{a: {b: [2, 1]}, l: [{name: db}, {name: web, n: 2}]}\n---\n" + path
    pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations: {kluctl.io/ignore-diff-field: 'spec.*.x'}\nspec:\n  containers:\n  - {name: a, image: b}\n"
    yield pod + "---\n" + pod.replace("image: b", "image: c\n") + "---\n" + path
    manifests = list(texts("differential/kustomize/*/*.yaml"))
    for before, after in zip(manifests, manifests[1:]):
        yield before.partition("\n---")[0] + "\n---\n" + after.partition("\n---")[0] + "\n---\n" + path


TARGETS = {"templates": templates, "yaml": yaml, "kustomize": kustomize, "vars": variables, "objects": objects}


def write(directory, target, seeds):
    (directory / target).mkdir(parents=True, exist_ok=True)
    words = collections.Counter()
    for number, text in enumerate(seeds):
        (directory / target / f"seed-{number}").write_text(text)
        words.update(set(re.findall(r"[A-Za-z_]\w+:?|[!-/:-@[-`{-~]{2,4}", text, re.ASCII)))
    chosen = [word for word, _ in words.most_common(400)]
    lines = ['"' + word.replace("\\", r"\\").replace('"', r"\"") + '"' for word in chosen]
    (directory / f"{target}.dict").write_text("\n".join(lines) + "\n")


for name, make in TARGETS.items():
    write(pathlib.Path(sys.argv[1]), name, make())
