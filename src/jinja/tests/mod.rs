mod environment;
mod limits;
mod replay;

use std::sync::Arc;

use crate::jinja::{Environment, JinjaError, Loader, NoFiles, Options, Vars};

fn options() -> Options {
    Options::new("2024-05-06T07:08:09.123456789Z".parse().unwrap())
}

fn render(text: &str, vars: &serde_json::Value) -> Result<String, JinjaError> {
    let environment = Environment::new(Arc::new(NoFiles), options());
    environment.render("test.yaml", text, &Vars::new(vars))
}

/// Files from memory; names that start with a dot are relative to the template they stand in.
struct Files(Vec<(&'static str, &'static str)>);

impl Loader for Files {
    fn resolve(&self, name: &str, parent: Option<&str>) -> Result<Option<String>, String> {
        let mut path = name.to_owned();
        if name.starts_with('.') {
            let Some(parent) = parent else { return Ok(None) };
            let dir = parent.rsplit_once('/').map_or("", |(dir, _)| dir);
            path = crate::tree::join(dir, name).map_err(|error| error.to_string())?;
        }
        Ok(self.0.iter().any(|(own, _)| *own == path).then_some(path))
    }

    fn read(&self, id: &str) -> Result<Arc<[u8]>, String> {
        let found = self.0.iter().find(|(own, _)| *own == id);
        found.map(|(_, text)| text.as_bytes().into()).ok_or_else(|| format!("{id} is gone"))
    }
}

fn with_files(files: &[(&'static str, &'static str)]) -> Environment {
    Environment::new(Arc::new(Files(files.to_vec())), options())
}
