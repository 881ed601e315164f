use std::fmt;

/// One step into a JSON-like tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A mapping key.
    Key(String),
    /// A list index, from 0.
    Index(usize),
}

impl From<&str> for Segment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A concrete path to one field, for example `metadata.labels["kluctl.io/tag-0"]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(pub Vec<Segment>);

impl FieldPath {
    /// The path of the root value.
    pub fn root() -> Self {
        Self::default()
    }

    /// This path extended by one step.
    #[must_use]
    pub fn child(&self, segment: impl Into<Segment>) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment.into());
        Self(segments)
    }

    /// The path without its last step; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, head) = self.0.split_last()?;
        Some(Self(head.to_vec()))
    }
}

impl<S: Into<Segment>> FromIterator<S> for FieldPath {
    fn from_iter<I: IntoIterator<Item = S>>(iter: I) -> Self {
        Self(iter.into_iter().map(Into::into).collect())
    }
}

/// Whether a key is printed bare. Single characters are bracketed, as kluctl's JSON paths have it.
fn is_plain_key(key: &str) -> bool {
    let mut chars = key.chars();
    let starts_well = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    starts_well && key.len() > 1 && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl fmt::Display for FieldPath {
    /// Kluctl's notation: plain keys joined by `.`, other keys as `["key"]` (led by `$` at the start), indexes as `[n]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if is_plain_key(key) => {
                    if i > 0 {
                        f.write_str(".")?;
                    }
                    f.write_str(key)?;
                }
                Segment::Key(key) => {
                    if i == 0 {
                        f.write_str("$")?;
                    }
                    let quote = if key.contains('"') { '\'' } else { '"' };
                    write!(f, "[{quote}{key}{quote}]")?;
                }
                Segment::Index(index) => {
                    if i == 0 {
                        f.write_str("$")?;
                    }
                    write!(f, "[{index}]")?;
                }
            }
        }
        Ok(())
    }
}
