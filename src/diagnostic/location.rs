use std::fmt;

/// A place in a text, both parts counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// The place of a byte in a text; columns of what is no UTF-8 are approximate.
    pub fn of_byte(text: &[u8], offset: usize) -> Self {
        let before = &text[..offset.min(text.len())];
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = before.split(|byte| *byte == b'\n').count();
        Self { line, column: String::from_utf8_lossy(&before[start..]).chars().count() + 1 }
    }
}

/// A place in a file: `deployment.yaml:14:5`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    /// Path as the user knows it, relative to the project's source root.
    pub file: String,
    /// Line and column, when known.
    pub position: Option<Position>,
}

impl SourceLocation {
    /// The file as a whole.
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), position: None }
    }

    /// A line and column (both from 1) in a file.
    pub fn new(file: impl Into<String>, line: usize, column: usize) -> Self {
        Self { file: file.into(), position: Some(Position { line, column }) }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, column }) => write!(f, "{}:{line}:{column}", self.file),
            None => f.write_str(&self.file),
        }
    }
}
