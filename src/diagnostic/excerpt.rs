use super::Position;

/// A few lines of a text around a place in it, for showing them with a caret.
///
/// Only made from files as the user wrote them: rendered text may hold secret values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Number of the first line, from 1.
    pub first_line: usize,
    /// The lines, without line ends.
    pub lines: Vec<String>,
}

impl Excerpt {
    /// How many lines are shown above and below the place.
    const CONTEXT: (usize, usize) = (2, 1);
    /// Longer lines are cut: minified files would fill the terminal.
    const MAX_COLUMNS: usize = 240;

    /// The lines of `text` around `position`; `None` when the text has no such line.
    pub fn around(text: &str, position: Position) -> Option<Self> {
        let line_count = text.lines().count();
        if position.line == 0 || position.line > line_count {
            return None;
        }
        let first_line = position.line.saturating_sub(Self::CONTEXT.0).max(1);
        let last_line = (position.line + Self::CONTEXT.1).min(line_count);
        let lines = text.lines().skip(first_line - 1).take(last_line + 1 - first_line);
        let cut = |line: &str| line.chars().take(Self::MAX_COLUMNS).collect();
        Some(Self { first_line, lines: lines.map(cut).collect() })
    }
}
