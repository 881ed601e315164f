use std::fmt;

use crate::diagnostic::{Class, Describe, Diagnostic, FieldPath, Position, SourceLocation};

/// What is wrong with a YAML text, or with a value that is read into a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes are no text.
    #[error("{message}")]
    Encoding {
        /// What stands there.
        message: String,
    },
    /// The text is no YAML.
    #[error("invalid YAML: {message}")]
    Syntax {
        /// What the parser met.
        message: String,
        /// What to do about it, when that is known.
        hint: Option<String>,
    },
    /// A mapping has the same key twice.
    #[error("duplicate key \"{key}\"")]
    DuplicateKey {
        /// The key.
        key: String,
        /// Where it was first.
        first: Position,
    },
    /// A mapping key that cannot be a field name.
    #[error("{found} cannot be a mapping key")]
    Key {
        /// What is used as a key.
        found: &'static str,
        /// What to do about it, when that is known.
        hint: Option<&'static str>,
    },
    /// A value has no place in the JSON data model, or contradicts its tag.
    #[error("{message}")]
    Value {
        /// What is wrong with it.
        message: String,
    },
    /// An alias without an anchor, an anchor inside of itself, or too much expansion.
    #[error("{message}")]
    Alias {
        /// What is wrong with it.
        message: String,
    },
    /// A field that the type does not have.
    #[error("unknown field \"{name}\"")]
    UnknownField {
        /// The field as written.
        name: String,
        /// The fields there are, in their order of declaration.
        known: Vec<String>,
    },
    /// A required field is not there.
    #[error("required field \"{name}\" is missing")]
    MissingField {
        /// The field.
        name: String,
    },
    /// A value of the wrong type.
    #[error("expected {expected}, found {found}")]
    Type {
        /// What is accepted.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A rule of the type that is read; the text is the type's own.
    #[error("{message}")]
    Invalid {
        /// The type's message.
        message: String,
    },
}

/// A YAML text or value could not be read: what is wrong, in which file, where, and at which field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    problem: Problem,
    file: Option<String>,
    position: Option<Position>,
    field: Option<FieldPath>,
}

impl YamlError {
    pub(super) fn new(problem: Problem) -> Self {
        Self(Box::new(Inner { problem, file: None, position: None, field: None }))
    }

    pub(super) fn at(problem: Problem, position: Position) -> Self {
        Self(Box::new(Inner { problem, file: None, position: Some(position), field: None }))
    }

    /// Names the file, unless one is named.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Self {
        self.0.file.get_or_insert_with(|| file.to_owned());
        self
    }

    /// Names the field, unless one is named.
    #[must_use]
    pub fn at_field(mut self, field: FieldPath) -> Self {
        self.0.field.get_or_insert(field);
        self
    }

    pub(super) fn at_position(mut self, position: Option<Position>) -> Self {
        self.0.position = self.0.position.or(position);
        self
    }

    pub(super) fn has_field(&self) -> bool {
        self.0.field.is_some()
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// The field, as a path from the document's root, when the problem is with one.
    pub fn field(&self) -> Option<&FieldPath> {
        self.0.field.as_ref().filter(|field| !field.0.is_empty())
    }

    /// The file, with line and column as far as they are known.
    pub fn location(&self) -> Option<SourceLocation> {
        let file = self.0.file.clone()?;
        Some(SourceLocation { file, position: self.0.position })
    }

    /// Line and column, when known.
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }

    fn hints(&self) -> Vec<String> {
        match &self.0.problem {
            Problem::UnknownField { name, known } => {
                let near = super::suggest::closest(name, known.iter().map(String::as_str));
                match near {
                    Some(near) => vec![format!("did you mean `{near}`?")],
                    None if known.is_empty() => vec!["no fields are allowed here".to_owned()],
                    None => vec![format!("known fields: {}", known.join(", "))],
                }
            }
            Problem::DuplicateKey { first, .. } => {
                vec![format!("first defined at {}:{}", first.line, first.column)]
            }
            Problem::Syntax { hint, .. } => hint.iter().cloned().collect(),
            Problem::Key { hint, .. } => hint.iter().map(|hint| (*hint).to_owned()).collect(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for YamlError {
    /// `file:line:column: field: what is wrong (hint)`, as far as known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe().fmt(f)
    }
}

impl std::error::Error for YamlError {}

impl Describe for YamlError {
    fn describe(&self) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(Class::Project, self.0.problem.to_string());
        diagnostic.at = self.location();
        diagnostic.field = self.field().map(ToString::to_string);
        diagnostic.hints = self.hints();
        if let Problem::Type { expected, found } = &self.0.problem {
            diagnostic.message = format!("found {found}");
            diagnostic.expected = Some(expected.clone());
        }
        diagnostic
    }
}

impl serde::de::Error for YamlError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Problem::Invalid { message: message.to_string() })
    }

    fn invalid_type(found: serde::de::Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        let found = super::typed::describe_unexpected(found);
        Self::new(Problem::Type { expected: expected.to_string(), found })
    }

    fn invalid_value(found: serde::de::Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.iter().map(|name| (*name).to_owned()).collect();
        Self::new(Problem::UnknownField { name: field.to_owned(), known })
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Problem::Type {
            expected: super::typed::one_of(expected),
            found: format!("\"{variant}\""),
        })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Problem::MissingField { name: field.to_owned() })
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::custom(format_args!("field \"{field}\" is given twice, in different spellings"))
    }
}
