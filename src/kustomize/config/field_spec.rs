use std::sync::OnceLock;

use crate::kustomize::{
    decode::{Decode, Node, decoded},
    error::Result,
    id::Gvk,
};

/// One step of a field path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The field's name.
    pub name: String,
    /// Written with `[]`: the field is a list, and is never created.
    pub is_list: bool,
}

/// Which field of which kinds a transformer works on. Lists on the way are entered, their items all count.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldSpec {
    /// The kinds; empty parts mean any.
    pub gvk: Gvk,
    /// The path as written, `a/b/c`.
    pub path: String,
    /// Whether the field is created when it is missing.
    pub create: bool,
    /// Split when it is needed first: of all the specifications a build uses few.
    steps: OnceLock<Vec<Step>>,
}

impl PartialEq for FieldSpec {
    fn eq(&self, other: &Self) -> bool {
        (&self.gvk, &self.path, self.create) == (&other.gvk, &other.path, other.create)
    }
}

impl Eq for FieldSpec {}

impl FieldSpec {
    pub(crate) fn new(gvk: Gvk, path: impl Into<String>, create: bool) -> Self {
        Self { gvk, path: path.into(), create, steps: OnceLock::new() }
    }

    /// The path in steps.
    pub(crate) fn steps(&self) -> &[Step] {
        let step = |part: String| match part.strip_suffix("[]") {
            Some(name) => Step { name: name.to_owned(), is_list: true },
            None => Step { name: part, is_list: false },
        };
        self.steps.get_or_init(|| split_path(&self.path, '/').into_iter().map(step).collect())
    }
}

decoded! {
    pub(crate) struct Written {
        group: String = "group",
        version: String = "version",
        kind: String = "kind",
        path: String = "path",
        create: bool = "create",
    }
}

impl Decode for FieldSpec {
    fn decode(node: &Node<'_>) -> Result<Self> {
        let written = Written::decode(node)?;
        if written.path.is_empty() {
            return Err(node.place().refuse("a field specification needs a path"));
        }
        let gvk = Gvk { group: written.group, version: written.version, kind: written.kind };
        Ok(Self::new(gvk, written.path, written.create))
    }
}

/// Splits a path; a delimiter after `\` belongs to the name, and one leading delimiter is ignored.
pub(crate) fn split_path(path: &str, delimiter: char) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let path = if path.len() > 1 { path.strip_prefix(delimiter).unwrap_or(path) } else { path };
    for part in path.split(delimiter) {
        match parts.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(delimiter);
                last.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}
