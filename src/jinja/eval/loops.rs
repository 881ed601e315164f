//! `for` loops and the `loop` variable.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::scope::{Scope, ScopeKind};
use super::{Flow, Interp, captured_value};
use crate::jinja::ast::For;
use crate::jinja::error::{Raise, Res};
use crate::jinja::value::iter::Walk;
use crate::jinja::value::object::same_values;
use crate::jinja::value::{Budget, Object, Value};

/// The `loop` variable.
#[derive(Debug)]
pub(crate) struct LoopState {
    walk: RefCell<Walk>,
    /// -1 before the first element.
    pub(crate) index0: Cell<i64>,
    length: Cell<Option<usize>>,
    before: RefCell<Option<Value>>,
    current: RefCell<Option<Value>>,
    /// The next element, when it was looked at already.
    after: RefCell<Option<Value>>,
    last_changed: RefCell<Option<Vec<Value>>>,
    depth0: i64,
    /// The loop to run again for `loop(…)`, and the scope around it.
    recursive: Option<(Arc<For>, Rc<Scope>)>,
}

impl LoopState {
    fn new(walk: Walk, depth0: i64, recursive: Option<(Arc<For>, Rc<Scope>)>) -> Self {
        Self {
            walk: RefCell::new(walk),
            index0: Cell::new(-1),
            length: Cell::new(None),
            before: RefCell::default(),
            current: RefCell::default(),
            after: RefCell::default(),
            last_changed: RefCell::default(),
            depth0,
            recursive,
        }
    }

    fn advance(&self) -> Res<Option<Value>> {
        let looked_at = self.after.take();
        let next = match looked_at {
            Some(value) => Some(value),
            None => self.walk.borrow_mut().next()?,
        };
        let Some(value) = next else { return Ok(None) };
        self.index0.set(self.index0.get() + 1);
        *self.before.borrow_mut() = self.current.replace(Some(value.clone()));
        Ok(Some(value))
    }

    fn peek(&self) -> Res<Option<Value>> {
        if self.after.borrow().is_none() {
            let next = self.walk.borrow_mut().next()?;
            *self.after.borrow_mut() = next;
        }
        Ok(self.after.borrow().clone())
    }

    pub(crate) fn length(&self) -> Res<usize> {
        if let Some(length) = self.length.get() {
            return Ok(length);
        }
        let known = self.walk.borrow().known_len();
        let rest = if let Some(rest) = known {
            rest
        } else {
            let mut items = Vec::new();
            while let Some(item) = self.walk.borrow_mut().next()? {
                items.push(item);
            }
            let rest = items.len();
            *self.walk.borrow_mut() = Walk::Items(items.into_iter());
            rest
        };
        let done = usize::try_from(self.index0.get() + 1).unwrap_or(0);
        let length = rest + done + usize::from(self.after.borrow().is_some());
        self.length.set(Some(length));
        Ok(length)
    }

    pub(crate) fn attribute(&self, name: &str) -> Res<Option<Value>> {
        let index0 = self.index0.get();
        let length = || Ok(i64::try_from(self.length()?).unwrap_or(i64::MAX));
        Ok(Some(match name {
            "index" => Value::Int(index0 + 1),
            "index0" => Value::Int(index0),
            "revindex" => Value::Int(length()? - index0),
            "revindex0" => Value::Int(length()? - index0 - 1),
            "first" => Value::Bool(index0 == 0),
            "last" => Value::Bool(self.peek()?.is_none()),
            "length" => Value::Int(length()?),
            "depth" => Value::Int(self.depth0 + 1),
            "depth0" => Value::Int(self.depth0),
            "previtem" => match (index0, self.before.borrow().clone()) {
                (1.., Some(value)) => value,
                _ => Value::undefined_hint("there is no previous item"),
            },
            "nextitem" => match self.peek()? {
                Some(value) => value,
                None => Value::undefined_hint("there is no next item"),
            },
            _ => return Ok(None),
        }))
    }

    pub(crate) fn cycle(&self, values: &[Value]) -> Res<Value> {
        if values.is_empty() {
            return Err(Raise::type_error("no items for cycling given"));
        }
        let index = usize::try_from(self.index0.get()).unwrap_or(0);
        Ok(values[index % values.len()].clone())
    }

    pub(crate) fn changed(&self, values: &[Value], budget: &Budget) -> Res<Value> {
        if same_values(&self.last_changed, values, budget)? {
            return Ok(Value::Bool(false));
        }
        *self.last_changed.borrow_mut() = Some(values.to_vec());
        Ok(Value::Bool(true))
    }
}

impl Interp<'_> {
    pub(super) fn exec_for(
        &mut self,
        scope: &Rc<Scope>,
        node: &Arc<For>,
        out: &mut String,
    ) -> Res<()> {
        let iterable = self.eval(scope, &node.iter)?;
        if node.recursive {
            let mut text = String::new();
            self.run_for(scope, node, &iterable, 0, &mut text)?;
            return self.write(out, &text);
        }
        self.run_for(scope, node, &iterable, 0, out)
    }

    /// `loop(iterable)` in a recursive loop.
    pub(super) fn call_loop(&mut self, state: &LoopState, iterable: &Value) -> Res<Value> {
        let Some((node, scope)) = &state.recursive else {
            return Err(Raise::type_error(
                "The loop must have the 'recursive' marker to be called recursively.",
            ));
        };
        let mut text = String::new();
        self.nested(|it| it.run_for(scope, node, iterable, state.depth0 + 1, &mut text))?;
        Ok(captured_value(text, scope.ctx.autoescape.get()))
    }

    fn run_for(
        &mut self,
        scope: &Rc<Scope>,
        node: &Arc<For>,
        iterable: &Value,
        depth: i64,
        out: &mut String,
    ) -> Res<()> {
        let located = |error: Raise| error.at_pos(node.iter.pos);
        let mut walk = Walk::new(iterable).map_err(located)?;
        if node.test.is_some() {
            walk = self.filter_walk(scope, node, walk)?;
        }
        let name: Arc<str> = "loop".into();
        let mut plain = None;
        let state = if node.extended {
            let recursive = node.recursive.then(|| (Arc::clone(node), Rc::clone(scope)));
            Some(Rc::new(Object::Loop(LoopState::new(walk, depth, recursive))))
        } else {
            plain = Some(walk);
            None
        };
        let mut inner = scope.inner(ScopeKind::Loop);
        // As in Jinja2, only an iteration that reaches the end of the body counts against `else`.
        let mut completed = false;
        loop {
            self.budget.spend(1)?;
            let next = match (state.as_deref(), &mut plain) {
                (Some(Object::Loop(state)), _) => state.advance(),
                (_, Some(walk)) => walk.next(),
                _ => Ok(None),
            };
            let Some(item) = next.map_err(located)? else { break };
            if Rc::strong_count(&inner) == 1 {
                inner.clear();
            } else {
                inner = scope.inner(ScopeKind::Loop);
            }
            self.unpack(&inner, &node.target, item, false)?;
            if let Some(state) = &state {
                inner.bind(&name, Value::Object(Rc::clone(state)));
            }
            match self.exec(&inner, &node.body, out)? {
                Flow::Next => completed = true,
                Flow::Continue => {}
                Flow::Break => break,
            }
        }
        if !completed && !node.else_body.is_empty() {
            self.exec(&scope.inner(ScopeKind::Other), &node.else_body, out)?;
        }
        Ok(())
    }

    /// The elements that pass the loop's `if`.
    fn filter_walk(&mut self, scope: &Rc<Scope>, node: &For, mut walk: Walk) -> Res<Walk> {
        let Some(test) = &node.test else { return Ok(walk) };
        let mut kept = Vec::new();
        let inner = scope.inner(ScopeKind::Other);
        while let Some(item) = walk.next()? {
            self.budget.spend(1)?;
            self.unpack(&inner, &node.target, item.clone(), false)?;
            let passes = self.eval(&inner, test)?;
            if passes.is_true().map_err(|error| error.at_pos(test.pos))? {
                kept.push(item);
            }
        }
        // Python filters with a generator, which has no length of its own.
        Ok(Walk::Items(kept.into_iter()))
    }
}
