use super::*;
use crate::diagnostic::{Position, SourceLocation};

fn render(files: &[(&str, &str)], dirs: &[&str], file: &str, text: &str) -> Result<String, String> {
    let tree = Arc::new(MemoryTree::from_texts(files.iter().copied()));
    let options = jinja::Options::new(jiff::Timestamp::UNIX_EPOCH);
    let dirs = dirs.iter().map(|dir| (*dir).to_owned()).collect();
    let templates = Templates::new(tree, None, dirs, &options);
    templates.render(file, text, &Context::default()).map_err(|error| error.to_string())
}

#[test]
fn includes_are_searched_in_order_and_relative_to_the_file() {
    let files = [
        ("who", "root"),
        ("only-root", "root sees {% include 'who' %}"),
        ("team/who", "team"),
        ("team/app/who", "app"),
        ("team/app/sub/who", "sub"),
        ("team/parts/a", "{% include './b' %} {% include '../who' %}"),
        ("team/parts/b", "b"),
    ];
    let render = |text: &str| render(&files, &["team/app", "team", ""], "team/app/x.yaml", text);
    assert_eq!(render("{% include 'who' %}").unwrap(), "app");
    assert_eq!(render("{% include './sub/who' %}").unwrap(), "sub");
    assert_eq!(render("{% include '../who' %}").unwrap(), "team");
    // These do not know the file that they stand in, and search.
    assert_eq!(render("{{ load_base64('./sub/who') }}").unwrap(), "c3Vi");
    assert_eq!(render("{% include 'only-root' %}").unwrap(), "root sees app");
    // A template that was found by searching searches again for names relative to itself.
    assert_eq!(render("{% include 'parts/a' %}").unwrap(), "b app");
    assert_eq!(render("[{% include 'nope' ignore missing %}]").unwrap(), "[]");
}

#[test]
fn includes_do_not_leave_the_directories_that_are_searched() {
    let files = [("secret", "no"), ("project/app/x", ""), ("other/y", "no")];
    for name in ["../../secret", "../secret", "/secret", "./../../other/y", "a/../../secret"] {
        let text = format!("{{% include '{name}' %}}");
        let result = render(&files, &["project/app", "project"], "project/app/x", &text);
        assert!(result.is_err(), "{name}: {result:?}");
    }
}

#[test]
fn problems_in_included_templates_name_their_path() {
    let files = [("sub/broken", "line\n{{ nope }}\n")];
    let error = render(&files, &["sub"], "sub/x", "{% include 'broken' %}").unwrap_err();
    assert!(error.starts_with("sub/broken, line 2"), "{error}");
}

#[test]
fn texts_without_a_brace_stay_as_they_are() {
    assert_eq!(render(&[], &[""], "x", "a\r\nb\n").unwrap(), "a\r\nb\n");
    assert_eq!(render(&[], &[""], "x", "a\r\nb{{ 1 }}\n").unwrap(), "a\nb1");
}

#[test]
fn positions_of_rendered_text_lead_back_to_the_file() {
    let source = "a: 1\n{% for i in range(3) %}\n- {{ i }}\n{% endfor %}\n  b: x\nc: {{ c }}\n";
    let rendered = "a: 1\n\n- 0\n\n- 1\n\n- 2\n\n  b: x\nc: value\n";
    let file = RenderedFile::new("f.yaml", None, source, rendered);
    let line = |rendered: usize| {
        let (position, same) = file.source_position(Position { line: rendered, column: 3 });
        (position.line, position.column, same)
    };
    assert_eq!(line(1), (1, 3, true));
    assert_eq!(line(9), (5, 3, true));
    assert_eq!(line(10), (6, 1, false));
    let (generated, _, same) = line(5);
    assert!((2..=4).contains(&generated) && !same, "line {generated}");
}

#[test]
fn positions_in_very_long_texts_are_found_without_comparing_all_of_them() {
    let source = "first: 1\n{% for i in range(300000) %}a: {{ i }}\n{% endfor %}\nlast: 1\n";
    let lines: Vec<_> = (0..300_000).map(|i| format!("a: {i}")).collect();
    let rendered = format!("first: 1\n{}\nlast: 1\n", lines.join("\n"));
    let file = RenderedFile::new("f.yaml", None, source, &rendered);
    let line = |line: usize| {
        let (position, same) = file.source_position(Position { line, column: 1 });
        (position.line, same)
    };
    assert_eq!([line(1), line(2), line(300_001)], [(1, true), (2, false), (3, false)]);
    assert_eq!(line(300_002), (4, true));
}

#[test]
fn completed_diagnostics_show_the_line_as_written() {
    let label: Arc<str> = "https://git.example.com/lib".into();
    let file = RenderedFile::new("f.yaml", Some(&label), "a: {{ x }}\nb: 1\n", "a: secret\nb: 1\n");
    let at = |line| SourceLocation::new("f.yaml", line, 1);
    let complete =
        |line| file.complete(Diagnostic::new(Class::Project, "wrong").with_location(at(line)));
    let diagnostic = complete(1);
    assert_eq!(diagnostic.at.unwrap().to_string(), "https://git.example.com/lib//f.yaml:1:1");
    assert_eq!(diagnostic.excerpt.unwrap().lines[0], "a: {{ x }}");
    assert_eq!(diagnostic.hints.len(), 1, "the line was made by a template");
    assert!(complete(2).hints.is_empty());
}
