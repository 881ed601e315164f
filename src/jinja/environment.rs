//! The front door: environments, options and variables.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::ast::Template;
use super::compiled::Compiled;
use super::error::{JinjaError, NEEDS_STACK, Raise, Res};
use super::eval::{DEEP_STACK, Interp, Stack};
use super::value::frozen::FrozenMap;

/// Where templates and files come from. Names are resolved by the deployment code, which knows the search directories.
pub trait Loader: Send + Sync {
    /// The canonical id (path in the tree) of the file that `name` stands for, or `None` when there is none.
    ///
    /// `parent` is the id of the template that contains the statement; names that start with `./` or `../` are relative to
    /// it. It is absent for templates made from strings.
    ///
    /// # Errors
    /// A message for the user when the name must not be used at all.
    fn resolve(&self, name: &str, parent: Option<&str>) -> Result<Option<String>, String>;

    /// The bytes of the file with this id.
    ///
    /// # Errors
    /// A message for the user when the file cannot be read.
    fn read(&self, id: &str) -> Result<Arc<[u8]>, String>;

    /// The full name of the newest commit that changed the file with this id; `Ok(None)` when the files have no history.
    ///
    /// # Errors
    /// A message for the user when no commit has the file, or the history cannot be read.
    fn latest_commit(&self, id: &str) -> Result<Option<String>, String> {
        let _ = id;
        Ok(None)
    }
}

/// Receives the messages of `debug_print`.
pub type DebugSink = dyn Fn(&str) + Send + Sync;

/// What templates may use, and where the outside world is asked.
#[derive(Clone)]
pub struct Options {
    /// The time that `time.now()` gives.
    pub now: jiff::Timestamp,
    /// Steps one render may take, roughly one per expression and element.
    pub fuel: u64,
    /// Bytes that the output, and any string on the way, may have.
    pub max_output: usize,
    /// Receives what `debug_print` prints, after the render; without it the messages are dropped.
    pub debug: Option<Arc<DebugSink>>,
    /// Keeps compiled templates. Clones of the options share it.
    pub compiled: Compiled,
}

impl Options {
    /// Generous limits, no debug output, no templates compiled yet.
    pub fn new(now: jiff::Timestamp) -> Self {
        let compiled = Compiled::default();
        Self { now, fuel: 20_000_000, max_output: 64 << 20, debug: None, compiled }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("now", &self.now)
            .field("fuel", &self.fuel)
            .field("max_output", &self.max_output)
            .finish_non_exhaustive()
    }
}

/// Variables of a render, converted once and shared by any number of renders and threads.
#[derive(Debug, Clone, Default)]
pub struct Vars(Arc<FrozenMap>);

impl Vars {
    /// Variables from the members of a JSON object; anything else gives none.
    ///
    /// Whole floats below 1e21 become integers, as they do on kluctl's way through Go's JSON to Python.
    pub fn new(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Object(map) => Self(Arc::new(FrozenMap::new(map))),
            _ => Self::default(),
        }
    }
}

/// Compiles and renders templates. Cheap to clone; clones share what was loaded.
#[derive(Clone)]
pub struct Environment {
    shared: Arc<Shared>,
}

struct Shared {
    loader: Arc<dyn Loader>,
    options: Options,
    loaded: Mutex<Loaded>,
}

/// Templates that the loader gave, by id; emptied when they grow too large.
#[derive(Default)]
struct Loaded {
    templates: HashMap<Arc<str>, Arc<Template>>,
    bytes: usize,
}

/// Text of templates that stay loaded, in bytes.
const LOADED_BYTES: usize = 16 << 20;

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

/// A loader that knows no files.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Loader for NoFiles {
    fn resolve(&self, _name: &str, _parent: Option<&str>) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn read(&self, id: &str) -> Result<Arc<[u8]>, String> {
        Err(format!("{id} does not exist"))
    }
}

impl Environment {
    /// An environment with kluctl's settings: strict undefined, no trimming, loop controls, kluctl's functions.
    ///
    /// Files are read once per environment; make a new one when they change.
    pub fn new(loader: Arc<dyn Loader>, options: Options) -> Self {
        Self { shared: Arc::new(Shared { loader, options, loaded: Mutex::default() }) }
    }

    pub(crate) fn loader(&self) -> &dyn Loader {
        &*self.shared.loader
    }

    pub(crate) fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Renders the text of a file.
    ///
    /// `name` is the file's id: it names the file in messages, and relative names inside are resolved against it. A text
    /// without `{` comes back unchanged; any other loses one line break at its end, and its line breaks become `\n`.
    ///
    /// # Errors
    /// Syntax errors, undefined variables and everything else Jinja2 refuses, with place and source line; exceeded limits.
    pub fn render(&self, name: &str, text: &str, vars: &Vars) -> Result<String, JinjaError> {
        self.render_text(name, true, text, vars)
    }

    /// Renders a text that is not a file, such as a value inside of vars. `label` names it in messages; names in it cannot be
    /// relative.
    ///
    /// # Errors
    /// As [`Environment::render`].
    pub fn render_string(
        &self,
        label: &str,
        text: &str,
        vars: &Vars,
    ) -> Result<String, JinjaError> {
        self.render_text(label, false, text, vars)
    }

    /// Evaluates a `when` condition. The empty condition is true.
    ///
    /// # Errors
    /// As [`Environment::render`]; undefined names are errors.
    pub fn evaluate_condition(&self, expression: &str, vars: &Vars) -> Result<bool, JinjaError> {
        if expression.is_empty() || expression == "True" {
            return Ok(true);
        }
        let text = format!("{{% if {expression} %}}True{{% else %}}False{{% endif %}}");
        let result = self.render_string("<condition>", &text, vars);
        let fail = |message: String| JinjaError {
            template: "<condition>".into(),
            position: None,
            kind: "TemplateSyntaxError",
            message,
            excerpt: expression.into(),
            lines: None,
            near: None,
            trace: Vec::new(),
            cycle: 0,
        };
        match result {
            Ok(text) if text == "True" => Ok(true),
            Ok(text) if text == "False" => Ok(false),
            Ok(_) => Err(fail(format!("`{expression}` is not a single expression"))),
            Err(mut error) => {
                if &*error.template == "<condition>" {
                    error.excerpt = expression.into();
                    // The statement around it is ours.
                    error.lines = None;
                    if let Some(position) = error.position.as_mut().filter(|at| at.line == 1) {
                        position.column = position.column.saturating_sub("{% if ".len()).max(1);
                    }
                }
                Err(error)
            }
        }
    }

    fn render_text(
        &self,
        name: &str,
        is_file: bool,
        text: &str,
        vars: &Vars,
    ) -> Result<String, JinjaError> {
        if !text.contains('{') {
            return Ok(text.to_owned());
        }
        match self.render_on(Stack::Shallow, name, is_file, text, vars) {
            Err(error) if error.kind() == NEEDS_STACK => {
                self.render_on_thread(name, is_file, text, vars)
            }
            other => other,
        }
        .map_err(|error| error.into_error(name))
    }

    fn render_on(
        &self,
        stack: Stack,
        name: &str,
        is_file: bool,
        text: &str,
        vars: &Vars,
    ) -> Res<String> {
        let template = self.compile(name, is_file, text, stack == Stack::Deep)?;
        let mut interp = Interp::new(self, &vars.0, stack);
        let layer = std::rc::Rc::clone(&interp.layer);
        let result = interp.render(&template, &layer);
        let again = matches!(&result, Err(error) if error.kind() == NEEDS_STACK);
        if let (false, Some(sink)) = (again, &self.options().debug) {
            interp.debug.iter().for_each(|message| sink(message));
        }
        result
    }

    /// Starts again on a thread with a large stack, for the few templates that nest deeply.
    fn render_on_thread(&self, name: &str, is_file: bool, text: &str, vars: &Vars) -> Res<String> {
        thread::scope(|scope| {
            let spawned = thread::Builder::new()
                .name("template".to_owned())
                .stack_size(DEEP_STACK)
                .spawn_scoped(scope, || {
                    self.render_on(Stack::Deep, name, is_file, text, vars)
                        .map_err(|error| error.into_error(name))
                });
            let no_thread = || Raise::limit("the template nests too deeply for the memory at hand");
            let thread = spawned.map_err(|_| no_thread())?;
            thread.join().map_err(|_| no_thread())?.map_err(Raise::from_error)
        })
    }

    fn loaded(&self) -> std::sync::MutexGuard<'_, Loaded> {
        self.shared.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A template made from a text.
    pub(crate) fn compile(
        &self,
        name: &str,
        is_file: bool,
        text: &str,
        deep: bool,
    ) -> Res<Arc<Template>> {
        let name: Arc<str> = name.into();
        let code = self.options().compiled.get(&name, text, deep)?;
        Ok(Arc::new(Template { id: is_file.then(|| Arc::clone(&name)), name, code }))
    }

    /// The template in the file with this id.
    pub(crate) fn load(&self, id: &str, deep: bool) -> Res<Arc<Template>> {
        if let Some(template) = self.loaded().templates.get(id) {
            return Ok(Arc::clone(template));
        }
        let bytes =
            self.loader().read(id).map_err(|message| Raise::new("TemplateLoadError", message))?;
        let text = std::str::from_utf8(&bytes).map_err(|_| {
            Raise::new(
                "UnicodeDecodeError",
                format!("{id} is not UTF-8 text and cannot be a template"),
            )
        })?;
        let name: Arc<str> = id.into();
        let code = self.options().compiled.get(&name, text, deep)?;
        let template = Template { name: Arc::clone(&name), id: Some(Arc::clone(&name)), code };
        let template = Arc::new(template);
        let mut loaded = self.loaded();
        loaded.make_room(text.len());
        loaded.templates.insert(name, Arc::clone(&template));
        Ok(template)
    }
}

impl Loaded {
    fn make_room(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > LOADED_BYTES {
            *self = Self { bytes, ..Self::default() };
        }
    }
}
