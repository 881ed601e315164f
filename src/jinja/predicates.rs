//! Jinja2's tests (`is defined`, `is divisibleby(3)`, …) as one table.

use std::rc::Rc;

use num_traits::Zero;

use super::args::{Bound, Function, Run, Signature, Words};
use super::ast::{BinaryOp, CompareOp};
use super::error::Res;
use super::eval::Interp;
use super::eval::scope::Scope;
use super::filters;
use super::value::iter::Walk;
use super::value::repr::to_str;
use super::value::{Key, Object, Value, compare, ops};

/// The test with this name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    TABLE.iter().find(|(own, _)| *own == name).map(|(_, function)| function)
}

pub(crate) fn exists(name: &str) -> bool {
    find(name).is_some()
}

/// The names of all tests.
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

const fn one(name: &'static str, run: Run) -> Function {
    let signature = Some(Signature::new(name, &["value"], 1));
    Function { name, is_type: false, signature, run }
}

/// A test that asks the environment.
const fn registered(name: &'static str, run: Run) -> Function {
    let signature = Some(Signature::with_environment(name, &["value"], 1));
    Function { name, is_type: false, signature, run }
}

const CALLABLE: Function = Function {
    name: "callable",
    is_type: false,
    signature: Some(Signature::native("callable", &["obj"], 1, Words::One)),
    run: |_, _, args| Ok(is(args, is_callable)),
};

const fn two(name: &'static str, second: &'static [&'static str], run: Run) -> Function {
    let signature = Some(Signature::new(name, second, 2));
    Function { name, is_type: false, signature, run }
}

/// One of the operators of Python's module of that name.
const fn operator(name: &'static str, run: Run) -> Function {
    let signature = Some(Signature::native(name, &["a", "b"], 2, Words::Counted));
    Function { name, is_type: false, signature, run }
}

macro_rules! order {
    ($name:literal, $op:expr) => {
        operator(concat!("_operator.", $name), |it, _, args| {
            compare::order($op, args.get(0), args.get(1), &it.budget).map(Value::Bool)
        })
    };
}

static TABLE: &[(&str, Function)] = &[
    ("defined", one("test_defined", |_, _, args| Ok(Value::Bool(!args.get(0).is_undefined())))),
    ("undefined", one("test_undefined", |_, _, args| Ok(Value::Bool(args.get(0).is_undefined())))),
    ("none", one("test_none", |_, _, args| Ok(is(args, |value| matches!(value, Value::None))))),
    ("odd", one("test_odd", |it, _, args| remainder_is(it, args, 1))),
    ("even", one("test_even", |it, _, args| remainder_is(it, args, 0))),
    ("divisibleby", two("test_divisibleby", &["value", "num"], divisible)),
    ("filter", registered("test_filter", |_, _, args| names(args, filters::exists))),
    ("test", registered("test_test", |_, _, args| names(args, exists))),
    ("boolean", one("test_boolean", |_, _, args| Ok(is(args, |v| matches!(v, Value::Bool(_)))))),
    ("false", one("test_false", |_, _, args| Ok(is(args, |v| matches!(v, Value::Bool(false)))))),
    ("true", one("test_true", |_, _, args| Ok(is(args, |v| matches!(v, Value::Bool(true)))))),
    (
        "integer",
        one("test_integer", |_, _, args| {
            Ok(is(args, |value| matches!(value, Value::Int(_) | Value::Big(_))))
        }),
    ),
    ("float", one("test_float", |_, _, args| Ok(is(args, |v| matches!(v, Value::Float(_)))))),
    ("lower", one("test_lower", |it, _, args| cased(it, args, char::is_uppercase))),
    ("upper", one("test_upper", |it, _, args| cased(it, args, char::is_lowercase))),
    ("string", one("test_string", |_, _, args| Ok(is(args, |value| value.as_str().is_some())))),
    ("mapping", one("test_mapping", |_, _, args| Ok(is(args, |v| matches!(v, Value::Dict(_)))))),
    (
        "number",
        one("test_number", |_, _, args| {
            Ok(is(args, |value| super::value::number::Num::of(value).is_some()))
        }),
    ),
    ("sequence", one("test_sequence", |_, _, args| Ok(is(args, is_sequence)))),
    (
        "sameas",
        two("test_sameas", &["value", "other"], |_, _, args| {
            Ok(Value::Bool(args.get(0).is_same(args.get(1))))
        }),
    ),
    ("iterable", one("test_iterable", iterable)),
    ("callable", CALLABLE),
    ("escaped", one("test_escaped", |_, _, args| Ok(is(args, |v| matches!(v, Value::Markup(_)))))),
    (
        "in",
        two("test_in", &["value", "seq"], |it, _, args| {
            ops::contains(args.get(1), args.get(0), &it.budget).map(Value::Bool)
        }),
    ),
    ("==", operator("_operator.eq", equal)),
    ("eq", operator("_operator.eq", equal)),
    ("equalto", operator("_operator.eq", equal)),
    ("!=", operator("_operator.ne", differs)),
    ("ne", operator("_operator.ne", differs)),
    (">", order!("gt", CompareOp::Gt)),
    ("gt", order!("gt", CompareOp::Gt)),
    ("greaterthan", order!("gt", CompareOp::Gt)),
    ("ge", order!("ge", CompareOp::Ge)),
    (">=", order!("ge", CompareOp::Ge)),
    ("<", order!("lt", CompareOp::Lt)),
    ("lt", order!("lt", CompareOp::Lt)),
    ("lessthan", order!("lt", CompareOp::Lt)),
    ("<=", order!("le", CompareOp::Le)),
    ("le", order!("le", CompareOp::Le)),
];

fn is(args: &Bound, test: impl Fn(&Value) -> bool) -> Value {
    Value::Bool(test(args.get(0)))
}

fn names(args: &Bound, known: fn(&str) -> bool) -> Res<Value> {
    let name = args.get(0);
    Key::new(name)?;
    Ok(Value::Bool(name.as_str().is_some_and(|name| known(name))))
}

fn equal(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    compare::equals(args.get(0), args.get(1), &it.budget).map(Value::Bool)
}

fn differs(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    Ok(Value::Bool(!compare::equals(args.get(0), args.get(1), &it.budget)?))
}

fn remainder_is(it: &Interp<'_>, args: &Bound, wanted: i64) -> Res<Value> {
    let rest = ops::binary(BinaryOp::Mod, args.get(0), &Value::Int(2), &it.budget)?;
    compare::equals(&rest, &Value::Int(wanted), &it.budget).map(Value::Bool)
}

fn divisible(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let rest = ops::binary(BinaryOp::Mod, args.get(0), args.get(1), &it.budget)?;
    compare::equals(&rest, &Value::Int(i64::zero()), &it.budget).map(Value::Bool)
}

/// At least one cased character, and none of the wrong case.
fn cased(it: &Interp<'_>, args: &Bound, wrong: fn(char) -> bool) -> Res<Value> {
    let text = to_str(args.get(0), &it.budget)?;
    let any = text.chars().any(|c| c.is_lowercase() || c.is_uppercase());
    Ok(Value::Bool(any && !text.chars().any(wrong)))
}

fn is_sequence(value: &Value) -> bool {
    matches!(
        value,
        Value::Str(_)
            | Value::Markup(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Tuple(_)
            | Value::Dict(_)
            | Value::Range(_)
    )
}

fn is_callable(value: &Value) -> bool {
    match value {
        Value::Undefined(_) => true,
        Value::Object(object) => matches!(
            **object,
            Object::Function(_)
                | Object::Method(..)
                | Object::Macro(_)
                | Object::Loop(_)
                | Object::Block(_)
                | Object::Joiner(_)
        ),
        _ => false,
    }
}

fn iterable(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    match Walk::new(args.get(0)) {
        Ok(_) => Ok(Value::Bool(true)),
        Err(error) if error.kind() == "TypeError" => Ok(Value::Bool(false)),
        Err(error) => Err(error),
    }
}
