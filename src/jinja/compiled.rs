//! Compiled templates, kept by their text.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::ast::Code;
use super::error::Res;
use super::parser;

/// Compiled templates by text, for any number of environments, runs and threads; clones share them.
///
/// What a text compiles to depends on nothing but the text, so an entry is never out of date. Losing one costs time only.
#[derive(Clone, Default)]
pub struct Compiled(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    codes: HashMap<Arc<str>, Arc<Code>>,
    bytes: usize,
}

/// Text whose templates are kept, in bytes; compiled they take some times as much. When it is reached, all are dropped.
const MAX_BYTES: usize = 2 << 20;

impl Compiled {
    /// The template of this text; `name` is for messages about what is wrong with it.
    pub(super) fn get(&self, name: &Arc<str>, text: &str, deep: bool) -> Res<Arc<Code>> {
        if let Some(code) = self.kept().codes.get(text) {
            return Ok(Arc::clone(code));
        }
        let code = Arc::new(parser::parse(name, text, deep)?);
        let key = if *code.source == *text { Arc::clone(&code.source) } else { text.into() };
        let mut kept = self.kept();
        if kept.bytes + text.len() > MAX_BYTES {
            *kept = Kept::default();
        }
        kept.bytes += text.len();
        kept.codes.insert(key, Arc::clone(&code));
        Ok(code)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept().codes.len()
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("bytes", &self.kept().bytes).finish_non_exhaustive()
    }
}
