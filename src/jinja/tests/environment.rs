use std::sync::{Arc, Mutex};

use serde_json::json;

use super::{options, render, with_files};
use crate::diagnostic::{Class, Describe, Position};
use crate::jinja::{Environment, NoFiles, Vars};

#[test]
fn a_text_is_compiled_once_whatever_it_is_called_and_sees_its_own_file() {
    let options = options();
    let render = |name: &str, text: &str, a: i64| {
        let environment = Environment::new(Arc::new(NoFiles), options.clone());
        environment.render(name, text, &Vars::new(&json!({"a": a})))
    };
    let text = "{% macro m(x=a) %}{{ x }}{% endmacro %}{% block b %}{{ m() }}{% endblock %}\n";
    assert_eq!(render("one.yaml", text, 1).unwrap(), "1");
    assert_eq!(render("two.yaml", text, 2).unwrap(), "2");
    assert_eq!(options.compiled.len(), 1);
    for name in ["one.yaml", "two.yaml"] {
        assert_eq!(&*render(name, "{{ a.b.c }}", 1).unwrap_err().template, name);
    }
    assert_eq!(options.compiled.len(), 2);
    assert!(render("broken.yaml", "{% if %}", 1).is_err());
    assert_eq!(options.compiled.len(), 2);
    let long = format!("{{{{ a }}}}{}", "x".repeat(3 << 20));
    assert!(render("long.yaml", &long, 1).is_ok());
    assert_eq!(options.compiled.len(), 1, "room was made");
}

#[test]
fn text_without_braces_is_untouched() {
    assert_eq!(render("a\r\nb\n\n", &json!({})).unwrap(), "a\r\nb\n\n");
    assert_eq!(render("a\r\nb {{ 1 }}\r\n\n", &json!({})).unwrap(), "a\nb 1\n");
}

#[test]
fn numbers_arrive_as_they_do_through_json() {
    let vars = json!({"whole": 3.0, "large": 1e20, "huge": 1e21, "tiny": 0.00001, "minus": -0.0, "u": u64::MAX});
    let text = "{{ whole }} {{ large }} {{ huge }} {{ tiny }} {{ minus }} {{ u }}";
    assert_eq!(
        render(text, &vars).unwrap(),
        "3 100000000000000000000 1e+21 1e-05 0 18446744073709551615"
    );
}

#[test]
fn kluctls_functions_hide_variables_of_the_same_name() {
    let vars = json!({"time": 1, "images": 2, "version": 3, "render": 4, "get_var": 5, "range": 6});
    let text = "{{ time.second }} {{ version.number() }} {{ render('x') }} {{ get_var('a', 'd') }} {{ range }}";
    assert_eq!(render(text, &vars).unwrap(), "1000000 number() x d 6");
}

#[test]
fn a_base_that_does_not_exist_makes_no_number() {
    let text = "{{ 'z' | int(7, 36) }} {{ 'z' | int(7, 99) }} {{ '12' | int(7, 1) }} {{ '0x1f' | int(7, 0) }} {{ 'x' | int(7, -2) }}";
    assert_eq!(render(text, &json!({})).unwrap(), "35 7 12 31 7");
}

#[test]
fn now_comes_from_the_options() {
    let text = "{{ time.now() }} {{ time.utcnow().hour() }}";
    assert_eq!(render(text, &json!({})).unwrap(), "2024-05-06T07:08:09.123456 7");
}

#[test]
fn errors_name_file_line_column_and_source() {
    let error =
        render("a: 1\nb: {{ args.a.b | default('x') }}\n", &json!({"args": {}})).unwrap_err();
    assert_eq!(error.to_string(), "test.yaml, line 2: 'dict object' has no attribute 'a'");
    assert_eq!(error.position, Some(Position { line: 2, column: 14 }));
    let diagnostic = error.describe();
    assert_eq!(diagnostic.class, Class::Project);
    assert_eq!(diagnostic.at.unwrap().to_string(), "test.yaml:2:14");
    let excerpt = diagnostic.excerpt.unwrap();
    assert_eq!((excerpt.first_line, excerpt.lines.len()), (1, 2));
    assert_eq!(excerpt.lines[1], "b: {{ args.a.b | default('x') }}");
    assert!(diagnostic.causes.is_empty());
}

#[test]
fn errors_in_other_files_say_how_they_were_reached() {
    let environment = with_files(&[
        (
            "checks.j2",
            "{% macro check(e) %}\n{{ raise('environment ' ~ e ~ ' is not supported') }}\n{% endmacro %}",
        ),
        ("outer.j2", "{% from 'checks.j2' import check %}\n\n{{ check('qa') }}"),
    ]);
    let error = environment.render("app/cm.yaml", "x\n{% include 'outer.j2' %}", &Vars::default());
    let error = error.unwrap_err();
    assert_eq!(error.message, "environment qa is not supported");
    assert_eq!((&*error.template, error.position.unwrap().line), ("checks.j2", 2));
    assert_eq!(error.trace, [("outer.j2".to_owned(), 3), ("app/cm.yaml".to_owned(), 2)]);
}

#[test]
fn undefined_names_come_with_near_ones() {
    let vars = json!({"replicas": 3, "args": {"environment": "prod", "n": 1}, "n": 1});
    let near = |text: &str| {
        let error = render(text, &vars).unwrap_err();
        error.describe().hints.first().cloned().unwrap_or_default()
    };
    assert_eq!(near("{{ replica }}"), "did you mean `replicas`?");
    assert_eq!(near("{{ args.enviroment }}"), "did you mean `environment`?");
    assert_eq!(near("{{ args['enviroment'] }}"), "did you mean `environment`?");
    assert_eq!(near("{% for item in [1] %}{{ itme }}{% endfor %}"), "did you mean `item`?");
    assert_eq!(near("{% macro labels() %}{% endmacro %}{{ label() }}"), "did you mean `labels`?");
    assert_eq!(near("{% if replica > 1 %}{% endif %}"), "did you mean `replicas`?");
    assert_eq!(near("{{ args | defalt(1) }}"), "did you mean `default`?");
    assert_eq!(near("{{ args is mappin }}"), "did you mean `mapping`?");
    // Nothing is near to a letter or to something else altogether.
    assert_eq!(near("{{ m }}"), "");
    assert_eq!(near("{{ hostname }}"), "");
    assert_eq!(near("{{ 1 / 0 }}"), "");
}

#[test]
fn errors_in_texts_that_templates_made_do_not_show_them() {
    let vars = json!({"password": "hunter2 {{ nope }}"});
    let error = render("{{ render(password) }}", &vars).unwrap_err();
    assert_eq!(error.message, "'nope' is undefined");
    assert!(!format!("{error:?} {:?}", error.describe()).contains("hunter2"));
}

#[test]
fn templates_reach_neither_environment_nor_files_outside() {
    let environment = with_files(&[("a.j2", "a")]);
    let render = |text: &str| environment.render("x", text, &Vars::default());
    for text in [
        "{{ environ }}",
        "{{ env }}",
        "{{ os }}",
        "{{ self.__init__.__globals__ }}",
        "{{ ''.__class__ }}",
        "{{ cycler.__init__ }}",
        "{{ range.__globals__ }}",
        "{% include '/etc/passwd' %}",
        "{% include '../a.j2' %}",
        "{{ load_template('../../etc/passwd') }}",
        "{{ load_base64('/etc/passwd') }}",
        "{{ load_sha256('/proc/self/environ') }}",
        "{% import '/proc/self/environ' as x %}",
    ] {
        assert!(render(text).is_err(), "{text}");
    }
}

#[test]
fn syntax_errors_of_included_files_are_theirs() {
    let environment = with_files(&[("bad.j2", "fine\n{% if x %}\n")]);
    let error = environment.render("a.yaml", "\n\n{% include 'bad.j2' %}", &Vars::default());
    let error = error.unwrap_err();
    assert_eq!(&*error.template, "bad.j2");
    assert_eq!(error.position.unwrap().line, 2);
    assert!(error.message.contains("'endif'"), "{error}");
    assert_eq!(error.trace, [("a.yaml".to_owned(), 3)]);
}

#[test]
fn relative_names_start_from_their_file() {
    let environment = with_files(&[
        ("parts/a.j2", "a {% include './b.j2' %} {% include '../c.j2' %}"),
        ("parts/b.j2", "b"),
        ("c.j2", "c"),
    ]);
    let vars = Vars::default();
    assert_eq!(environment.render("parts/x", "{% include './a.j2' %}", &vars).unwrap(), "a b c");
    let error = environment.render_string("values", "{% include './a.j2' %}", &vars).unwrap_err();
    assert_eq!(error.message, "template ./a.j2 not found");
}

#[test]
fn files_that_are_not_text_cannot_be_templates() {
    let environment = with_files(&[]);
    let error = environment.render("a", "{{ load_template('x.bin') }}", &Vars::default());
    assert_eq!(error.unwrap_err().message, "template x.bin not found");
}

#[test]
fn conditions_are_true_or_false() {
    let environment = Environment::new(Arc::new(NoFiles), options());
    let vars = Vars::new(&json!({"n": 3, "on": true, "args": {}}));
    let evaluate = |text: &str| environment.evaluate_condition(text, &vars);
    assert!(evaluate("").unwrap());
    assert!(evaluate("True").unwrap());
    assert!(evaluate("n > 2 and on").unwrap());
    assert!(!evaluate("False").unwrap());
    assert!(!evaluate("args.x is defined").unwrap());
    assert_eq!(evaluate("nope").unwrap_err().message, "'nope' is undefined");
    assert_eq!(evaluate("args.x == 1").unwrap_err().message, "'dict object' has no attribute 'x'");
    assert_eq!(evaluate("n >").unwrap_err().position.unwrap().column, 5);
    assert!(evaluate("on %}x{% if on").is_err());
}

#[test]
fn the_last_commit_is_asked_from_outside() {
    struct History(super::Files);
    impl crate::jinja::Loader for History {
        fn resolve(&self, name: &str, parent: Option<&str>) -> Result<Option<String>, String> {
            self.0.resolve(name, parent)
        }
        fn read(&self, id: &str) -> Result<Arc<[u8]>, String> {
            self.0.read(id)
        }
        fn latest_commit(&self, id: &str) -> Result<Option<String>, String> {
            match id {
                "a/x.txt" => Ok(Some("0123456789abcdef".to_owned())),
                "a/old.txt" => Ok(None),
                _ => Err("no commit has it".to_owned()),
            }
        }
    }
    let files = super::Files(vec![("a/x.txt", "x"), ("a/old.txt", "x"), ("a/new.txt", "x")]);
    let environment = Environment::new(Arc::new(History(files)), options());
    let render = |text: &str| environment.render("a/b.yaml", text, &Vars::default());
    let text = "{{ load_latest_git_commit('a/x.txt') }} {{ load_latest_git_commit('a/x.txt', 8) }}";
    assert_eq!(render(text).unwrap(), "0123456789abcdef 01234567");
    let error = |text: &str| render(text).unwrap_err().message;
    assert!(error("{{ load_latest_git_commit('nope') }}").contains("not found"));
    assert_eq!(
        error("{{ load_latest_git_commit('a/new.txt') }}"),
        "the latest commit is not known: no commit has it"
    );
    assert_eq!(
        error("{{ load_latest_git_commit('a/old.txt') }}"),
        "the latest commit is not known: a/old.txt: the source has no Git history"
    );
}

#[test]
fn debug_messages_go_to_the_sink_once() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let mut options = options();
    options.debug = Some(Arc::new(move |text: &str| sink.lock().unwrap().push(text.to_owned())));
    let environment = Environment::new(Arc::new(NoFiles), options);
    // Deep enough to be started again on a larger stack.
    let text = "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ debug_print([1]) }}{{ f(60) }}";
    assert_eq!(environment.render("a", text, &Vars::default()).unwrap(), "");
    assert_eq!(*seen.lock().unwrap(), ["[1]"]);
}

#[test]
fn changes_stay_inside_one_render() {
    let environment = Environment::new(Arc::new(NoFiles), options());
    let vars = Vars::new(&json!({"l": [1], "d": {"x": {"y": []}}}));
    let text = "{% set _ = l.append(2) %}{% set _ = d.x.y.append(1) %}{{ l }}{{ d }}";
    for _ in 0..2 {
        assert_eq!(environment.render("a", text, &vars).unwrap(), "[1, 2]{'x': {'y': [1]}}");
    }
}

#[test]
fn loaded_templates_work_on_copies() {
    let environment = with_files(&[("t.j2", "{% set _ = l.append(9) %}{{ l }}")]);
    let vars = Vars::new(&json!({"l": [1]}));
    let text = "{% set _ = l.append(2) %}{{ load_template('t.j2') }}{{ l }}";
    assert_eq!(environment.render("a", text, &vars).unwrap(), "[1, 2, 9][1, 2]");
}

#[test]
fn one_environment_serves_many_threads() {
    let environment = with_files(&[("m.j2", "{% macro m(x) %}<{{ x }}>{% endmacro %}")]);
    let vars = Vars::new(&json!({"l": (0..50).collect::<Vec<i32>>()}));
    let text = "{% import 'm.j2' as m %}{% for x in l %}{{ m.m(x) }}{% endfor %}";
    let expected = (0..50).map(|x| format!("<{x}>")).collect::<Vec<_>>().concat();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(environment.render("a", text, &vars).unwrap(), expected);
                }
            });
        }
    });
}

#[test]
fn modules_without_context_are_made_once() {
    let environment = with_files(&[(
        "counter.j2",
        "{% set ns = namespace(n=0) %}{% macro next() %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endmacro %}",
    )]);
    let text =
        "{% import 'counter.j2' as a %}{% import 'counter.j2' as b %}{{ a.next() }}{{ b.next() }}";
    assert_eq!(environment.render("x", text, &Vars::default()).unwrap(), "12");
    assert_eq!(environment.render("x", text, &Vars::default()).unwrap(), "12");
}

#[test]
fn nothing_random_is_offered() {
    for text in ["{{ [1, 2] | random }}", "{{ lipsum() }}"] {
        let error = render(text, &json!({})).unwrap_err();
        assert!(error.message.contains("not supported"), "{error}");
    }
}
