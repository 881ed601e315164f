"""kluctl's Jinja2 environment: the settings, filters and functions that its templates have.

Own code after kluctl's documentation. `record.py --kluctl DIR`, with a checkout of kluctl, runs the probes with kluctl's
own Python modules instead, so that a difference between the two shows.
"""

import base64
import fnmatch
import hashlib
import importlib
import json
import posixpath
import sys
import textwrap
import types
import zoneinfo
from datetime import datetime, timedelta
from functools import total_ordering
from pathlib import Path

import jinja2
import yaml
from jsonpath_ng import jsonpath
from jsonpath_ng.exceptions import JsonPathParserError
from jsonpath_ng.ext import parse as parse_path
from slugify import slugify as python_slugify


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
        return copied_dict(value)
    if isinstance(value, (str, bytes, type)) or not hasattr(type(value), "__iter__"):
        return value
    return [copied(item) for item in value]


def copied_dict(value):
    return {key: copied(item) for key, item in value.items()}


def merge_dict(a, b, clone=True):
    a = copied_dict(a) if clone else a
    a = {} if a is None else a
    for key in {} if b is None else b:
        if key in a and isinstance(a[key], dict) and isinstance(b[key], dict):
            merge_dict(a[key], b[key], clone=False)
        else:
            a[key] = b[key]
    return a


def update_dict(a, b):
    merge_dict(a, b, clone=False)
    return ""


def sha256(text, digest_len=None):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    return hashlib.sha256(data).hexdigest()[:digest_len]


@jinja2.pass_context
def render(context, string):
    return context.environment.from_string(string).render(context.get_all())


@jinja2.pass_context
def load_template(context, path, **extra):
    path = path.replace("/", "/")
    template = context.environment.get_template(path, parent=context.name)
    return template.render(merge_dict(context.get_all(), extra))


@jinja2.pass_context
def load_sha256(context, path, digest_len=None):
    if "__calc_sha256__" in context:
        return "__self_sha256__"
    return sha256(load_template(context, path, __calc_sha256__=True), digest_len)


@jinja2.pass_context
def load_base64(context, path, width=None):
    path.replace("/", "/")
    found = context.environment.loader.read(path)
    if found is None:
        raise jinja2.TemplateNotFound(path)
    text = base64.b64encode(found).decode()
    return textwrap.fill(text, width=width) if width else text


@jinja2.pass_context
def get_var(context, path, default=None):
    for candidate in path if isinstance(path, list) else [path]:
        try:
            found = parse_path(candidate).find(context.get_all())
        except JsonPathParserError as error:
            raise Exception(f"Invalid json path '{candidate}'. Error={error}") from error
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

    # Messages name it.
    __module__ = "go_jinja2.ext.time_ext"

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


def slugify(s, **slugify_args):
    return python_slugify(s, **slugify_args)


def b64encode(string):
    return base64.b64encode(string.encode()).decode()


def b64decode(string):
    return base64.b64decode(string.encode()).decode()


def to_yaml(obj):
    return yaml.dump(obj, Dumper=Dumper, sort_keys=False)


def to_json(obj):
    return json.dumps(obj)


def from_yaml(s):
    return yaml.load(s, Loader=Loader)


def debug_print(msg):
    str(msg)
    return ""


def make_globals():
    return {
        "load_template": load_template,
        "load_base64": load_base64,
        "load_sha256": load_sha256,
        "get_var": get_var,
        "merge_dict": merge_dict,
        "update_dict": update_dict,
        "raise": raise_helper,
        "debug_print": debug_print,
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
    function.__name__: function
    for function in (b64encode, b64decode, to_yaml, to_json, from_yaml, render, sha256, slugify)
}


class Files(jinja2.BaseLoader):
    """The files of a probe on top of one directory; names that start with a dot are relative to their template."""

    def __init__(self, directory, files):
        self.directory = directory
        self.files = files

    def read(self, name):
        if name in self.files:
            return self.files[name].encode()
        pieces = jinja2.loaders.split_template_path(name)
        path = posixpath.join(self.directory, *pieces)
        return Path(path).read_bytes() if Path(path).is_file() else None

    def get_source(self, environment, template):
        found = self.read(template)
        if found is None:
            raise jinja2.TemplateNotFound(template)
        return found.decode().replace("\r\n", "\n"), f"<file>{template}", lambda: True

    # What kluctl's own modules call.

    def _find_path(self, name):
        return name if self.read(name) is not None else None

    def read_template_helper(self, environment, name, binary=False):
        return self.read(name), name, lambda: True


class Environment(jinja2.Environment):
    def join_path(self, template, parent):
        if template.startswith(("./", "../")):
            return posixpath.normpath(posixpath.join(posixpath.dirname(parent), template))
        return template

    def print_debug(self, message):
        """Called by kluctl's own modules."""


def make(directory, files, variables):
    """An environment as kluctl makes one per render."""
    environment = Environment(
        loader=Files(directory, files),
        undefined=jinja2.StrictUndefined,
        extensions=["jinja2.ext.loopcontrols"],
    )
    environment.globals.update(variables)
    environment.globals.update(make_globals())
    environment.filters.update(FILTERS)
    return environment


def use_modules_of(checkout):
    """Replaces `make` by one that takes filters and functions from a checkout of kluctl."""
    for path in ("lib/go-jinja2/python_src", "pkg/kluctl_jinja2"):
        sys.path.insert(0, str(Path(checkout) / path))
    # Only load_latest_git_commit needs it, which no probe calls.
    sys.modules["dulwich"] = types.ModuleType("dulwich")
    sys.modules["dulwich.repo"] = types.ModuleType("dulwich.repo")
    sys.modules["dulwich.repo"].Repo = None
    own = make
    names = ["go_jinja2.ext.kluctl_ext", "go_jinja2.ext.time_ext", "ext.images_ext"]
    kluctl, time, images = map(importlib.import_module, names)

    def with_modules(directory, files, variables):
        environment = own(directory, files, variables)
        for name in make_globals():
            del environment.globals[name]
        for name in FILTERS:
            del environment.filters[name]
        kluctl.KluctlExtension(environment)
        time.TimeExtension(environment)
        images.ImagesExtension(environment)
        return environment

    return with_modules
