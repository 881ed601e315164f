//! The evaluator: walks the syntax tree of compiled templates.

pub(super) mod access;
mod expr;
pub(super) mod loops;
pub(super) mod macros;
pub(super) mod modules;
pub(super) mod scope;
mod stmt;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use scope::{Context, Globals, Layer, Scope};

use super::ast::{Pos, Template};
use super::environment::Environment;
use super::error::{NEEDS_STACK, Raise, Res};
use super::value::frozen::FrozenMap;
use super::value::object::Module;
use super::value::{Budget, Object, Value};

/// How deep evaluation may nest on the caller's own stack.
const SHALLOW: usize = 48;
/// How deep it may nest on a stack of [`DEEP_STACK`] bytes.
const DEEP: usize = 4000;
/// Stack for the few templates that nest deeply.
pub(crate) const DEEP_STACK: usize = 256 << 20;

/// Whether the current thread was made for deep evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stack {
    Shallow,
    Deep,
}

/// How a statement list ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
}

/// One render.
pub(crate) struct Interp<'e> {
    pub(crate) env: &'e Environment,
    pub(crate) budget: Budget,
    pub(crate) layer: Rc<Layer>,
    stack: Stack,
    depth: usize,
    /// Modules imported without context, made once per template.
    modules: HashMap<Arc<str>, Rc<Object>>,
    contexts: Vec<Rc<Context>>,
    captured: Vec<Rc<Scope>>,
    /// Messages of `debug_print`, handed out when the render has ended.
    pub(crate) debug: Vec<String>,
}

impl<'e> Interp<'e> {
    pub(crate) fn new(env: &'e Environment, vars: &Arc<FrozenMap>, stack: Stack) -> Self {
        let options = env.options();
        Self {
            env,
            budget: Budget::new(options.fuel, options.max_output),
            layer: Rc::new(Layer::Globals(Globals::new(Arc::clone(vars)))),
            stack,
            depth: 0,
            modules: HashMap::new(),
            contexts: Vec::new(),
            captured: Vec::new(),
            debug: Vec::new(),
        }
    }

    pub(crate) fn has_deep_stack(&self) -> bool {
        self.stack == Stack::Deep
    }

    /// Renders a template in a new context on top of `layer`.
    pub(crate) fn render(&mut self, template: &Arc<Template>, layer: &Rc<Layer>) -> Res<String> {
        let ctx = self.context(template, Rc::clone(layer));
        let mut out = String::new();
        self.run_root(template, &ctx, &mut out)?;
        Ok(out)
    }

    pub(crate) fn context(&mut self, template: &Arc<Template>, layer: Rc<Layer>) -> Rc<Context> {
        let ctx = Context::new(template, layer);
        self.contexts.push(Rc::clone(&ctx));
        ctx
    }

    /// Runs `work` one level deeper.
    fn nested<T>(&mut self, work: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let limit = if self.stack == Stack::Deep { DEEP } else { SHALLOW };
        if self.depth >= limit {
            return Err(if self.stack == Stack::Deep {
                Raise::recursion(
                    "maximum recursion depth exceeded; look for a template or macro that calls itself",
                )
            } else {
                Raise::new(NEEDS_STACK, "")
            });
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    fn write(&mut self, out: &mut String, text: &str) -> Res<()> {
        self.budget.size(out.len() + text.len())?;
        self.budget.spend(text.len() as u64 / 16)?;
        out.push_str(text);
        Ok(())
    }

    /// Adds the running template to an error that leaves it.
    fn leave<T>(result: Res<T>, template: &Template, start: Pos) -> Res<T> {
        result.map_err(|error| error.in_template(&template.name, &template.code.source, start))
    }

    pub(crate) fn module_value(module: Module) -> Rc<Object> {
        Rc::new(Object::Module(module))
    }
}

impl Drop for Interp<'_> {
    /// Breaks the cycles between scopes and the macros defined in them.
    fn drop(&mut self) {
        for ctx in self.contexts.drain(..) {
            let _vars = ctx.vars.take();
            let _blocks = ctx.blocks.take();
        }
        for scope in self.captured.drain(..) {
            scope.clear();
        }
    }
}

/// The text of a block of statements as a value: safe when the template escapes.
fn captured_value(text: String, escapes: bool) -> Value {
    if escapes { Value::Markup(text.into()) } else { Value::str(text) }
}
