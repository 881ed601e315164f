//! What one render may use, and the containers it has to take apart afterwards.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{DictRef, ListRef, Value};
use crate::jinja::error::{Raise, Res};

/// Steps and sizes of one render.
#[derive(Debug)]
pub(crate) struct Budget {
    fuel: Cell<u64>,
    /// Longest string in bytes, and largest output.
    max_bytes: usize,
    /// Containers changed after they were made: only those can be part of a reference cycle.
    changed: RefCell<Vec<Value>>,
}

impl Budget {
    pub(crate) fn new(fuel: u64, max_bytes: usize) -> Self {
        Self { fuel: Cell::new(fuel), max_bytes, changed: RefCell::new(Vec::new()) }
    }

    /// Pays for `steps` units of work.
    pub(crate) fn spend(&self, steps: u64) -> Res<()> {
        if let Some(left) = self.fuel.get().checked_sub(steps) {
            self.fuel.set(left);
            Ok(())
        } else {
            self.fuel.set(0);
            Err(Raise::limit(
                "the template does too much work; look for a loop or recursion that never ends",
            ))
        }
    }

    /// Pays for a container of `len` elements.
    pub(crate) fn elements(&self, len: usize) -> Res<()> {
        self.spend(len as u64 + 1)
    }

    /// Pays for a string of `bytes` bytes, and checks that it is not too long.
    pub(crate) fn bytes(&self, bytes: usize) -> Res<()> {
        self.size(bytes)?;
        self.spend(bytes as u64 / 16)
    }

    /// Checks that a string that is being put together is not too long.
    pub(crate) fn size(&self, bytes: usize) -> Res<()> {
        if bytes > self.max_bytes {
            let limit = self.max_bytes;
            return Err(Raise::limit(format!("the text grows beyond {limit} bytes")));
        }
        Ok(())
    }

    /// Remembers a list that is being changed.
    pub(crate) fn list_changed(&self, list: &ListRef) {
        if !list.marked.replace(true) {
            self.changed.borrow_mut().push(Value::List(Rc::clone(list)));
        }
    }

    /// Remembers a dict or namespace that is being changed.
    pub(crate) fn dict_changed(&self, dict: &DictRef) {
        if !dict.marked.replace(true) {
            self.changed.borrow_mut().push(Value::Dict(Rc::clone(dict)));
        }
    }
}

impl Drop for Budget {
    /// Breaks reference cycles, which would never be freed otherwise.
    fn drop(&mut self) {
        for value in self.changed.take() {
            match value {
                Value::List(list) => list.clear(),
                Value::Dict(dict) => dict.clear(),
                _ => {}
            }
        }
    }
}
