#!/usr/bin/env python3
"""Records what Python's Jinja2 does with the probes in tests/differential/jinja.

Usage: record.py [--output DIR]

Installs the versions named in requirements.txt into a virtual environment of its own (in $JINJA_PROBES_VENV, or below
target/), then renders every probe with the settings that kluctl uses and writes results.json. The unit tests of
src/jinja replay that file without Python; hack/jinja-probes/check records again and compares. The committed file comes
from Python 3.11; other versions word a few of Python's own messages differently.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = ROOT / "tests" / "differential" / "jinja"


def enter_environment():
    """Runs this script again with the interpreter of the virtual environment."""
    venv = Path(os.environ.get("JINJA_PROBES_VENV", ROOT / "target" / "jinja-probes-venv"))
    python = venv / "bin" / "python"
    if Path(sys.prefix).resolve() == venv.resolve():
        return
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], check=True)
    os.execv(str(python), [str(python), *sys.argv])


enter_environment()

import base64  # noqa: E402
import binascii  # noqa: E402,F401
import fnmatch  # noqa: E402
import hashlib  # noqa: E402
import posixpath  # noqa: E402
import re  # noqa: E402
import textwrap  # noqa: E402
import zoneinfo  # noqa: E402
from datetime import datetime, timedelta  # noqa: E402
from functools import total_ordering  # noqa: E402

import jinja2  # noqa: E402
import yaml  # noqa: E402
from jsonpath_ng import jsonpath  # noqa: E402
from jsonpath_ng.ext import parse as parse_path  # noqa: E402
from slugify import slugify  # noqa: E402


# --- kluctl's environment, as its documentation describes it ---


class Dumper(yaml.SafeDumper):
    """Literal blocks for several lines, quotes around digits."""


def represent_text(dumper, text):
    style = "|" if len(text.splitlines()) > 1 else "'" if text.isnumeric() else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, represent_text)


class Loader(yaml.SafeLoader):
    """Reads `=` as text."""


Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))


def wildcard_fields(self, datum):
    names = []
    for field in self.fields:
        if "*" in field and isinstance(datum.value, dict):
            names += [name for name in datum.value if fnmatch.fnmatch(name, field)]
        elif "*" not in field:
            names.append(field)
    return tuple(names)


jsonpath.Fields.reified_fields = wildcard_fields


def copied(value):
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, str) or not hasattr(type(value), "__iter__"):
        return value
    return [copied(item) for item in value]


def merged(a, b, clone=True):
    a = {} if a is None else a
    a = copied(a) if clone else a
    for key, value in ({} if b is None else b).items():
        if isinstance(a.get(key), dict) and isinstance(value, dict):
            merged(a[key], value, clone=False)
        else:
            a[key] = value
    return a


def updated(a, b):
    merged(a, b, clone=False)
    return ""


def hashed(text, digest_len=None):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    return hashlib.sha256(data).hexdigest()[:digest_len]


@jinja2.pass_context
def render(context, string):
    return context.environment.from_string(string).render(context.get_all())


@jinja2.pass_context
def load_template(context, path, **extra):
    template = context.environment.get_template(path, parent=context.name)
    return template.render(merged(context.get_all(), extra))


@jinja2.pass_context
def load_sha256(context, path, digest_len=None):
    if "__calc_sha256__" in context:
        return "__self_sha256__"
    return hashed(load_template(context, path, __calc_sha256__=True), digest_len)


@jinja2.pass_context
def load_base64(context, path, width=None):
    found = context.environment.loader.find(path)
    if found is None:
        raise jinja2.TemplateNotFound(path)
    text = base64.b64encode(found.read_bytes()).decode()
    return textwrap.fill(text, width=width) if width else text


@jinja2.pass_context
def get_var(context, path, default=None):
    for candidate in path if isinstance(path, list) else [path]:
        found = parse_path(candidate).find(context.get_all())
        if len(found) > 1:
            raise Exception("Only simple jsonpath supported in get_dict_value")
        if found:
            return found[0].value
    return default


def raise_helper(msg):
    raise jinja2.TemplateError(msg)


@total_ordering
class SimpleTime:
    """A date and time that `+` and `-` change."""

    def __init__(self, moment):
        self.moment = moment

    def as_timezone(self, tz):
        return SimpleTime(self.moment.astimezone(zoneinfo.ZoneInfo(tz)))

    def weekday(self):
        return self.moment.weekday()

    def hour(self):
        return self.moment.hour

    def minute(self):
        return self.moment.minute

    def second(self):
        return self.moment.second

    def nanosecond(self):
        return self.moment.microsecond * 1000

    def __str__(self):
        return self.moment.isoformat()

    def __add__(self, microseconds):
        self.moment += timedelta(microseconds=microseconds)
        return self

    def __sub__(self, microseconds):
        self.moment -= timedelta(microseconds=microseconds)
        return self

    @staticmethod
    def check(other):
        if not isinstance(other, SimpleTime):
            raise ValueError("value is not a SimpleTime")

    def __lt__(self, other):
        self.check(other)
        return self.moment < other.moment

    def __eq__(self, other):
        self.check(other)
        return self.moment == other.moment


def get_image(image):
    request = base64.b64encode(json.dumps({"image": image}).encode()).decode()
    return f"XXXXXbegin_get_image_{request}_end_get_imageXXXXX"


def semver(allow_no_nums=False):
    return f"semver(allow_no_nums={allow_no_nums})"


def prefix(s, suffix=None):
    return f'prefix("{s}")' if suffix is None else f'prefix("{s}", suffix="{suffix}")'


def slugified(s, **options):
    return slugify(s, **options)


slugified.__name__ = "slugify"


def make_globals():
    return {
        "load_template": load_template,
        "load_base64": load_base64,
        "load_sha256": load_sha256,
        "get_var": get_var,
        "merge_dict": merged,
        "update_dict": updated,
        "raise": raise_helper,
        "debug_print": lambda msg: "",
        "render": render,
        "images": {"get_image": get_image},
        "version": {
            "semver": semver,
            "prefix": prefix,
            "number": lambda: "number()",
            "regex": lambda r: f'regex("{r}")',
        },
        "time": {
            "now": lambda: SimpleTime(datetime.now()),
            "utcnow": lambda: SimpleTime(datetime.now()),
            "parse_iso": lambda s: SimpleTime(datetime.fromisoformat(s)),
            "second": 10**6,
            "minute": 60 * 10**6,
            "hour": 3600 * 10**6,
        },
    }


FILTERS = {
    "b64encode": lambda string: base64.b64encode(string.encode()).decode(),
    "b64decode": lambda string: base64.b64decode(string.encode()).decode(),
    "to_yaml": lambda obj: yaml.dump(obj, Dumper=Dumper, sort_keys=False),
    "to_json": lambda obj: json.dumps(obj),
    "from_yaml": lambda s: yaml.load(s, Loader=Loader),
    "render": render,
    "sha256": hashed,
    "slugify": slugified,
}


class Files(jinja2.BaseLoader):
    """One directory; names that start with a dot are relative to the template they stand in."""

    def find(self, name):
        path = DATA / "files" / name
        return path if path.is_file() else None

    def get_source(self, environment, template):
        path = self.find(template)
        if path is None:
            raise jinja2.TemplateNotFound(template)
        return path.read_text(), str(path), lambda: True


class Environment(jinja2.Environment):
    def join_path(self, template, parent):
        if template.startswith(("./", "../")):
            return posixpath.normpath(posixpath.join(posixpath.dirname(parent), template))
        return template


def make_environment():
    environment = Environment(
        loader=Files(), undefined=jinja2.StrictUndefined, extensions=["jinja2.ext.loopcontrols"]
    )
    # kluctl hands variables over with sorted keys
    context = (DATA / "context.json").read_text()
    in_order = lambda pairs: dict(sorted(pairs))  # noqa: E731
    environment.globals.update(json.loads(context, object_pairs_hook=in_order))
    environment.globals.update(make_globals())
    environment.filters.update(FILTERS)
    return environment


# --- running ---


def failing_line(error):
    """The line in the innermost template, as tracebacks show it."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.lineno
    line, step = None, error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if name == "<template>" or name.startswith(str(DATA)):
            line = step.tb_lineno
        step = step.tb_next
    return line


def run(text):
    try:
        output = make_environment().from_string(text).render()
        return {"output": re.sub(r" at 0x[0-9a-f]+>", ">", output)}
    except RecursionError:
        return {"error": "RecursionError"}
    except jinja2.TemplatesNotFound as error:
        return {"error": "TemplatesNotFound", "message": str(error), "line": failing_line(error)}
    except jinja2.TemplateNotFound as error:
        message = f"template {error} not found"
        return {"error": "TemplateNotFound", "message": message, "line": failing_line(error)}
    except Exception as error:  # every exception is a result here
        return {"error": type(error).__name__, "message": str(error), "line": failing_line(error)}


def probes():
    """Names and templates of all probes."""
    for line in (DATA / "expressions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line, "{{ " + line + " }}"
    text = (DATA / "statements.txt").read_text()
    for part in text.split("\n=== ")[1:]:
        name, _, template = part.partition("\n")
        yield "statement: " + name, template


def main():
    output = DATA
    if "--output" in sys.argv:
        output = Path(sys.argv[sys.argv.index("--output") + 1])
    results = {}
    for name, template in probes():
        if name in results:
            sys.exit(f"two probes are called {name}")
        results[name] = run(template)
    text = json.dumps(results, indent=0, ensure_ascii=False, sort_keys=False)
    (output / "results.json").write_text(text + "\n")
    print(f"{len(results)} probes recorded in {output / 'results.json'}")


main()
