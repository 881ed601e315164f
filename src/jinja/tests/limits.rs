use std::sync::Arc;

use serde_json::json;

use super::{options, with_files};
use crate::diagnostic::Describe;
use crate::jinja::{Environment, NoFiles, Options, Vars};

/// Renders on a thread with the small stack that library code gets from others.
fn on_small_stack(text: String) -> Result<String, crate::jinja::JinjaError> {
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || {
            let small = Options { fuel: 500_000, max_output: 1 << 20, ..options() };
            let environment = Environment::new(Arc::new(NoFiles), small);
            environment.render("test.yaml", &text, &Vars::new(&json!({"x": 1})))
        })
        .unwrap()
        .join()
        .unwrap()
}

#[track_caller]
fn assert_limited(text: &str) {
    let error = on_small_stack(text.to_owned()).unwrap_err();
    let shown: String = text.chars().take(200).collect();
    assert!(error.is_limit(), "{} {error} for {shown}", error.kind);
}

#[test]
fn endless_recursion_is_an_error_that_says_so() {
    let environment = with_files(&[("loop.j2", "x{% include 'loop.j2' %}")]);
    let error = environment.render("cm.yaml", "{% include 'loop.j2' %}", &Vars::default());
    let error = error.unwrap_err();
    assert!(error.message.contains("recursion"), "{error}");
    assert_eq!(&*error.template, "loop.j2");
    assert!(error.is_limit());
    let environment = with_files(&[("a.j2", "{% extends 'a.j2' %}")]);
    let error = environment.render("cm.yaml", "{% extends 'a.j2' %}", &Vars::default());
    assert!(error.unwrap_err().is_limit());
    for text in [
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f() %}{{ caller is defined }}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}",
        "{% set t = '{{ render(t) }}' %}{{ render(t) }}",
        "{% block a %}{{ self.a() }}{% endblock %}",
        "{% for x in [[]] recursive %}{{ loop([[]]) }}{% endfor %}",
        "{% macro f(n) %}{{ [1] | map('default', f(n)) | list }}{% endmacro %}{{ f(1) }}",
    ] {
        assert_limited(text);
    }
}

#[test]
fn what_leads_back_to_itself_is_told_once() {
    let causes = |files: &[(&'static str, &'static str)], text: &str| {
        let error = with_files(files).render("cm.yaml", text, &Vars::default()).unwrap_err();
        let diagnostic = error.describe();
        let at = diagnostic.at.unwrap().to_string();
        (at, diagnostic.causes)
    };
    let files = [
        ("a.j2", "a\n{% include 'b.j2' %}"),
        ("b.j2", "{% macro m() %}\n{% include 'a.j2' %}\n{% endmacro %}\n\n{{ m() }}"),
    ];
    let (at, found) = causes(&files, "x\n\n{% include 'a.j2' %}");
    let cycle = ["a.j2, line 2", "b.j2, line 5", "b.j2, line 2"];
    let start =
        cycle.iter().position(|place| at.starts_with(&place.replace(", line ", ":"))).unwrap();
    let around =
        |from: usize| (0..=3).map(|i| cycle[(from + i) % 3]).collect::<Vec<_>>().join(" → ");
    assert_eq!(found[0], format!("again and again: {}", around(start + 1)), "{at}");
    assert_eq!(found[1..], ["reached from cm.yaml, line 3"]);

    let (at, found) = causes(&[("a.j2", "\n{% include 'a.j2' %}")], "{% include 'a.j2' %}");
    assert!(at.starts_with("a.j2:2:"), "{at}");
    let expected = ["again and again: a.j2, line 2 → a.j2, line 2", "reached from cm.yaml, line 1"];
    assert_eq!(found, expected);

    let files = [("a.j2", "{% extends 'b.j2' %}"), ("b.j2", "{% extends 'a.j2' %}")];
    let (_, found) = causes(&files, "{% extends 'a.j2' %}");
    assert!(found[0].contains("a.j2, line 1 → b.j2, line 1"), "{found:?}");

    let text = "{% macro f() %}\n{{ f() }}{% endmacro %}\n{{ f() }}";
    let (at, found) = causes(&[], text);
    assert!(at.starts_with("cm.yaml:2:"), "{at}");
    let expected =
        ["again and again: cm.yaml, line 2 → cm.yaml, line 2", "reached from cm.yaml, line 3"];
    assert_eq!(found, expected);
}

#[test]
fn deep_but_finite_recursion_works() {
    let text = "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% else %}end{% endif %}{% endmacro %}{{ f(200) }}";
    assert_eq!(on_small_stack(text.to_owned()).unwrap(), "end");
    let text = format!("{{{{ {}x{} }}}}", "(".repeat(40), ")".repeat(40));
    assert_eq!(on_small_stack(text).unwrap(), "1");
    let text = format!("{{{{ x{} }}}}", " + 1".repeat(400));
    assert_eq!(on_small_stack(text).unwrap(), "401");
}

#[test]
fn deep_syntax_is_refused_not_crashed_on() {
    for (open, middle, close) in [
        ("(", "x", ")"),
        ("[", "x", "]"),
        ("{1: ", "x", "}"),
        ("not ", "x", ""),
        ("-", "x", ""),
        ("x[", "x", "]"),
        ("x(", "x", ")"),
        ("x | default(", "x", ")"),
        ("x if x else ", "x", ""),
    ] {
        let text = format!("{{{{ {}{middle}{} }}}}", open.repeat(20_000), close.repeat(20_000));
        assert_limited(&text);
    }
    for repeated in [" + 1", " and x", " | abs", ".a", "()", " ** 1", " if x"] {
        assert_limited(&format!("{{{{ x{} }}}}", repeated.repeat(20_000)));
    }
    assert_limited(&"{% if x %}".repeat(20_000));
    assert_limited(&"{% for a in x %}".repeat(20_000));
    assert_limited(&format!("{{% set {}a{} = x %}}", "(".repeat(20_000), ")".repeat(20_000)));
}

#[test]
fn endless_work_and_growth_end() {
    for text in [
        "{% for a in range(10000000) %}{% for b in range(10000000) %}{% endfor %}{% endfor %}",
        "{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}",
        "{{ range(1000000000000) | list }}",
        "{{ range(1000000000000) | sum }}",
        "{{ 'x' * 1000000000000 }}",
        "{{ [0] * 1000000000000 }}",
        "{{ 'x' | center(1000000000000) }}",
        "{{ 'x' | indent(1000000000000) }}",
        "{{ '%1000000000000d' % 1 }}",
        "{{ '{:1000000000000}'.format(1) }}",
        "{{ '%.1000000000000f' % 1 }}",
        "{{ 'x'.ljust(1000000000000) }}",
        "{{ [1] | batch(1000000000000, 0) | list }}",
        "{{ [1] | slice(1000000000000) | list }}",
        "{{ 2 ** 1000000000000 }}",
        "{{ (2 ** 100000) ** 100000 }}",
        "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(64) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(64) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s == [] or ns.s | to_json }}",
        "{% set ns = namespace(s='aa') %}{% for i in range(64) %}{% set ns.s = ns.s.replace('a', ns.s) %}{% endfor %}",
        "{% set ns = namespace(s='aa') %}{% for i in range(64) %}{% set ns.s = ns.s | replace('a', ns.s) %}{% endfor %}",
        "{% for i in range(1000000) %}{{ 'x' * 1000 }}{% endfor %}",
    ] {
        assert_limited(text);
    }
}

#[test]
fn deeply_nested_values_neither_print_nor_crash() {
    let nest = "{% set ns = namespace(v=[]) %}{% for i in range(50000) %}{% set ns.v = [ns.v] %}{% endfor %}";
    assert_eq!(on_small_stack(format!("{nest}ok")).unwrap(), "ok");
    for use_it in [
        "{{ ns.v }}",
        "{{ ns.v | to_json }}",
        "{{ ns.v | to_yaml }}",
        "{{ merge_dict({'a': ns.v}, {}) }}",
    ] {
        assert_limited(&format!("{nest}{use_it}"));
    }
    let spaces = "{% set ns = namespace(v=1) %}{% for i in range(50000) %}{% set ns.v = namespace(v=ns.v) %}{% endfor %}ok";
    assert_eq!(on_small_stack(spaces.to_owned()).unwrap(), "ok");
    let dicts = "{% set ns = namespace(v=1) %}{% for i in range(50000) %}{% set ns.v = {'v': (ns.v,)} %}{% endfor %}ok";
    assert_eq!(on_small_stack(dicts.to_owned()).unwrap(), "ok");
    let yaml = format!("{{{{ '{}' | from_yaml }}}}", "[".repeat(5000));
    assert!(on_small_stack(yaml).is_err());
}

#[test]
fn limits_are_those_of_the_options() {
    let mut small = options();
    small.fuel = 1000;
    small.max_output = 100;
    let environment = Environment::new(Arc::new(NoFiles), small);
    let render = |text: &str| environment.render("a", text, &Vars::default());
    assert_eq!(render("{% for i in range(20) %}{{ i }}{% endfor %}").unwrap().len(), 30);
    let error = render("{% for i in range(2000) %}{% endfor %}").unwrap_err();
    assert!(error.message.contains("too much work"), "{error}");
    assert_eq!(error.position.unwrap().line, 1);
    assert!(render("{{ 'x' * 200 }}").unwrap_err().message.contains("100 bytes"));
    assert!(render("{% for i in range(40) %}{{ 'xxxx' }}{% endfor %}").unwrap_err().is_limit());
}

#[test]
fn ordinary_work_stays_far_below_the_limits() {
    let mut small = options();
    small.fuel = 400_000;
    let environment = Environment::new(Arc::new(NoFiles), small);
    let text =
        "{% for i in range(10000) %}line {{ i }} of a long file that a loop writes\n{% endfor %}";
    let out = environment.render("a", text, &Vars::default()).unwrap();
    assert_eq!(out.lines().count(), 10_000);
    let text =
        "{{ range(10000) | map('string') | join('---------------------------------') | length }}";
    assert!(environment.render("a", text, &Vars::default()).is_ok());
    let text = "{{ range(10000) | list | to_json | length }}{{ range(10000) | list | length }}";
    assert!(environment.render("a", text, &Vars::default()).is_ok());
}
