//! Filters on numbers.

use std::rc::Rc;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use crate::jinja::args::Bound;
use crate::jinja::ast::BinaryOp;
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::value::number::{Num, parse_float, parse_int, to_float, to_int, truncate};
use crate::jinja::value::{Value, ops};

pub(super) fn int(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let value = args.get(0);
    let fallback = || args.given(1).cloned().unwrap_or(Value::Int(0));
    if let Some(text) = value.as_str() {
        // Any other base is a ValueError in Python, which this filter takes for a text that is no number.
        let base = u32::try_from(args.int(2, 10)?).ok();
        let base = base.filter(|base| *base == 0 || (2..=36).contains(base));
        if let Some(number) = base.and_then(|base| parse_int(text, base)) {
            return Ok(number);
        }
        return Ok(match parse_float(text).map(truncate) {
            Some(Ok(number)) => number,
            _ => fallback(),
        });
    }
    match to_int(value) {
        Err(error) if matches!(error.kind(), "TypeError" | "ValueError") => Ok(fallback()),
        other => other,
    }
}

pub(super) fn float(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    match to_float(args.get(0)) {
        Ok(number) => Ok(Value::Float(number)),
        Err(error) if matches!(error.kind(), "TypeError" | "ValueError") => {
            Ok(args.given(1).cloned().unwrap_or(Value::Float(0.0)))
        }
        Err(error) => Err(error),
    }
}

pub(super) fn abs(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let value = args.get(0);
    match Num::of(value) {
        Some(Num::Int(number)) => Ok(Value::big(BigInt::from(number).abs())),
        Some(Num::Big(number)) => Ok(Value::big(number.abs())),
        Some(Num::Float(number)) => Ok(Value::Float(number.abs())),
        None => {
            if value.is_undefined() {
                return Err(Raise::type_error("bad operand type for abs(): 'StrictUndefined'"));
            }
            let name = value.type_name();
            Err(Raise::type_error(format!("bad operand type for abs(): '{name}'")))
        }
    }
}

pub(super) fn round(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let value = args.get(0);
    let method = args.given(2).map_or(Some("common"), |method| method.as_str().map(|text| &**text));
    let Some(method) = method.filter(|method| matches!(*method, "common" | "ceil" | "floor"))
    else {
        let message = "method must be common, ceil or floor";
        return Err(Raise::new("FilterArgumentError", message));
    };
    if let Value::Undefined(undefined) = value {
        return undefined.raise();
    }
    let Some(number) = Num::of(value) else {
        let name = value.type_name();
        if method != "common" {
            ops::binary(BinaryOp::Mul, value, &Value::Int(1), &it.budget)?;
            return Err(Raise::type_error(format!("must be real number, not {name}")));
        }
        return Err(Raise::type_error(format!("type {name} doesn't define __round__ method")));
    };
    let precision = if args.optional(1).is_some() { args.int(1, 0)? } else { 0 };
    if method == "common" {
        return Ok(match number {
            Num::Float(float) => Value::Float(round_float(float, precision)),
            whole if precision >= 0 => whole.into_value(),
            whole => round_whole(&whole, precision)?,
        });
    }
    let factor = 10_f64.powi(i32::try_from(precision.clamp(-400, 400)).unwrap_or(0));
    let scaled = number.to_f64()? * factor;
    let rounded = if method == "ceil" { scaled.ceil() } else { scaled.floor() };
    Ok(Value::Float(rounded / factor))
}

/// `round(float, digits)`: to the nearest decimal, ties to even, decided on the exact value.
fn round_float(value: f64, precision: i64) -> f64 {
    if !value.is_finite() {
        return value;
    }
    if let Ok(digits) = usize::try_from(precision) {
        if digits > 340 {
            return value;
        }
        return format!("{value:.digits$}").parse().unwrap_or(value);
    }
    let factor = 10_f64.powi(i32::try_from(-precision.max(-400)).unwrap_or(400));
    let scaled = value / factor;
    let floor = scaled.floor();
    let nearest = match scaled - floor {
        diff if diff > 0.5 => floor + 1.0,
        diff if diff < 0.5 => floor,
        _ if floor % 2.0 == 0.0 => floor,
        _ => floor + 1.0,
    };
    nearest * factor
}

fn round_whole(number: &Num, precision: i64) -> Res<Value> {
    let value = number.to_f64()?;
    if precision < -300 {
        return Ok(Value::Int(0));
    }
    let exact = match number {
        Num::Int(value) => BigInt::from(*value),
        Num::Big(value) => value.clone(),
        Num::Float(_) => return truncate(value),
    };
    let digits = u32::try_from(-precision).unwrap_or(0);
    let unit = BigInt::from(10).pow(digits);
    let rest = ((&exact % &unit) + &unit) % &unit;
    let floor = &exact - &rest;
    let double = &rest * 2;
    let odd = (&floor / &unit) % 2 != BigInt::from(0);
    let up = double > unit || (double == unit && odd);
    Ok(Value::big(if up { floor + unit } else { floor }))
}

pub(super) fn filesize(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let bytes = to_float(args.get(0))?;
    let binary = args.flag(1)?;
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    let suffix = if binary { "iB" } else { "B" };
    let units = if binary {
        ["K", "M", "G", "T", "P", "E", "Z", "Y"]
    } else {
        ["k", "M", "G", "T", "P", "E", "Z", "Y"]
    };
    if bytes.to_bits() == 1_f64.to_bits() {
        return Ok(Value::str("1 Byte"));
    }
    if bytes < base {
        let whole = truncate(bytes)?;
        let whole = whole.as_index().unwrap_or(0);
        return Ok(Value::str(format!("{whole} Bytes")));
    }
    let mut unit = base;
    let mut name = units[0];
    for prefix in units {
        unit *= base;
        name = prefix;
        if bytes < unit {
            break;
        }
    }
    let amount = (base * bytes / unit).to_f64().unwrap_or(0.0);
    Ok(Value::str(format!("{amount:.1} {name}{suffix}")))
}
