use std::sync::Arc;

use serde_json::json;

use crate::jinja::{Environment, NoFiles, Options, Vars};

fn environment() -> Environment {
    Environment::new(Arc::new(NoFiles), Options::new(jiff::Timestamp::UNIX_EPOCH))
}

fn render(text: &str) -> String {
    let vars = Vars::new(&json!({"x": 1, "l": [1, "a", null, true, "it's"], "d": {"k": "v"}}));
    environment().render("test.yaml", text, &vars).unwrap()
}

#[test]
fn values_print_as_python_prints_them() {
    assert_eq!(
        render("{{ l }} {{ d }} {{ 1 / 2 }} {{ 1e16 }}"),
        "[1, 'a', None, True, \"it's\"] {'k': 'v'} 0.5 1e+16"
    );
}
