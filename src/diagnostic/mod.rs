//! Errors as data: what went wrong, where, what was expected and what to do next.
//!
//! Modules keep their own `thiserror` enums and lift them to a [`Diagnostic`] through [`Describe`]; each front (command
//! line, controller) formats diagnostics at one place.

mod class;
mod excerpt;
mod field_path;
mod location;

pub use class::Class;
pub use excerpt::Excerpt;
pub use field_path::{FieldPath, Segment};
pub use location::{Position, SourceLocation};

use std::fmt;

/// A problem described for the person who must fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Who has to act, and how soon a retry makes sense.
    pub class: Class,
    /// What is wrong, in one sentence without a leading "error:".
    pub message: String,
    /// File, line and column, when the problem is in a file.
    pub at: Option<SourceLocation>,
    /// The lines around `at`, when they can be shown.
    pub excerpt: Option<Excerpt>,
    /// Path of the offending field, for example `spec.args.replicas`.
    pub field: Option<String>,
    /// The Kubernetes object concerned, as `namespace/Kind/name`.
    pub object: Option<String>,
    /// What would have been accepted.
    pub expected: Option<String>,
    /// Next steps, most useful first.
    pub hints: Vec<String>,
    /// Messages of the underlying errors, outermost first.
    pub causes: Vec<String>,
}

impl Diagnostic {
    /// A diagnostic with only a class and a message; the `with_*` methods add what is known.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            at: None,
            excerpt: None,
            field: None,
            object: None,
            expected: None,
            hints: Vec::new(),
            causes: Vec::new(),
        }
    }

    /// Adds the place in a file.
    #[must_use]
    pub fn with_location(mut self, at: SourceLocation) -> Self {
        self.at = Some(at);
        self
    }

    /// Adds the lines around the place given before; `text` is the file as the user wrote it.
    #[must_use]
    pub fn with_excerpt_of(mut self, text: &str) -> Self {
        let position = self.at.as_ref().and_then(|at| at.position);
        self.excerpt = position.and_then(|position| Excerpt::around(text, position));
        self
    }

    /// Adds the path of the offending field.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Adds the Kubernetes object concerned.
    #[must_use]
    pub fn with_object(mut self, object: impl Into<String>) -> Self {
        self.object = Some(object.into());
        self
    }

    /// Adds what would have been accepted.
    #[must_use]
    pub fn with_expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Appends a next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Appends the messages of `error` and its sources, outermost first.
    #[must_use]
    pub fn with_cause(mut self, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(cause) = next {
            let text = cause.to_string();
            if self.causes.last() != Some(&text) {
                self.causes.push(text);
            }
            next = cause.source();
        }
        self
    }
}

impl fmt::Display for Diagnostic {
    /// One line: `file:line:column: field: message, expected …: cause`; hints follow in parentheses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{at}: ")?;
        }
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, ", expected {expected}")?;
        }
        for cause in &self.causes {
            write!(f, ": {cause}")?;
        }
        if !self.hints.is_empty() {
            write!(f, " ({})", self.hints.join("; "))?;
        }
        Ok(())
    }
}

/// Lifts a module's error to a [`Diagnostic`].
pub trait Describe {
    /// The error as data for the fronts.
    fn describe(&self) -> Diagnostic;
}

#[cfg(test)]
mod tests;
