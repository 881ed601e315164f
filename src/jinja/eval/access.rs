//! Attributes, subscripts and calls.

use std::rc::Rc;
use std::sync::Arc;

use super::Interp;
use super::scope::Scope;
use crate::jinja::args::Args;
use crate::jinja::error::{Raise, Res};
use crate::jinja::methods;
use crate::jinja::value::repr::repr;
use crate::jinja::value::{Missing, Object, Value, index};

impl Interp<'_> {
    /// `value[index]`: the element first, then the attribute.
    pub(crate) fn get_item(&mut self, value: &Value, subscript: &Value) -> Res<Value> {
        if let Some(found) = index::item(value, subscript)? {
            return Ok(found);
        }
        if let Some(name) = subscript.as_str() {
            if let Some(found) = attribute(value, name)? {
                return Ok(found);
            }
            let missing = Missing::attribute(value, name);
            return Ok(Value::undefined(missing));
        }
        let element = repr(subscript, &self.budget)?;
        Ok(Value::undefined(Missing::Element(value.object_type(), element)))
    }

    /// Calls whatever can be called.
    pub(crate) fn call(&mut self, scope: &Rc<Scope>, callee: &Value, args: Args) -> Res<Value> {
        self.budget.spend(1)?;
        match callee {
            Value::Undefined(undefined) => undefined.raise(),
            Value::Object(object) => self.call_object(scope, object, args),
            other => Err(not_callable(other.type_name())),
        }
    }

    fn call_object(&mut self, scope: &Rc<Scope>, object: &Rc<Object>, args: Args) -> Res<Value> {
        let escapes = scope.ctx.autoescape.get();
        match &**object {
            Object::Function(function) => {
                let bound = args.bind(function.signature.as_ref())?;
                (function.run)(self, scope, &bound)
            }
            Object::Method(value, name) => self.call_method(scope, value, name, args),
            Object::Macro(value) => self.call_macro(value, args, escapes),
            Object::Loop(state) => match args.pos.first() {
                Some(iterable) => self.call_loop(state, iterable),
                None => Err(Raise::type_error(
                    "LoopContext.__call__() missing 1 required positional argument: 'iterable'",
                )),
            },
            Object::Block(block) => {
                let text = self.call_block(block)?;
                Ok(super::captured_value(text, escapes))
            }
            Object::Joiner(joiner) => Ok(if joiner.used.replace(true) {
                joiner.separator.clone()
            } else {
                Value::str("")
            }),
            other => Err(not_callable(other.type_name())),
        }
    }

    pub(super) fn call_method(
        &mut self,
        scope: &Rc<Scope>,
        value: &Value,
        name: &str,
        args: Args,
    ) -> Res<Value> {
        match value {
            Value::Object(object) if object.has_method(name) => {
                object.call_method(name, &args, &self.budget)
            }
            _ => methods::call(self, scope, value, name, args),
        }
    }
}

/// `value.name`: the attribute first, then the element.
pub(crate) fn get_attribute(value: &Value, name: &Arc<str>) -> Res<Value> {
    if let Some(found) = attribute(value, name)? {
        return Ok(found);
    }
    let element = match value {
        Value::Dict(dict) => dict.get_str(name),
        Value::Object(object) => object.item(name),
        _ => None,
    };
    Ok(element.unwrap_or_else(|| Value::undefined(Missing::attribute(value, name))))
}

/// An attribute as Python's `getattr` finds it; methods come back bound.
fn attribute(value: &Value, name: &Arc<str>) -> Res<Option<Value>> {
    match value {
        Value::Undefined(undefined) => undefined.raise(),
        Value::Namespace(dict) => Ok(dict.get_str(name)),
        Value::Object(object) => {
            if let Some(found) = object.attribute(name)? {
                return Ok(Some(found));
            }
            let method = object.has_method(name);
            Ok(method.then(|| Value::object(Object::Method(value.clone(), Arc::clone(name)))))
        }
        _ => {
            if let Some(found) = methods::property(value, name) {
                return Ok(Some(found));
            }
            let method = methods::exists(value, name);
            Ok(method.then(|| Value::object(Object::Method(value.clone(), Arc::clone(name)))))
        }
    }
}

/// True when `value.name(…)` is a method call.
pub(super) fn is_method(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(object) => object.has_method(name),
        Value::Namespace(_) | Value::Undefined(_) => false,
        other => methods::exists(other, name),
    }
}

fn not_callable(name: &str) -> Raise {
    Raise::type_error(format!("'{name}' object is not callable"))
}
