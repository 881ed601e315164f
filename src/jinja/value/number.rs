//! Python's numbers: printing, parsing and arithmetic.

use num_bigint::{BigInt, Sign};
use num_traits::{FromPrimitive, Pow, Signed, ToPrimitive, Zero};

use super::{Budget, Value};
use crate::jinja::ast::BinaryOp;
use crate::jinja::error::{Raise, Res};

/// Integers larger than this many bits are refused.
const MAX_BITS: u64 = 1 << 20;

/// `repr(float)`: the shortest digits that read back as the same number.
pub(crate) fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let fixed = format!("{value}");
    if fixed.contains('.') { fixed } else { format!("{fixed}.0") }
}

/// A number as arithmetic sees it; booleans are integers.
#[derive(Debug, Clone)]
pub(crate) enum Num {
    Int(i64),
    Big(BigInt),
    Float(f64),
}

impl Num {
    pub(crate) fn of(value: &Value) -> Option<Num> {
        Some(match value {
            Value::Bool(value) => Num::Int(i64::from(*value)),
            Value::Int(value) => Num::Int(*value),
            Value::Big(value) => Num::Big((**value).clone()),
            Value::Float(value) => Num::Float(*value),
            _ => return None,
        })
    }

    pub(crate) fn into_value(self) -> Value {
        match self {
            Num::Int(value) => Value::Int(value),
            Num::Big(value) => Value::big(value),
            Num::Float(value) => Value::Float(value),
        }
    }

    fn is_float(&self) -> bool {
        matches!(self, Num::Float(_))
    }

    fn to_big(&self) -> BigInt {
        match self {
            Num::Int(value) => BigInt::from(*value),
            Num::Big(value) => value.clone(),
            Num::Float(value) => BigInt::from_f64(*value).unwrap_or_default(),
        }
    }

    pub(crate) fn to_f64(&self) -> Res<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "Python rounds here, too")]
            Num::Int(value) => Ok(*value as f64),
            Num::Big(value) => match value.to_f64() {
                Some(float) if float.is_finite() => Ok(float),
                _ => Err(Raise::new("OverflowError", "int too large to convert to float")),
            },
            Num::Float(value) => Ok(*value),
        }
    }
}

fn zero_division(message: &str) -> Raise {
    Raise::new("ZeroDivisionError", message)
}

/// Arithmetic on two numbers.
pub(crate) fn arithmetic(op: BinaryOp, left: &Num, right: &Num, budget: &Budget) -> Res<Value> {
    if left.is_float() || right.is_float() {
        let (left, right) = (left.to_f64()?, right.to_f64()?);
        return float_arithmetic(op, left, right).map(Value::Float);
    }
    if let (Num::Int(left), Num::Int(right)) = (left, right)
        && let Some(value) = small_arithmetic(op, *left, *right)
    {
        return Ok(Value::Int(value));
    }
    big_arithmetic(op, left, right, budget)
}

/// The result when everything fits into 64 bits.
fn small_arithmetic(op: BinaryOp, left: i64, right: i64) -> Option<i64> {
    match op {
        BinaryOp::Add => left.checked_add(right),
        BinaryOp::Sub => left.checked_sub(right),
        BinaryOp::Mul => left.checked_mul(right),
        BinaryOp::FloorDiv => {
            let quotient = left.checked_div(right)?;
            let inexact = left % right != 0 && ((left < 0) != (right < 0));
            Some(quotient - i64::from(inexact))
        }
        BinaryOp::Mod => {
            let rest = left.checked_rem(right)?;
            let wraps = rest != 0 && ((rest < 0) != (right < 0));
            Some(if wraps { rest + right } else { rest })
        }
        BinaryOp::Pow => left.checked_pow(u32::try_from(right).ok()?),
        BinaryOp::Div => None,
    }
}

fn big_arithmetic(op: BinaryOp, left: &Num, right: &Num, budget: &Budget) -> Res<Value> {
    let (a, b) = (left.to_big(), right.to_big());
    budget.spend(1 + (a.bits() + b.bits()) / 64)?;
    Ok(match op {
        BinaryOp::Add => Value::big(a + b),
        BinaryOp::Sub => Value::big(a - b),
        BinaryOp::Mul => {
            check_bits(a.bits() + b.bits(), budget)?;
            Value::big(a * b)
        }
        BinaryOp::Div => {
            if b.is_zero() {
                return Err(zero_division("division by zero"));
            }
            Value::Float(true_quotient(&a, &b)?)
        }
        BinaryOp::FloorDiv | BinaryOp::Mod if b.is_zero() => {
            return Err(zero_division(if op == BinaryOp::Mod {
                "integer modulo by zero"
            } else {
                "integer division or modulo by zero"
            }));
        }
        BinaryOp::FloorDiv => Value::big(floor_div(&a, &b).0),
        BinaryOp::Mod => Value::big(floor_div(&a, &b).1),
        BinaryOp::Pow if b.is_negative() => {
            return float_arithmetic(op, left.to_f64()?, right.to_f64()?).map(Value::Float);
        }
        BinaryOp::Pow => {
            let trivial = a.bits() <= 1;
            let exponent = b.to_u32().filter(|_| !trivial);
            match exponent {
                Some(exponent) => {
                    check_bits(a.bits().saturating_mul(u64::from(exponent)), budget)?;
                    Value::big(Pow::pow(a, exponent))
                }
                None if trivial && a.sign() == Sign::Minus && !b.bit(0) => Value::Int(1),
                None if trivial => Value::big(a),
                None => return Err(too_many_bits()),
            }
        }
    })
}

/// `a / b`, rounded once, as Python divides integers of any size.
fn true_quotient(a: &BigInt, b: &BigInt) -> Res<f64> {
    const ENOUGH: u64 = 66;
    let shift = (ENOUGH + b.bits()).saturating_sub(a.bits());
    let (quotient, rest) = {
        let scaled: BigInt = a.abs() << shift;
        (&scaled / b.abs(), &scaled % b.abs())
    };
    let sticky = if rest.is_zero() { quotient } else { quotient | BigInt::from(1) };
    let float = sticky.to_f64().unwrap_or(f64::INFINITY);
    // In two steps: the power of two alone may be too small for a float.
    let half = i32::try_from(shift / 2).unwrap_or(i32::MAX);
    let other = i32::try_from(shift - shift / 2).unwrap_or(i32::MAX);
    let float = float * 2_f64.powi(-half) * 2_f64.powi(-other);
    if float.is_infinite() {
        let message = "integer division result too large for a float";
        return Err(Raise::new("OverflowError", message));
    }
    Ok(if a.is_negative() == b.is_negative() { float } else { -float })
}

fn check_bits(bits: u64, budget: &Budget) -> Res<()> {
    if bits > MAX_BITS {
        return Err(too_many_bits());
    }
    budget.spend(bits / 64 * (1 + bits / 4096))
}

fn too_many_bits() -> Raise {
    Raise::limit("the integer is too large")
}

fn floor_div(a: &BigInt, b: &BigInt) -> (BigInt, BigInt) {
    let (quotient, rest) = (a / b, a % b);
    if !rest.is_zero() && (rest.is_negative() != b.is_negative()) {
        (quotient - 1, rest + b)
    } else {
        (quotient, rest)
    }
}

fn float_arithmetic(op: BinaryOp, a: f64, b: f64) -> Res<f64> {
    Ok(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div if b == 0.0 => return Err(zero_division("float division by zero")),
        BinaryOp::Div => a / b,
        BinaryOp::FloorDiv if b == 0.0 => {
            return Err(zero_division("float floor division by zero"));
        }
        BinaryOp::FloorDiv => ((a - float_mod(a, b)) / b).round(),
        BinaryOp::Mod if b == 0.0 => return Err(zero_division("float modulo")),
        BinaryOp::Mod => float_mod(a, b),
        BinaryOp::Pow if a == 0.0 && b < 0.0 => {
            return Err(zero_division("0.0 cannot be raised to a negative power"));
        }
        BinaryOp::Pow if a < 0.0 && b.fract() != 0.0 && a.is_finite() && b.is_finite() => {
            return Err(Raise::value_error("complex numbers are not supported"));
        }
        BinaryOp::Pow => {
            let result = a.powf(b);
            if result.is_infinite() && a.is_finite() && b.is_finite() {
                let message = "(34, 'Numerical result out of range')";
                return Err(Raise::new("OverflowError", message));
            }
            result
        }
    })
}

fn float_mod(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest == 0.0 {
        0.0_f64.copysign(b)
    } else if (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    }
}

/// `int(text, base)`; `None` where Python raises `ValueError`.
pub(crate) fn parse_int(text: &str, base: u32) -> Option<Value> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0o", 8), ("0b", 2)];
    let prefix = prefixes.iter().find(|(prefix, _)| lower.starts_with(prefix));
    let (mut digits, radix) = match prefix {
        Some((_, radix)) if base == 0 || base == *radix => (&lower[2..], *radix),
        _ => (&*lower, if base == 0 { 10 } else { base }),
    };
    if prefix.is_some() && digits.len() < lower.len() {
        digits = digits.strip_prefix('_').unwrap_or(digits);
    }
    let joined = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    if base == 0
        && prefix.is_none()
        && lower.starts_with('0')
        && !lower.bytes().all(|b| b == b'0' || b == b'_')
    {
        return None;
    }
    if joined || digits.is_empty() || digits.len() > 4300 {
        return None;
    }
    let plain = digits.replace('_', "");
    if !plain.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let value = BigInt::parse_bytes(plain.as_bytes(), radix)?;
    Some(Value::big(if negative { -value } else { value }))
}

/// `float(text)`; `None` where Python raises `ValueError`.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let bytes = text.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        if *byte == b'_' {
            let digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_digit);
            if index == 0 || !digit(bytes.get(index - 1)) || !digit(bytes.get(index + 1)) {
                return None;
            }
        }
    }
    let plain = text.replace('_', "").to_ascii_lowercase();
    match plain.trim_start_matches(['+', '-']) {
        "inf" | "infinity" | "nan" => {}
        digits if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {}
        _ => return None,
    }
    if plain.starts_with("+-") || plain.starts_with("-+") || plain.starts_with("--") {
        return None;
    }
    plain.parse().ok()
}

/// `int(float)`.
pub(crate) fn truncate(value: f64) -> Res<Value> {
    if value.is_nan() {
        return Err(Raise::value_error("cannot convert float NaN to integer"));
    }
    match BigInt::from_f64(value.trunc()) {
        Some(big) => Ok(Value::big(big)),
        None => Err(Raise::new("OverflowError", "cannot convert float infinity to integer")),
    }
}

/// `float(value)`.
pub(crate) fn to_float(value: &Value) -> Res<f64> {
    if let Some(number) = Num::of(value) {
        return number.to_f64();
    }
    if let Some(text) = value.as_str() {
        return parse_float(text).ok_or_else(|| {
            let shown = super::repr::str_repr(text);
            Raise::value_error(format!("could not convert string to float: {shown}"))
        });
    }
    value.require()?;
    let name = value.type_name();
    let message = format!("float() argument must be a string or a real number, not '{name}'");
    Err(Raise::type_error(message))
}

/// `int(value)` without a base.
pub(crate) fn to_int(value: &Value) -> Res<Value> {
    if let Some(text) = value.as_str() {
        return parse_int(text, 10).ok_or_else(|| {
            let shown = super::repr::str_repr(text);
            Raise::value_error(format!("invalid literal for int() with base 10: {shown}"))
        });
    }
    match Num::of(value) {
        Some(Num::Float(float)) => truncate(float),
        Some(number) => Ok(number.into_value()),
        None => {
            value.require()?;
            let name = value.type_name();
            Err(Raise::type_error(format!(
                "int() argument must be a string, a bytes-like object or a real number, not '{name}'"
            )))
        }
    }
}
