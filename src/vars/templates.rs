use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Context, RenderedFile};
use crate::{
    diagnostic::FieldPath,
    jinja::{self, JinjaError},
    tree::{self, SourceTree, TreeError},
};

/// Renders the texts that belong to one place of a source: knows where templates are searched (kluctl 2.28).
/// Cheap to clone.
#[derive(Clone)]
pub struct Templates {
    label: Option<Arc<str>>,
    search: Arc<SearchPath>,
    environment: jinja::Environment,
    options: jinja::Options,
}

/// The directories of a source in which templates and files are searched, first match wins.
pub(crate) struct SearchPath {
    tree: Arc<dyn SourceTree>,
    dirs: Vec<String>,
}

/// Separates, in the id of a template that was found in the search directories, the name it was found by from its path. Names
/// that it gives relative to itself are then searched again, as Kluctl does.
const FOUND_AS: char = '\0';

impl SearchPath {
    /// The file that a name leads to when it is looked up in the directories; names may lead up, but not out of the source.
    fn find(&self, name: &str) -> Option<String> {
        let candidates = self.dirs.iter().filter_map(|dir| tree::join(dir, name).ok());
        candidates.into_iter().find(|path| self.tree.is_file(path))
    }

    /// The id of the template that is found by this name, which does not lead up.
    fn search(&self, name: &str) -> Option<String> {
        let path = self.find(name)?;
        Some(format!("{name}{FOUND_AS}{path}"))
    }

    fn is_inside(&self, path: &str) -> bool {
        self.dirs.iter().any(|dir| is_below(path, dir))
    }
}

fn is_below(path: &str, dir: &str) -> bool {
    dir.is_empty() || path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

/// The path in a template's id.
fn path_of(id: &str) -> &str {
    id.split_once(FOUND_AS).map_or(id, |(_, path)| path)
}

impl jinja::Loader for SearchPath {
    fn resolve(&self, name: &str, parent: Option<&str>) -> Result<Option<String>, String> {
        if name.starts_with('/') {
            return Ok(None);
        }
        if name.starts_with("./") || name.starts_with("../") {
            // Without a file around it, `./` means nothing: the name is searched as if it were not there.
            let Some(parent) = parent else {
                let bare =
                    name.strip_prefix("./").filter(|bare| !bare.split('/').any(|p| p == ".."));
                return Ok(bare.and_then(|bare| self.search(bare)));
            };
            if let Some((parent_name, _)) = parent.split_once(FOUND_AS) {
                let joined = tree::join(tree::parent(parent_name), name);
                return Ok(joined.ok().and_then(|name| self.search(&name)));
            }
            let path = tree::join(tree::parent(parent), name).map_err(|error| error.to_string())?;
            return Ok((self.is_inside(&path) && self.tree.is_file(&path)).then_some(path));
        }
        if name.split('/').any(|part| part == "..") {
            return Ok(None);
        }
        Ok(self.search(name))
    }

    fn read(&self, id: &str) -> Result<Arc<[u8]>, String> {
        self.tree.read(path_of(id)).map_err(|error| error.to_string())
    }

    fn latest_commit(&self, id: &str) -> Result<Option<String>, String> {
        self.tree.latest_commit(path_of(id)).map_err(|error| error.to_string())
    }
}

/// Names templates by their paths.
fn with_paths(mut error: JinjaError) -> JinjaError {
    error.template = path_of(&error.template).into();
    for (template, _) in &mut error.trace {
        *template = path_of(template).to_owned();
    }
    error
}

impl Templates {
    /// Templates of a source, searched in `dirs` in this order. `label` names the source to the user when it is not the
    /// project's own.
    pub fn new(
        tree: Arc<dyn SourceTree>,
        label: Option<Arc<str>>,
        dirs: Vec<String>,
        options: &jinja::Options,
    ) -> Self {
        let search = Arc::new(SearchPath { tree, dirs });
        let loader: Arc<dyn jinja::Loader> = search.clone();
        let environment = jinja::Environment::new(loader, options.clone());
        Self { label, search, environment, options: options.clone() }
    }

    /// The same source with one more directory that is searched before all others.
    #[must_use]
    pub fn with_first_dir(&self, dir: &str) -> Self {
        let mut dirs = vec![dir.to_owned()];
        dirs.extend(self.search.dirs.iter().filter(|other| *other != dir).cloned());
        Self::new(self.search.tree.clone(), self.label.clone(), dirs, &self.options)
    }

    /// Another source with the same settings.
    #[must_use]
    pub fn of_source(
        &self,
        tree: Arc<dyn SourceTree>,
        label: Option<Arc<str>>,
        dirs: Vec<String>,
    ) -> Self {
        Self::new(tree, label, dirs, &self.options)
    }

    /// The source's files.
    pub fn tree(&self) -> &Arc<dyn SourceTree> {
        &self.search.tree
    }

    /// A file of the source with its text and what it was rendered to, for pointing into it.
    pub fn file(&self, path: &str, source: &str, rendered: &str) -> RenderedFile {
        RenderedFile::new(path, self.label.as_ref(), source, rendered)
    }

    /// The directories that are searched.
    pub fn dirs(&self) -> &[String] {
        &self.search.dirs
    }

    /// The file of this name in the directories that are searched.
    pub fn find(&self, name: &str) -> Option<String> {
        self.search.find(name)
    }

    /// Refuses a name that leads out of the source in one of the directories, by `..` or through a link.
    ///
    /// # Errors
    /// [`TreeError::Escapes`].
    pub fn check_inside(&self, name: &str) -> Result<(), TreeError> {
        for path in self.search.dirs.iter().filter_map(|dir| tree::join(dir, name).ok()) {
            if let Err(error @ TreeError::Escapes { .. }) = self.search.tree.kind(&path) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Renders a text; `file` names it in messages and is what relative includes start from. A text without `{` stays as
    /// it is, line ends included.
    ///
    /// # Errors
    /// What the template engine reports.
    pub fn render(&self, file: &str, text: &str, context: &Context) -> Result<String, JinjaError> {
        if !is_template(text) {
            return Ok(text.to_owned());
        }
        self.environment.render(file, text, context.for_templates()).map_err(with_paths)
    }

    /// Renders every string of a tree, mapping keys included. Results stay strings.
    ///
    /// # Errors
    /// The first problem in the order of the tree, with the path of the string.
    pub fn render_strings(
        &self,
        file: &str,
        value: Value,
        context: &Context,
    ) -> Result<Value, (FieldPath, JinjaError)> {
        self.render_tree(file, value, context, &FieldPath::root())
    }

    fn render_tree(
        &self,
        file: &str,
        value: Value,
        context: &Context,
        path: &FieldPath,
    ) -> Result<Value, (FieldPath, JinjaError)> {
        let render = |text: &str, path: &FieldPath| {
            self.render(file, text, context).map_err(|error| (path.clone(), error))
        };
        Ok(match value {
            Value::String(text) if is_template(&text) => Value::String(render(&text, path)?),
            Value::Array(items) => {
                let items = items.into_iter().enumerate();
                let items = items
                    .map(|(index, item)| self.render_tree(file, item, context, &path.child(index)));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Object(entries) => {
                let mut rendered = Map::new();
                for (key, value) in entries {
                    let path = path.child(key.as_str());
                    let value = self.render_tree(file, value, context, &path)?;
                    rendered.insert(render(&key, &path)?, value);
                }
                Value::Object(rendered)
            }
            other => other,
        })
    }

    /// Evaluates a `when` expression; an empty one is true.
    ///
    /// # Errors
    /// What the template engine reports, undefined names among it.
    pub fn is_true(&self, when: Option<&str>, context: &Context) -> Result<bool, JinjaError> {
        match when.unwrap_or_default() {
            "" | "True" => Ok(true),
            expression => self.environment.evaluate_condition(expression, context.for_templates()),
        }
    }
}

/// Whether a text can hold a template at all.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains('{')
}
