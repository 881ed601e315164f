//! Any template ends: with a text, or with an error that names a place inside of it.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use pure::jinja::{Environment, Loader, Options, Vars};
use serde_json::json;

/// The template itself under the name `self`, which it may include or extend, and a module.
struct Files(Arc<[u8]>);

impl Loader for Files {
    fn resolve(&self, name: &str, _parent: Option<&str>) -> Result<Option<String>, String> {
        Ok(["self", "module"].contains(&name).then(|| name.to_owned()))
    }

    fn read(&self, id: &str) -> Result<Arc<[u8]>, String> {
        if id == "self" { Ok(Arc::clone(&self.0)) } else { Ok(MODULE.as_bytes().into()) }
    }
}

const MODULE: &str =
    "{% macro m(x, y=1) %}{{ x }}{{ y }}{% endmacro %}{% block b %}{% endblock %}{% set v = [1] %}";

static VARS: LazyLock<Vars> = LazyLock::new(|| {
    Vars::new(&json!({
        "s": "text", "n": 42, "f": 2.5, "t": true, "nil": null, "l": [3, 1, 2],
        "d": {"a": 1, "b": {"c": [1, 2]}}, "users": [{"name": "ann", "age": 30}, {"name": "bea"}],
        "big": 12_345_678_901_234_567_890_u64, "uni": "Grüße ǅ", "names": ["a", "b"],
    }))
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let options =
        Options { fuel: 20_000, max_output: 1 << 16, ..Options::new(jiff::Timestamp::UNIX_EPOCH) };
    let environment = Environment::new(Arc::new(Files(bytes.into())), options);
    if let Err(error) = environment.render("template.yaml", text, &VARS) {
        let lines = text.split(['\n', '\r']).count();
        let line = error.position.map_or(1, |position| position.line);
        let inside = (1..=lines).contains(&line) || &*error.template != "template.yaml";
        assert!(inside, "line {line} of {lines}: {error:?}");
    }
    environment.evaluate_condition(text, &VARS).ok();
});
