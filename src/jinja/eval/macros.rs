//! Macros and call blocks.

use std::rc::Rc;
use std::sync::Arc;

use super::scope::Scope;
use super::{Interp, captured_value};
use crate::jinja::args::Args;
use crate::jinja::ast::Macro;
use crate::jinja::error::{Raise, Res};
use crate::jinja::value::repr::str_repr;
use crate::jinja::value::{Dict, Object, Value};

/// A macro with the scope it was defined in.
#[derive(Debug)]
pub(crate) struct MacroValue {
    pub(crate) def: Arc<Macro>,
    scope: Rc<Scope>,
    /// Whether text was escaped where the macro was defined.
    escapes: bool,
}

impl MacroValue {
    pub(crate) fn attribute(&self, name: &str) -> Option<Value> {
        let def = &self.def;
        Some(match name {
            "name" => def.name.clone().map_or(Value::None, Value::Str),
            "arguments" => Value::tuple(def.params.iter().cloned().map(Value::Str).collect()),
            "catch_kwargs" => Value::Bool(def.uses_kwargs),
            "catch_varargs" => Value::Bool(def.uses_varargs),
            "caller" => Value::Bool(def.uses_caller),
            "explicit_caller" => Value::Bool(def.params.iter().any(|param| **param == *"caller")),
            _ => return None,
        })
    }
}

impl Interp<'_> {
    pub(super) fn make_macro(&mut self, scope: &Rc<Scope>, def: &Arc<Macro>) -> Value {
        if !self.captured.last().is_some_and(|last| Rc::ptr_eq(last, scope)) {
            self.captured.push(Rc::clone(scope));
        }
        let escapes = scope.ctx.autoescape.get();
        Value::object(Object::Macro(MacroValue {
            def: Arc::clone(def),
            scope: Rc::clone(scope),
            escapes,
        }))
    }

    pub(super) fn call_macro(
        &mut self,
        value: &MacroValue,
        args: Args,
        escapes: bool,
    ) -> Res<Value> {
        let def = &value.def;
        let scope = value.scope.captured();
        // Wrong arguments are the caller's mistake, in the caller's line.
        let missing = bind_arguments(def, &scope, args)?;
        let before = scope.ctx.autoescape.replace(value.escapes);
        let text = self.nested(|it| {
            let result = it.run_macro(value, &scope, missing);
            Self::leave(result, &value.scope.template, def.pos)
        });
        scope.ctx.autoescape.set(before);
        let text = text?;
        Ok(captured_value(text, escapes))
    }

    fn run_macro(
        &mut self,
        value: &MacroValue,
        scope: &Rc<Scope>,
        missing: Vec<usize>,
    ) -> Res<String> {
        let def = &value.def;
        for index in missing {
            let name = &def.params[index];
            let first_default = def.params.len() - def.defaults.len();
            let default = if let Some(at) = index.checked_sub(first_default) {
                self.eval(scope, &def.defaults[at])?
            } else {
                let name = str_repr(name);
                Value::undefined_hint(format!("parameter {name} was not provided"))
            };
            scope.bind(name, default);
        }
        self.capture(scope, &def.body)
    }
}

/// Binds what was given and returns the parameters that were not.
fn bind_arguments(def: &Macro, scope: &Scope, args: Args) -> Res<Vec<usize>> {
    let Args { pos, mut kw } = args;
    let own = def.name.as_ref().map_or_else(|| "None".to_owned(), |name| str_repr(name));
    let mut take = |name: &str| {
        let index = kw.iter().position(|(key, _)| **key == *name)?;
        Some(kw.remove(index).1)
    };
    let given = pos.len();
    let mut rest = pos.into_iter();
    let mut missing = Vec::new();
    let mut found_caller = false;
    for (index, name) in def.params.iter().enumerate() {
        let value = if index < given { rest.next() } else { take(name) };
        found_caller |= **name == *"caller";
        match value {
            Some(value) => scope.bind(name, value),
            None => missing.push(index),
        }
    }
    if def.uses_caller && !found_caller {
        let caller = take("caller").filter(|caller| !matches!(caller, Value::None));
        let caller = caller.unwrap_or_else(|| Value::undefined_hint("No caller defined"));
        scope.bind(&"caller".into(), caller);
    }
    if def.uses_kwargs {
        scope.bind(&"kwargs".into(), Value::dict(Dict::from_pairs(kw)));
    } else if let Some((name, _)) = kw.first() {
        if kw.iter().any(|(key, _)| **key == *"caller") {
            return Err(Raise::type_error(format!(
                "macro {own} was invoked with two values for the special caller argument. This is \
                 most likely a bug."
            )));
        }
        let name = str_repr(name);
        return Err(Raise::type_error(format!("macro {own} takes no keyword argument {name}")));
    }
    if def.uses_varargs {
        scope.bind(&"varargs".into(), Value::tuple(rest.collect()));
    } else if given > def.params.len() {
        let count = def.params.len();
        return Err(Raise::type_error(format!(
            "macro {own} takes not more than {count} argument(s)"
        )));
    }
    Ok(missing)
}
