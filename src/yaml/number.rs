//! Numbers as Go's `strconv` and `encoding/json` read and write them.

use serde_json::{Number, Value};

/// A float as a JSON number the way it survives Go's JSON: integral ones that fit 64 bits become integers, with the
/// decimal digits of the shortest spelling (2^63 becomes 9223372036854776000). `None` for infinities and NaN.
pub(super) fn from_f64(float: f64) -> Option<Value> {
    if !float.is_finite() {
        return None;
    }
    if float.fract() == 0.0 && float.abs() < 1e21 {
        // `Display` pads the shortest digits with zeros, as Go does, and never uses an exponent.
        let digits = float.to_string();
        if float == 0.0 {
            return Some(Value::from(0));
        }
        if let Ok(integer) = digits.parse::<i64>() {
            return Some(Value::from(integer));
        }
        if let Ok(integer) = digits.parse::<u64>() {
            return Some(Value::from(integer));
        }
    }
    Number::from_f64(float).map(Value::Number)
}

/// Go's `strconv.FormatFloat(f, 'g', -1, 64)`: shortest digits, with an exponent from 1e+06 on and below 1e-04.
pub(super) fn format_f64(float: f64) -> String {
    format_g(&format!("{float:e}"))
}

/// Go's `strconv.FormatFloat(f, 'g', -1, 32)`.
pub(super) fn format_f32(float: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the rounding to 32 bits is the point")]
    let single = float as f32;
    if single.is_infinite() {
        return if single > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    format_g(&format!("{single:e}"))
}

/// Turns Rust's shortest scientific form (`-1.25e-7`) into Go's `%g`: an exponent of at least two digits below -4 and
/// from 6 on, plain decimals otherwise.
fn format_g(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    if !(-4..6).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{exponent_sign}{:02}", exponent.abs());
    }
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let Ok(point) = usize::try_from(exponent + 1) else {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("{sign}0.{zeros}{digits}");
    };
    if point == 0 {
        return format!("{sign}0.{digits}");
    }
    if digits.len() <= point {
        return format!("{sign}{digits}{}", "0".repeat(point - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..point], &digits[point..])
}

/// An integer of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Integer {
    Signed(i64),
    Unsigned(u64),
}

/// Go's `ParseInt(text, 0, 64)`, then `ParseUint`: decimal, `0x`, `0o`, `0b` and a leading `0` for octal. Underscores must
/// have been removed.
pub(super) fn parse_integer(text: &str) -> Option<Integer> {
    let (negative, signed, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, &text[1..]),
        b'+' => (false, true, &text[1..]),
        _ => (false, false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // Rust's parsers take another sign here, Go's do not.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(Integer::Signed);
    }
    match i64::try_from(magnitude) {
        Ok(integer) => Some(Integer::Signed(integer)),
        Err(_) if !signed => Some(Integer::Unsigned(magnitude)),
        Err(_) => None,
    }
}

/// A decimal float as YAML writes it: digits with at most one point and an exponent. `None` also when it is too large.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let well_formed = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    if !well_formed {
        return None;
    }
    if let Some(exponent) = exponent
        && !digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
    {
        return None;
    }
    text.parse::<f64>().ok().filter(|float| float.is_finite())
}
