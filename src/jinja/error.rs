//! What goes wrong in a template: the error users see, and the exception that travels through an evaluation.

use std::fmt;
use std::sync::Arc;

use super::ast::Pos;
use crate::diagnostic::{Class, Describe, Diagnostic, Excerpt, Position, SourceLocation};

/// A template that could not be compiled or rendered.
///
/// The message is Jinja2's own wherever Jinja2 has one. [`Describe`] adds the place, the source line and the chain of
/// includes and macro calls that led there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JinjaError {
    /// Template the problem is in: the name given to `render`, or what the loader made of an included name.
    pub template: Box<str>,
    /// Line and column in that template, when known. Column 1 also stands for the whole line.
    pub position: Option<Position>,
    /// Name of Python's exception class, for example `UndefinedError`.
    pub kind: &'static str,
    /// What is wrong, in Jinja2's words.
    pub message: String,
    /// The source line, without surrounding space; empty when not known.
    pub excerpt: Box<str>,
    /// The lines around the place, for showing them with a caret; none for texts that templates made themselves.
    pub lines: Option<Excerpt>,
    /// A defined name, key, filter or test that looks like the undefined one.
    pub near: Option<String>,
    /// Templates and lines through which the failing place was reached, innermost first, each once.
    pub trace: Vec<(String, usize)>,
    /// How many of these places, the failing one included and innermost first, lead back to themselves.
    pub cycle: usize,
}

impl JinjaError {
    /// True when the template used more than it may (steps, output, memory or nesting).
    pub fn is_limit(&self) -> bool {
        matches!(self.kind, LIMIT | RECURSION | "MemoryError")
    }
}

impl JinjaError {
    /// The places that lead back to themselves, in the order of the calls.
    fn described_cycle(&self) -> Option<String> {
        let own = (self.template.to_string(), self.position.map_or(1, |position| position.line));
        let places = std::iter::once(&own).chain(&self.trace).take(self.cycle);
        let mut places: Vec<String> =
            places.map(|(template, line)| format!("{template}, line {line}")).collect();
        places.reverse();
        let first = places.first()?.clone();
        Some(format!("again and again: {} → {first}", places.join(" → ")))
    }
}

impl fmt::Display for JinjaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, .. }) => {
                write!(f, "{}, line {line}: {}", self.template, self.message)
            }
            None => write!(f, "{}: {}", self.template, self.message),
        }
    }
}

impl std::error::Error for JinjaError {}

impl Describe for JinjaError {
    fn describe(&self) -> Diagnostic {
        let at = SourceLocation { file: self.template.to_string(), position: self.position };
        let mut diagnostic =
            Diagnostic::new(Class::Project, self.message.clone()).with_location(at);
        diagnostic.excerpt.clone_from(&self.lines);
        if let (None, Some(Position { line, .. }), false) =
            (&self.lines, self.position, self.excerpt.is_empty())
        {
            diagnostic.causes.push(format!("in line {line}: `{}`", self.excerpt));
        }
        if let Some(near) = &self.near {
            diagnostic.hints.push(format!("did you mean `{near}`?"));
        }
        if let Some(cycle) = self.described_cycle() {
            diagnostic.causes.push(cycle);
        }
        for (template, line) in self.trace.iter().skip(self.cycle.saturating_sub(1)) {
            diagnostic.causes.push(format!("reached from {template}, line {line}"));
        }
        diagnostic
    }
}

/// Begins the labels of texts that a template made and renders.
pub(crate) const MADE_TEXT: &str = "<text rendered in ";
/// Kind of an error raised by our own limits rather than by Python.
pub(crate) const LIMIT: &str = "LimitExceeded";
/// Kind of an error raised by nesting without end.
pub(crate) const RECURSION: &str = "RecursionError";
/// Internal kind: the evaluation needs a larger stack and is started again on one.
pub(crate) const NEEDS_STACK: &str = "NeedsStack";

/// Place in a named template.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) name: Arc<str>,
    pub(crate) source: Arc<str>,
    pub(crate) pos: Pos,
}

/// A Python exception under way. Boxed, so that results stay small.
#[derive(Debug)]
pub(crate) struct Raise(Box<Exception>);

#[derive(Debug)]
struct Exception {
    kind: &'static str,
    message: String,
    pos: Option<Pos>,
    at: Option<Location>,
    trace: Vec<Location>,
    cycle: usize,
    /// An undefined name whose neighbours were not looked at yet.
    unknown: Option<Arc<str>>,
    near: Option<String>,
    done: Option<Box<JinjaError>>,
}

/// Result of anything that may raise.
pub(crate) type Res<T> = Result<T, Raise>;

impl Raise {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Exception {
            kind,
            message: message.into(),
            pos: None,
            at: None,
            trace: Vec::new(),
            cycle: 0,
            unknown: None,
            near: None,
            done: None,
        }))
    }

    pub(crate) fn type_error(message: impl Into<String>) -> Self {
        Self::new("TypeError", message)
    }

    pub(crate) fn value_error(message: impl Into<String>) -> Self {
        Self::new("ValueError", message)
    }

    pub(crate) fn undefined(message: impl Into<String>) -> Self {
        Self::new("UndefinedError", message)
    }

    pub(crate) fn runtime(message: impl Into<String>) -> Self {
        Self::new("TemplateRuntimeError", message)
    }

    pub(crate) fn syntax(message: impl Into<String>, pos: Pos) -> Self {
        Self::new("TemplateSyntaxError", message).at_pos(pos)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(LIMIT, message)
    }

    pub(crate) fn recursion(message: impl Into<String>) -> Self {
        Self::new(RECURSION, message)
    }

    /// Says which name is undefined; [`Raise::with_near_names`] looks for one that was meant.
    pub(crate) fn about(mut self, name: &Arc<str>) -> Self {
        self.0.unknown = Some(Arc::clone(name));
        self
    }

    pub(crate) fn with_near_names(mut self, names: impl FnOnce() -> Vec<Arc<str>>) -> Self {
        match self.0.unknown.take() {
            Some(name) => self.with_near(&name, names().iter().map(|name| &**name)),
            None => self,
        }
    }

    pub(crate) fn with_near<'a>(
        mut self,
        name: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        // Of two letters everything is near.
        if name.chars().count() > 2 {
            self.0.near = crate::yaml::closest(name, names).map(str::to_owned);
        }
        self
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.0.kind
    }

    /// Sets the position inside the running template unless an inner expression already did.
    pub(crate) fn at_pos(mut self, pos: Pos) -> Self {
        self.0.pos.get_or_insert(pos);
        self
    }

    /// Names the template that was running; the innermost one stays, outer ones extend the trace.
    pub(crate) fn in_template(mut self, name: &Arc<str>, source: &Arc<str>, start: Pos) -> Self {
        const TRACE: usize = 16;
        let pos = self.0.pos.take().unwrap_or(start);
        let place = Location { name: Arc::clone(name), source: Arc::clone(source), pos };
        let Some(at) = &self.0.at else {
            self.0.at = Some(place);
            return self;
        };
        let same = |known: &Location| known.name == place.name && known.pos.line == pos.line;
        let known = std::iter::once(at).chain(&self.0.trace).position(same);
        match known {
            None if self.0.trace.len() < TRACE => self.0.trace.push(place),
            Some(first) if self.0.cycle == 0 && self.0.kind == RECURSION => self.begin_cycle(first),
            _ => {}
        }
        self
    }

    /// The place with index `first` was reached again: it stands for where the limit was met by chance.
    fn begin_cycle(&mut self, first: usize) {
        let mut places = self.0.trace.split_off(first.saturating_sub(1));
        if first > 0 {
            self.0.at = Some(places.remove(0));
        }
        self.0.trace = places;
        self.0.cycle = self.0.trace.len() + 1;
    }

    /// An error that comes from another thread, with the place it already has.
    pub(crate) fn from_error(error: JinjaError) -> Self {
        let raise = Self::new(error.kind, "");
        Self(Box::new(Exception { done: Some(Box::new(error)), ..*raise.0 }))
    }

    pub(crate) fn into_error(self, template: &str) -> JinjaError {
        let Exception { kind, message, pos, at, trace, cycle, near, done, .. } = *self.0;
        if let Some(error) = done {
            return *error;
        }
        let position =
            |pos: Pos| Position { line: pos.line as usize, column: (pos.column as usize).max(1) };
        let mut error = JinjaError {
            template: Box::from(template),
            position: pos.map(position),
            kind,
            message,
            excerpt: Box::default(),
            lines: None,
            near,
            trace: trace.iter().map(|at| (at.name.to_string(), at.pos.line as usize)).collect(),
            cycle,
        };
        if let Some(at) = at {
            error.template = Box::from(&*at.name);
            error.position = Some(position(at.pos));
            // Texts that templates made may hold secret values.
            if !at.name.starts_with(MADE_TEXT) {
                let line = at.source.lines().nth((at.pos.line as usize).saturating_sub(1));
                error.excerpt = shorten(line.unwrap_or("").trim()).into();
                error.lines = Excerpt::around(&at.source, position(at.pos));
            }
        }
        error
    }
}

/// Keeps excerpts to one readable line.
fn shorten(line: &str) -> String {
    const WIDTH: usize = 160;
    if line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    line.chars().take(WIDTH).chain(['…']).collect()
}
