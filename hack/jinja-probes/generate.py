"""Probes made by rule: tables of types, methods, filters and operators, whole programs, and broken templates.

Every run makes the same probes. Most are legal; how the others fail is compared as well.
"""

import itertools
import random

VALUES = [
    "n", "neg", "zero", "f", "t", "no", "nil", "big", "s", "''", "uni", "l", "mixed", "names", "d", "emptylist",
    "emptydict", "(1, 2)", "()", "range(3)", "d.items()", "d.keys()", "(l | map('string'))", "nope", "d.nope", "users",
    "-0.0", "'7'", "' 7.5 '", "namespace(a=1)", "dict", "s.upper", "'abc'.encode()", "cycler(1, 2)",
    "time.parse_iso('2024-02-03T04:05:06')", "('2024-02-03' | from_yaml)", "('<b>' | safe)", "[[2, 'b'], [1, 'a']]",
]
FEW = ["n", "f", "t", "nil", "s", "l", "d", "(1, 2)", "nope", "('<b>' | safe)", "range(3)", "big", "'abc'.encode()"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "<", "<=", ">", "!=", "in", "not in", "and", "or"]
FILTERS = """abs attr batch capitalize center count d default dictsort e escape filesizeformat first float forceescape
    format groupby indent int items join last length list lower map max min pprint reject rejectattr replace reverse
    round safe select selectattr slice sort string striptags sum title tojson trim truncate unique upper urlencode
    urlize wordcount wordwrap xmlattr b64encode b64decode to_yaml to_json from_yaml sha256 slugify""".split()
TESTS = """boolean callable defined divisibleby eq escaped even false filter float ge gt in integer iterable le lower lt
    mapping ne none number odd sameas sequence string test true undefined upper""".split()
TEXT_METHODS = {
    "capitalize": [""], "casefold": [""], "center": ["9", "9, '*'", "9, 'ab'", "'x'", "", "width=9"],
    "count": ["'l'", "'l', 3", "'l', -2, 99", "''", "1", ""], "encode": ["", "'ascii'", "'utf-8', 'strict'", "'nope'"],
    "endswith": ["'d'", "('x', 'd')", "'l', 0, -1", "()", "['d']"], "expandtabs": ["", "3", "tabsize=2", "0"],
    "find": ["'o'", "'o', 5", "'o', 5, 6", "'o', -4", "'', 99", "none"], "format": ["1", "x=2", ""],
    "index": ["'o'", "'q'", "'o', 9"], "isalnum": [""], "isalpha": [""], "isascii": [""], "isdecimal": [""],
    "isdigit": [""], "isidentifier": [""], "islower": [""], "isnumeric": [""], "isprintable": [""], "isspace": [""],
    "istitle": [""], "isupper": [""], "join": ["[]", "['a']", "'xy'", "d", "[1]", "['a', none]", "5"],
    "ljust": ["9", "2", "9, '.'", "9, ''"], "lower": ["", "1"], "lstrip": ["", "'H'", "none", "1"],
    "maketrans": ["'ab', 'xy'", "{'a': 'b'}"],
    "partition": ["'o'", "''", "'q'", "1"], "removeprefix": ["'He'", "'x'", "1"], "removesuffix": ["'ld'", "''"],
    "replace": ["'l', 'L'", "'l', 'L', 1", "'l', 'L', -1", "'l', 'L', 0", "'', '-'", "'', '-', 3", "'l'", "1, 2"],
    "rfind": ["'o'", "'o', 0, 5", "''"], "rindex": ["'o'", "'q'"], "rjust": ["9", "9, '*'"],
    "rpartition": ["'o'", "' '", "''"], "rsplit": ["", "'o'", "'o', 1", "none, 1", "maxsplit=1", "' ', 0", "''"],
    "rstrip": ["", "'dl'"], "split": ["", "'o'", "'o', 1", "sep='l'", "none, 0", "'ll'", "''", "1", "none, -1"],
    "splitlines": ["", "true", "keepends=true"], "startswith": ["'H'", "('x', 'H')", "'e', 1", "1"],
    "strip": ["", "'Hd'", "' '", "5"], "swapcase": [""], "title": [""], "translate": ["{}", "{72: 'J'}"], "upper": [""],
    "zfill": ["15", "0", "'1'", ""],
}
TEXTS = ["s", "''", "'a\\tb\\r\\nc\\x0bd\\x85e'", "uni", "'+12'", "'ǅ ß ŉ İ'", "'½²٣'", "('<b> o' | safe)"]
LIST_METHODS = {
    "append": ["7", "l2", ""], "clear": [""], "copy": [""], "count": ["1", "true", "nope"],
    "extend": ["[7]", "'ab'", "5", "l2", "d"], "index": ["1", "1, 1", "2, 0, 1", "99"],
    "insert": ["0, 7", "-1, 7", "99, 7", "'x', 7", "0"], "pop": ["", "0", "-1", "99", "'a'"], "remove": ["1", "99"],
    "reverse": [""], "sort": ["", "reverse=true", "key=none", "1"],
}
DICT_METHODS = {
    "clear": [""], "copy": [""], "fromkeys": ["['x']", "['x'], 1", "5"], "get": ["'a'", "'q'", "'q', 1", "[1]", ""],
    "items": ["", "1"], "keys": [""], "pop": ["'a'", "'q'", "'q', 1", ""], "popitem": [""],
    "setdefault": ["'a'", "'q'", "'q', []", ""], "update": ["{'a': 9}", "q=1", "{'a': 9}, q=1", "[['k', 'v']]", "[1]",
    "'ab'", "[('a',)]", ""], "values": [""],
}
SPECS = ["", "5", "<5", ">5", "^5", "*^7", "05", "+", "-", " ", "+05", "=+7", ",", "_", "+,", "010,", "d", "b", "o",
         "x", "X", "c", "n", "#x", "#b", "#010x", "e", "E", "f", "F", "g", "G", "%", ".2f", ".0f", ".3e", ".3g", "#.3g",
         "8.2f", "<8.2f", "08.2f", "+.1f", ",.2f", "_.2f", ".2", ".0", ".10", "s", "5s", ".2s", "<5.1s", "=",
         "q", "5x", "5,d", "-=9", "^", "é<4", ".", "..", "1.", "+s", "0s", "=5s", "#s", ",s", "999999999999999999999"]
PERCENTS = ["s", "r", "a", "d", "i", "u", "x", "X", "o", "e", "E", "f", "F", "g", "G", "c", "5s", "-5s", "05d", "+d",
            " d", "#x", "#o", ".2f", "8.3f", "-8.2f", ".3s", ".3d", "+.1e", "%", "ld", "q", "*d", ".*f", "(a)s", "(a)d",
            "(", "5", "-", "#g", " +d", "-05d"]


def expressions():
    """Single expressions."""
    for name in FILTERS:
        for value in VALUES:
            yield f"{value} | {name}"
            yield f"{value} | {name} | list" if name in ("map", "select", "batch", "items", "unique") else None
    arguments = ["2", "'a'", "none", "l", "0", "true", "nope", "2, 3", "attribute='name'", "bogus=1", "-1", "1.5"]
    for name, value, args in itertools.product(FILTERS, ["s", "users", "n", "d"], arguments):
        lazy = " | list" if name in ("map", "select", "reject", "selectattr", "rejectattr", "batch", "slice", "unique") else ""
        yield f"{value} | {name}({args}){lazy}"
    for name in TESTS:
        for value in VALUES:
            yield f"{value} is {name}"
        for value, args in itertools.product(FEW, ["1", "s", "l", "nope", "2, 3"]):
            yield f"{value} is {name}({args})"
    for left, operator, right in itertools.product(FEW, BINARY, FEW):
        if (operator, right) not in [("**", "big"), ("*", "big")] and (left, operator) != ("big", "*"):  # takes all memory
            yield f"{left} {operator} {right}"
    for operator, value in itertools.product(["-", "+", "not "], VALUES):
        yield f"{operator}{value}"
    for value in VALUES:
        for access in ["[0]", "[-1]", "[9]", "['a']", "[1:]", "[::-1]", ".nope", "['nope']", "()", ".nope.nope", "[nil]", "[1.0]"]:
            yield f"{value}{access}"
        for shown in [value, f"[{value}]", f"{{'k': {value}}}", f"({value},)", f"'%r' % ({value},)", f"'{{!r:>9}}'.format({value})",
                      f"{value} ~ ''", f"{value} | string | length", f"{value} if {value} else 'falsy'", f"{{{value}: 1}}"]:
            yield shown
    for start, stop, step in itertools.product(["", "0", "-2", "9", "none"], ["", "2", "-1", "-9"], ["", "2", "-1", "0"]):
        for value in ["l", "s", "(1, 2, 3, 4)", "range(5)"]:
            yield f"{value}[{start}:{stop}:{step}]" + (" | list" if value.startswith("range") else "")
    for text, (name, calls) in itertools.product(TEXTS, TEXT_METHODS.items()):
        for args in calls:
            yield f"{text}.{name}({args})"
    for spec, value in itertools.product(SPECS, ["42", "-7", "3.14159", "-1e20", "true", "'abc'", "none", "big", "l", "nope"]):
        yield f"'{{:{spec}}}'.format({value})"
    for spec, value in itertools.product(PERCENTS, ["42", "-7.5", "'abc'", "none", "(3, 4)", "(3, 4.5)", "{'a': 5}", "l", "big", "true", "nope"]):
        yield f"'[%{spec}]' % {value}"
    for field in ["0", "1", "x", "0.x", "0[a]", "0[0]", "x.upper", "x[0]", "", "0!r", "0!s", "0!a", "0!q", "0!", "x!r:>9", "-1", "a b", "0[", "0]", "x:{w}", "{0}", "0:{0}", ":{}{}"]:
        yield f"'{{{field}}}'.format(d, x='text', w=9)"
        yield f"'{{{field}}} {{}}'.format(l, 'two', x='text', w=9)"
    for style, quote in itertools.product(["it's", 'say "x"', "both ' and \\\"", "tab\\t", "nul\\x00", "é\\u200b\\xad", "\\U0001F600\\ud7ff", "back\\\\slash", "a\\nb", "\\x7f\\x80\\u2028"], ["'%s'", '"%s"']):
        text = quote % style.replace(quote[0], "\\" + quote[0]).replace("\\\\" + quote[0], "\\" + quote[0])
        yield from (text, f"[{text}]", f"{{{text}: {text}}}", f"{text} | tojson", f"{text} | to_json", f"{text} | to_yaml", f"{{'k': {text}}} | to_yaml",
                    f"{text} | urlencode", f"{text} | e", f"{text} | pprint", f"{text} | length", f"'%a' % {text}", f"{text} | sha256(6)")
    yield from sorting()
    yield from kluctl()


def sorting():
    """Orders, and what has none."""
    rows = ["[3, 1, 2]", "['b', 'A', 'c']", "[true, 0, 2.5]", "[1, 'a']", "[none, 1]", "[[2], [1, 5]]", "[(1, 'b'), (1, 'a')]",
            "[{}, {}]", "[{'a': 2}, {'a': 1}]", "[{'a': 'x'}, {'a': 1}]", "[{'a': 1}, {}]", "[{'a': {'b': 2}}, {'a': {'b': 1}}]",
            "[nope]", "[1, nope]", "'hello'", "{'b': 1, 'a': 2}", "[1e40, -1]", "['é', 'z', 'E']", "[]", "[[], []]", "[range(2), range(1)]"]
    for row in rows:
        for use in ["sort", "sort(reverse=true)", "sort(case_sensitive=true)", "sort(attribute='a')", "sort(attribute='a.b')",
                    "sort(attribute='a,b')", "sort(attribute=0)", "min", "max", "min(attribute='a')", "max(case_sensitive=true)", "unique | list",
                    "unique(attribute='a') | list", "groupby('a') | list", "groupby('a', default=0) | list", "groupby('a.b') | list", "groupby(0) | list",
                    "sum", "sum(attribute='a')", "sum(start=10)", "map(attribute='a') | list", "map(attribute='a', default=5) | list",
                    "map(attribute='a.b', default=5) | list", "selectattr('a') | list", "selectattr('a', 'eq', 1) | list",
                    "rejectattr('a', 'defined') | list", "select('gt', 1) | list", "reject('string') | list", "join(',')",
                    "join(',', attribute='a')", "list | tojson", "first", "last", "reverse | list", "batch(2, '-') | list",
                    "slice(2, '-') | list", "length", "map('string') | join", "to_yaml", "to_json", "pprint"]:
            yield f"{row} | {use}"


def kluctl():
    """kluctl's own filters and functions."""
    texts = ["true", "Yes", "y", "off", "null", "~", "", "1", "-1", "+1", "007", "0o7", "0x1F", "0b1", "1_000", "1.", ".5", "1e3", "1.5e+3", "1e+3",
             ".inf", "-.INF", ".NaN", "1:30", "12:30:45", "2024-01-02", "2024-01-02 03:04:05", "2024-01-02T03:04:05.25+01:00", "=", "<<", "-", "- a", "?",
             "? a", ":", ": a", "a: b", "a:", "a #b", "#a", "!a", "&a", "*a", "%a", "@a", "`a", "|", ">", "[", "{", "]", "a]", "\\'", "\\\"", "a, b", "---",
             "...", "--- a", " a", "a ", "a\\nb", "a\\n", "\\na", "a\\n\\nb\\n\\n", "  a\\nb", "a\\tb", "é", "\\U0001F600", "\\x07", "\\x85", "\\ufeff", "٣", "½", "nOnE",
             "0.1", "1e-7", "123456789012345678901234567890", "a" * 90, "word " * 30, "wörd " * 30, "a: " * 30, "\\t", "\\\\", "a\\\\nb", "x\\n" * 3]
    for text in texts:
        quoted = f"'{text}'"
        yield from (f"{quoted} | to_yaml", f"{{'k': {quoted}}} | to_yaml", f"[{quoted}, [{quoted}]] | to_yaml", f"{{{quoted}: 1}} | to_yaml",
                    f"({quoted} | to_yaml | from_yaml) == {quoted}", f"{quoted} | from_yaml", f"'k: {text}' | from_yaml",
                    f"'[{text}]' | from_yaml", f"'- {text}' | from_yaml | to_json")
    for value in VALUES:
        yield from (f"{value} | to_yaml", f"{{'k': {value}}} | to_yaml", f"[{value}] | to_json", f"merge_dict(d, {{'a': {value}}})",
                    f"merge_dict({value}, {{'a': 1}})", f"merge_dict({{'a': 1}}, {value})", f"update_dict({value}, {{}})", f"get_var({value})",
                    f"get_var('nope', {value})", f"raise({value})", f"load_template({value})", f"render({value})", f"{value} | render",
                    f"images.get_image({value})", f"{value} | sha256", f"{value} | b64encode", f"{value} | b64decode", f"{value} | from_yaml",
                    f"{value} | slugify", f"version.prefix({value})", f"time.parse_iso({value})", f"debug_print({value})", f"load_base64({value})",
                    f"time.parse_iso('2024-01-01') + {value}", f"time.parse_iso('2024-01-01') - {value}", f"time.parse_iso('2024-01-01') < {value}")
    for path in ["d", "d.a", "d.c.x[1]", "d['c']['y']", "$.d.c", "$", "d.*", "*", "nope", "d.nope", "l[0]", "l[-1]", "l[9]", "l[0:2]", "l[*]", "users[1].tags",
                 "users[0].tags[0]", "d.c.*", "$..y", "d.c.x[*]", "args.labels.'app.kubernetes.io/name'", "args['labels']", "$['args']['env']", "d.", ".d",
                 "d..", "[0]", "d[", "d['a'", "", "d.a.b", "s[0]", "n.x", "nil", "nil.x", "users.name", "users[*].name", "d.[a]", "d.a|b", "(d).a", "te*", "args.l*.foo-bar"]:
        quoted = '"' + path + '"'
        yield from (f"get_var({quoted})", f"get_var({quoted}, 'default')", f"get_var(['nope.x', {quoted}], 1)")
    for text in ["Hello World", "a_b c", "it's", "1,000.5", "ÄÖü ß", "日本語 x", "a--b", " x ", "a&amp;b", "&#38;", "&nbsp;", "x" * 30, "the big brown fox", "", "...", "éa"]:
        for options in ["", "separator='_'", "max_length=5", "max_length=9, word_boundary=true", "max_length=9, word_boundary=true, save_order=true",
                        "lowercase=false", "allow_unicode=true", "entities=false", "decimal=false", "hexadecimal=false", "stopwords=['the']",
                        "replacements=[['x', 'yy']]", "regex_pattern='[^a-z]+'", "separator=''", "bogus=1"]:
            yield f"'{text}' | slugify({options})"
    for moment in ["2024-02-29T12:00:00", "2023-12-31T23:59:59.999999", "2024-07-01T00:00:00+00:00", "2024-03-31T00:59:59Z", "0001-01-01", "9999-12-31T23:59:59"]:
        for use in ["", " + time.second", " - time.minute * 90", " + time.hour * 24 * 366", ".weekday()", ".hour()", ".nanosecond()", ".as_timezone('UTC')",
                    ".as_timezone('Europe/Berlin')", ".as_timezone('Asia/Kolkata').hour()", ".as_timezone('nope')", ".t", ".nope()", " + 1.5", " + big"]:
            if "as_timezone" in use and "Z" not in moment and "+" not in moment:
                continue  # the zone of the machine
            yield f"time.parse_iso('{moment}'){use}"


def changes():
    """Methods that change their value, shown through a second name."""
    for name, calls in LIST_METHODS.items():
        for args in calls:
            yield f"list {name}({args})", "{% set l2 = l %}{{ l2." + f"{name}({args})" + " }} {{ l }} {{ l2 is sameas l }}"
            yield f"list {name}({args}) of copy", "{% set l2 = l[:] %}{% set _ = l2." + f"{name}({args})" + " %}{{ l }} {{ l2 }}"
    for name, calls in DICT_METHODS.items():
        for args in calls:
            yield f"dict {name}({args})", "{% set d2 = d %}{{ d2." + f"{name}({args})" + " }} {{ d }}"
            yield f"dict {name}({args}) in loop", "{% for i in [1, 2] %}{{ emptydict." + f"{name}({args})" + " }}{{ emptydict }}\n{% endfor %}"


def whitespace():
    """Signs at both sides of tags, in all combinations."""
    for left, right in itertools.product(["", "-", "+"], repeat=2):
        for tag in ["if t", "set x = 1", "raw", "for i in [1, 2]", "macro m()", "block b", "filter upper"]:
            end = "" if tag.startswith("set") else " {%" + left + " end" + tag.split()[0] + " " + right + "%} "
            yield f"{left}|{right} {tag}", "a \n\t {%" + left + " " + tag + " " + right + "%} \n x \n" + end + "\n b\n"
        yield f"{left}|{right} variable", "a \n {{" + left + " 1 " + right + "}} \n b \n\n"
        yield f"{left}|{right} comment", "a \n {#" + left + " 1 " + right + "#} \n b \n\n"
        yield f"{left}|{right} raw braces", "a {%" + left + " raw " + right + "%} {{ x }} {% if %} {%" + left + " endraw " + right + "%} b"
    for text in ["{{1}}", "{{ 1}}\n\n", "\n{{ 1 }}\n", "{%if t%}x{%endif%}", "{%- if t -%} x {%- endif -%}", "{{-1}}", "{{- -1 -}}", "{{+1}}", "{#-#}", "{# a #}{#b#}",
                 "{{ '-%}' }}", "{{ '}}' }}", "{{ {'a': {'b': 1}} }}", "{% set a = '{%' %}{{ a }}", "{ { 1 } }", "{", "}", "{{", "}}", "{%", "%}", "#}", "{#", "{# #",
                 "{{ 1 }", "{{ 1 %}", "{% if t }}", "{%raw%}{{{%endraw%}", "{% raw %}", "a\r\nb{{ 1 }}\r\n", "a\rb{{ 1 }}", "{{ 'a\r\nb' }}", "{{ 1\n\n+ nope }}", "#{{ 1 }}", "## a {{ 1 }}",
                 "# for x in l\n{{ 1 }}\n# endfor", "% if\n{{ 1 }}", "{%\n if\n t\n %}x{%\nendif\n%}", "{{\n\n1 /\n\n0 }}", "{% if t %}\n\n{{ nope }}\n{% endif %}", "{% extends %}", "\ufeff{{ 1 }}"]:
        yield repr(text), text


MACROS = [
    "{% macro m(a, b=2, *c) %}{% endmacro %}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m(a, b=x, x=1) %}{{ a }}{{ b }}{% endmacro %}", "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}",
    "{% macro m(a, b=nope) %}{{ a }}{{ b is defined }}{% endmacro %}", "{% macro m() %}{{ caller() }}{% endmacro %}",
    "{% macro m(a, caller=none) %}{{ a }}{{ caller is none }}{% endmacro %}", "{% macro m(a) %}{{ caller(a, 2) if caller else 'no' }}{% endmacro %}",
    "{% macro m(a, b=[]) %}{% set _ = b.append(a) %}{{ b }}{% endmacro %}", "{% macro m(a) %}{{ m.name }}{{ m.arguments }}{{ m.catch_varargs }}{% endmacro %}",
    "{% macro m(a) %}{% if a %}{{ m(a - 1) }}{% endif %}{{ a }}{% endmacro %}", "{% macro m(a, a) %}{{ a }}{% endmacro %}", "{% macro m(n) %}{{ n }}{{ s }}{% set s = 1 %}{{ s }}{% endmacro %}",
    "{% macro m(varargs) %}{{ varargs }}{% endmacro %}", "{% macro m(kwargs=1) %}{{ kwargs }}{% endmacro %}", "{% macro m(a) -%}\n  {{ a }}\n{%- endmacro %}",
]
CALLS = ["{{ m() }}", "{{ m(1) }}", "{{ m(1, 2) }}", "{{ m(1, 2, 3, x=4) }}", "{{ m(a=1) }}", "{{ m(1, a=1) }}", "{{ m(b=1, a=2) }}", "{{ m(*[1, 2]) }}", "{{ m(**{'a': 5, 'z': 6}) }}",
         "{{ m(1) }}{{ m(2) }}", "{% call m() %}body{% endcall %}", "{% call m(1) %}body{% endcall %}", "{% call(x) m(1) %}{{ x }}{% endcall %}", "{% call(x, y=3) m(1) %}{{ x }}{{ y }}{% endcall %}",
         "{% call(x, y, z) m(1) %}{{ z is defined }}{% endcall %}", "{{ m }}", "{{ m.nope }}", "{{ m(nope) }}", "{{ m(1) | upper }}", "{% set r = m(1) %}[{{ r }}]{{ r is string }}", "{{ [m(1)] }}",
         "{% for a in [1, 2] %}{{ m(a) }}{% endfor %}", "{{ m(1, caller=5) }}"]


def macros():
    """Macros and how they are called."""
    for (row, macro), (column, call) in itertools.product(enumerate(MACROS), enumerate(CALLS)):
        yield f"{row} {column}", macro + "\n" + call


LAYOUTS = {
    "layout.j2": "<{% block head %}H{{ s }}{% endblock %}|{% block body scoped %}B{% endblock %}|{% set late = 1 %}{{ self.head() }}>",
    "list.j2": "{% for x in l %}{% block item scoped %}{{ x }}{% endblock %},{% endfor %}",
    "middle.j2": "{% extends 'layout.j2' %}{% set mid = 2 %}{% block body %}[{{ super() }}]{{ mid is defined }}{% endblock %}",
    "needs.j2": "{% block must required %}{% endblock %}",
    "parts.j2": "{% set v = 'V' %}{% macro hi(x, y=v) %}hi {{ x }} {{ y }} {{ s is defined }} {{ own is defined }}{% endmacro %}{% macro _secret() %}{% endmacro %}{{ v }}",
    "piece.j2": "piece {{ own is defined }} {{ x is defined }} {{ s | length }}{% set own = 'piece' %}",
    "fails.j2": "one\n\n{{ 1 / 0 }}",
    "broken.j2": "one\ntwo {% if %}",
    "endless.j2": "{% include 'endless.j2' %}",
}
CHILDREN = [
    "{% block head %}C{% endblock %}", "{% block head %}{{ super() }}{% endblock %}", "{% block body %}{{ super.super() }}{% endblock %}", "{% block body %}{{ self.head() }}{% endblock %}",
    "{% block other %}O{% endblock %}", "text", "{% set own = 5 %}{% block body %}{{ own }}{% endblock %}", "{% block body %}{% set own = 5 %}{{ own }}{{ late is defined }}{% endblock %}",
    "{% macro m() %}M{% endmacro %}{% block body %}{{ m() }}{% endblock %}", "{% import 'parts.j2' as p %}{% block body %}{{ p.hi(1) }}{% endblock %}",
    "{% block item %}<{{ x }}>{% endblock %}", "{% block item %}{{ super() }}{{ loop is defined }}{% endblock %}", "{% block must %}ok{% endblock %}", "{% block must %}{% endblock must %}",
    "{% block body %}{% include 'piece.j2' %}{% endblock %}", "{% block body %}{{ nope }}{% endblock %}", "{% for x in l %}{% block inner %}{{ x }}{% endblock %}{% endfor %}",
    "{% block body %}{% block nested %}N{% endblock %}{% endblock %}", "{% block body %}a{% endblock wrong %}", "{% block body %}{{ super() | upper }}{{ super }}{% endblock %}", "{{ nope }}", "{% if t %}{% block head %}I{% endblock %}{% endif %}",
]
PIECES = [
    "{% include 'piece.j2' %}", "{% include 'piece.j2' without context %}", "{% set own = 1 %}{% include 'piece.j2' with context %}{{ own }}", "{% for x in [1, 2] %}{% include 'piece.j2' %}{% endfor %}",
    "{% include ['nope.j2', 'piece.j2'] %}", "{% include ['nope.j2', 'no.j2'] %}", "{% include 'nope.j2' ignore missing %}-", "{% include 'nope.j2' ignore missing with context %}-", "\n{% include 'nope.j2' %}", "{% include nope %}",
    "{% include 5 %}", "{% include none %}", "{% include 'fails.j2' %}", "{% include 'fails.j2' ignore missing %}", "\n{% include 'broken.j2' %}", "{% include 'broken.j2' ignore missing %}", "{% include 'pi' ~ 'ece.j2' %}",
    "{% import 'parts.j2' as p %}{{ p.hi(1) }}{{ p.v }}{{ p }}", "{% import 'parts.j2' as p with context %}{{ p.hi(1, 2) }}", "{% set own = 1 %}{% import 'parts.j2' as p with context %}{{ p.hi(1) }}", "{% set s = 'own' %}{% import 'parts.j2' as p %}{{ p.hi(1) }}",
    "{% import 'parts.j2' as p %}{{ p._secret() }}", "{% import 'parts.j2' as p %}{{ p.nope }}", "{% import 'parts.j2' as p %}{{ p.nope() }}", "{% from 'parts.j2' import hi %}{{ hi(1) }}", "{% from 'parts.j2' import hi as h, v %}{{ h(v) }}",
    "{% from 'parts.j2' import nope %}x", "{% from 'parts.j2' import nope %}{{ nope }}", "\n{% from 'parts.j2' import nope %}\n{{ nope() }}", "{% from 'parts.j2' import _secret %}", "{% from 'parts.j2' import hi with context %}{{ hi(1) }}",
    "{% import 'fails.j2' as p %}", "{% import 'nope.j2' as p %}", "{% import 'broken.j2' as p %}", "{% from 'parts.j2' import %}", "{% import 'parts.j2' %}", "{% import 'parts.j2' as p.q %}", "{% for x in l %}{% import 'parts.j2' as p %}{{ p.hi(x) }}{% endfor %}",
    "{% macro m() %}{% include 'piece.j2' %}{% endmacro %}{{ m() }}", "{% macro m(x) %}{% import 'parts.j2' as p %}{{ p.hi(x) }}{% endmacro %}{{ m(7) }}", "{% set x = 1 %}{% block b %}{% include 'piece.j2' %}{% endblock %}", "{% with own = 1 %}{% include 'piece.j2' %}{% endwith %}",
    "{{ load_template('piece.j2') }}", "{{ load_template('piece.j2', own=1) }}", "{{ load_template('fails.j2') }}", "{{ load_template('broken.j2') }}", "{{ load_template('nope.j2') }}", "{{ load_sha256('piece.j2', 9) }}", "{{ load_base64('piece.j2', 20) }}", "{{ load_base64('../x') }}",
    "{% include '/etc/hostname' %}", "{% include '../x.j2' %}", "{% include 'a/../piece.j2' %}", "{{ render('{% include \"piece.j2\" %}') }}", "{% include 'endless.j2' %}", "{% set p = 'piece.j2' %}{% include p %}", "{% if no %}{% include 'nope.j2' %}{% endif %}ok",
    "{% filter upper %}{% include 'piece.j2' %}{% endfilter %}", "{% set r %}{% include 'piece.j2' %}{% endset %}[{{ r }}]", "{% call load_template('piece.j2') %}{% endcall %}", "{% include 'piece.j2' with contexts %}", "{% include 'piece.j2' ignore %}", "{% include %}",
    "{% extends 'layout.j2' %}{% include 'nope.j2' %}", "{% include 'layout.j2' %}", "{% include 'middle.j2' %}", "{% import 'middle.j2' as m %}{{ m.mid }}", "{% from 'middle.j2' import mid %}{{ mid }}",
]


def several_files():
    """Inheritance, includes and imports."""
    for parent, (number, child) in itertools.product(["layout.j2", "list.j2", "middle.j2", "needs.j2"], enumerate(CHILDREN)):
        yield f"{parent} {number}", "{% extends '" + parent + "' %}\n" + child
    for number, piece in enumerate(PIECES):
        yield f"{number}", piece
        yield f"{number} in loop", "{% for i in [1] %}\n" + piece + "{% endfor %}"


class Programs:
    """Random programs that are mostly legal."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.in_loop = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def name(self):
        return self.pick("a", "b", "c", "x", "y", "s", "l", "n", "d")

    def atom(self):
        name = self.name()
        return self.pick("1", "2.5", "'t'", "n", "s", "l", "d", "users", "true", "none", "[1, 'b']", "{'k': 1}", "(1,)", f"{name} | default(0)", "3", "range(3)",
                         "names", "''", "0", name if name in "sldn" else "1", "loop.index" if self.in_loop else "2")

    def expression(self, depth=0):
        part = lambda: self.expression(depth + 1)  # noqa: E731
        kind = self.random.randrange(40) if depth < 3 else 0
        if kind < 10:
            return self.atom()
        if kind < 15:
            return f"{part()} ~ {part()}"
        if kind < 19:
            return f"({part()} {self.pick('==', '!=', 'and', 'or')} {part()})"
        if kind == 19:
            return f"({part()} {self.pick('+', '*', '<', '-', '%', 'in')} {part()})"
        if kind < 29:
            return f"({part()}) | {self.pick('string', 'default(1)', 'string | length', 'upper', 'string | first', 'to_json', 'int', 'trim', 'tojson', 'to_yaml', 'pprint', 'string | reverse', 'title')}"
        if kind < 31:
            return f"({part()} if {part()} else {part()})"
        if kind < 34:
            return f"({part()}) is {self.pick('defined', 'none', 'string', 'mapping', 'iterable', 'number')}"
        if kind < 36:
            return f"[{part()}, {part()}]"
        if kind < 38:
            return f"{{'k': {part()}, {self.pick(1, 2.5, 'none', 'n')}: 1}}"
        return f"({part()},)"

    def body(self, depth):
        return "".join(self.statement(depth + 1) for _ in range(self.random.randrange(1, 3)))

    def statement(self, depth=0):
        sign = lambda: self.pick("", "", "", "-", "")  # noqa: E731
        tag = lambda text: "{%" + sign() + " " + text + " " + sign() + "%}"  # noqa: E731
        kind = self.random.randrange(5 if depth > 2 else 18)
        name = self.pick("a", "b", "c", "x", "y")  # none that the context has: see deviations.txt
        if kind == 0:
            return self.pick("text", "\n", "  pad\n", "k: v\n", "é ")
        if kind < 4:
            return "{{" + sign() + " " + self.expression() + " " + sign() + "}}" + self.pick("", "\n", " ")
        if kind == 4:
            return tag(f"set {name} = {self.expression()}") + self.pick("", "\n")
        loops, self.in_loop = self.in_loop, 1 if 7 <= kind < 10 else 0 if kind in (13, 17) else self.in_loop
        body = self.body(depth)
        self.in_loop = loops
        if kind < 7:
            other = tag("else") + self.body(depth) if self.pick(0, 1) else ""
            return tag(f"if {self.expression()}") + body + other + tag("endif")
        if kind < 10:
            recursive = self.pick("", "", " recursive")
            test = f" if {name} {self.pick('is defined', '!= 1', 'is string')}" if self.pick(0, 0, 1) else ""
            other = tag("else") + "none" if self.pick(0, 1) else ""
            inner = "{{ loop." + self.pick("index", "last", "length", "depth", "previtem is defined") + " }}" if self.pick(0, 1) else ""
            leave = tag(f"if {name} == 2") + tag(self.pick("break", "continue")) + tag("endif") if self.pick(0, 0, 1) else ""
            return tag(f"for {name} in {self.pick('l', 'names', 'd', '[1, 2, 3]', 'range(3)', '(1, 2)', 'users')}{test}{recursive}") + inner + leave + body + other + tag("endfor")
        if kind == 10:
            # On one line: an error in it is reported in the line of the statement before.
            return tag(f"with {name} = {self.expression()}").replace("\n", " ") + body + tag("endwith")
        if kind == 11:
            # A block reads the name that it sets as undefined, which is listed as a deviation.
            return tag("set text") + body + tag("endset") + "{{ text | length }}"
        if kind == 12:
            return tag(f"filter {self.pick('upper', 'trim', 'indent(2)', 'title', 'replace(1, 2)')}") + body + tag("endfilter")
        if kind == 13:
            return tag(f"macro m{depth}({name}, opt=1)") + body + "{{ varargs }}" + tag("endmacro") + "{{ m" + str(depth) + "(" + self.expression() + ", 2, 3) }}"
        if kind == 14:
            return tag(f"macro w{depth}(x)") + "<{{ caller(x) }}>" + tag("endmacro") + tag(f"call({name}) w{depth}({self.expression()})") + body + tag("endcall")
        if kind == 15:
            return tag("set ns = namespace(v=0)") + tag("for i in [1, 2]") + tag("set ns.v = ns.v + i") + body + tag("endfor") + "{{ ns.v }}"
        if kind == 16:
            return tag(f"set _ = emptylist.append({self.expression()})") + "{{ emptylist | length }}"
        return tag(f"block b{self.random.randrange(10**9)}{self.pick('', ' scoped')}") + body + tag("endblock")

    def program(self):
        return "".join(self.statement() for _ in range(self.random.randrange(2, 6)))


def broken(templates):
    """Templates with one piece removed, doubled or exchanged."""
    chosen = random.Random(7)
    pieces = ["{%", "%}", "{{", "}}", "(", ")", "[", "]", ",", ".", "|", "=", "'", "if", "else", "endfor", "in", " ", "\n", "1", "-", ":", "{#", "@", "is", "not", "**"]
    for template in templates:
        if not 4 <= len(template) < 400:
            continue
        at = chosen.randrange(len(template) - 1)
        piece = chosen.choice(pieces)
        end = at + chosen.choice([0, 1, 1, 2])
        yield template[:at] + piece * chosen.choice([0, 1, 1]) + template[end:]


def probes(written):
    """Names, templates and files of all generated probes; `written` are the templates of the others."""
    seen = set()
    for expression in expressions():
        if expression and expression not in seen:
            seen.add(expression)
            yield f"generated: {expression}", "{{ " + expression + " }}", {}
    groups = {"change": changes(), "whitespace": whitespace(), "macro": macros()}
    for group, pairs in groups.items():
        for name, template in pairs:
            yield f"{group}: {name}", template, {}
    for name, template in several_files():
        yield f"files: {name}", template, LAYOUTS
    programs = [Programs(seed).program() for seed in range(1200)]
    for seed, template in enumerate(programs):
        yield f"program: {seed}", template, {}
    for template in sorted(set(broken(written + programs))):
        yield f"broken: {template!r}", template, {}
