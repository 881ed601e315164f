"""Renders the probes with Python's Jinja2, the settings that kluctl uses, and the packages of requirements.txt.

    record.py [--all [--every N]] [--kluctl DIR]

Without options: writes the results of the written probes to tests/differential/jinja/results.json. `--all` prints them and
every Nth generated probe with their results as JSON lines. `--kluctl` takes filters and functions from a checkout of kluctl.
"""

import argparse
import itertools
import json
import multiprocessing
import re
import sys
import warnings
from pathlib import Path

import jinja2

import generate
import kluctl_env

DATA = Path(__file__).resolve().parent.parent.parent / "tests" / "differential" / "jinja"
FILE = "<file>"
# kluctl hands variables over with sorted keys.
CONTEXT = (DATA / "context.json").read_text()


def variables():
    return json.loads(CONTEXT, object_pairs_hook=lambda pairs: dict(sorted(pairs)))


def failing_place(error):
    """Name and line of the innermost template, as tracebacks show them."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.filename or "<template>", error.lineno
    place, step = (None, None), error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if name == "<template>" or name.startswith(FILE):
            place = name, step.tb_lineno
        step = step.tb_next
    return place


def without_addresses(text):
    text = re.sub(r"generator object \w+ at 0x[0-9a-f]+(>|&gt;)", r"generator object\1", text)
    return re.sub(r" at 0x[0-9a-f]+(>|&gt;)", r"\1", text)


def shown(error):
    try:
        return without_addresses(str(error))
    except Exception:  # the argument is undefined
        return "<exception str() failed>"


def run(make, template, files):
    try:
        output = make(DATA / "files", files, variables()).from_string(template).render()
        return {"output": without_addresses(output)}
    except RecursionError:
        return {"error": "RecursionError"}
    except Exception as error:  # every exception is a result here
        message = shown(error)
        if isinstance(error, jinja2.TemplateNotFound) and not isinstance(error, jinja2.TemplatesNotFound):
            message = f"template {error} not found"
        template, line = failing_place(error)
        result = {"error": type(error).__name__, "message": message, "line": line}
        if template and template.startswith(FILE):
            result["file"] = template[len(FILE):]
        return result


def written():
    """Names and templates of the probes in expressions.txt and statements.txt."""
    for line in (DATA / "expressions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line, "{{ " + line + " }}"
    text = (DATA / "statements.txt").read_text()
    for part in text.split("\n=== ")[1:]:
        name, _, template = part.partition("\n")
        yield "statement: " + name, template


def recorded(probe):
    name, template, files = probe
    return {"name": name, "template": template, "files": files, "result": run(make, template, files)}


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--all", action="store_true")
parser.add_argument("--every", type=int, default=1, metavar="N")
parser.add_argument("--kluctl", metavar="DIR")
options = parser.parse_args()
warnings.simplefilter("ignore")  # about templates that index numbers
make = kluctl_env.use_modules_of(options.kluctl) if options.kluctl else kluctl_env.make


def main():
    probes = [(name, template, {}) for name, template in written()]
    if options.all:
        generated = generate.probes([template for _, template, _ in probes])
        probes += itertools.islice(generated, 0, None, options.every)
    names = set()
    twice = [name for name, _, _ in probes if name in names or names.add(name)]
    if twice:
        sys.exit(f"several probes are called {twice[:5]}")
    with multiprocessing.Pool() as pool:
        results = pool.imap(recorded, probes, chunksize=100)
        if options.all:
            print(json.dumps({"python": ".".join(map(str, sys.version_info[:2]))}))
            for result in results:
                print(json.dumps(result))
            return
        results = {result["name"]: result["result"] for result in results}
    text = json.dumps(results, indent=0, ensure_ascii=False, sort_keys=False)
    (DATA / "results.json").write_text(text + "\n")
    print(f"{len(results)} probes recorded in {DATA / 'results.json'}", file=sys.stderr)


if __name__ == "__main__":
    main()
