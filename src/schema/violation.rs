use crate::diagnostic::FieldPath;

/// A rule between fields that a file breaks, found after it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field at fault, relative to the checked value.
    pub path: FieldPath,
    /// What is wrong.
    pub message: String,
    /// What would have been accepted.
    pub expected: String,
}

/// Collects violations while walking down a value.
#[derive(Debug, Default)]
pub struct Violations {
    found: Vec<Violation>,
}

impl Violations {
    /// Records one.
    pub fn add(
        &mut self,
        path: FieldPath,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.found.push(Violation { path, message: message.into(), expected: expected.into() });
    }

    /// What was found, in the order of the walk.
    pub fn into_vec(self) -> Vec<Violation> {
        self.found
    }
}
