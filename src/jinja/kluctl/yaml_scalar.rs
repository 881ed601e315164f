//! What a plain YAML 1.1 scalar means to PyYAML.

use jiff::civil;
use jiff::tz::Offset;
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::dates::{Date, DateTime};
use crate::jinja::value::{Object, Value};

/// The type a plain scalar resolves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool,
    Int,
    Float,
    Timestamp,
    Merge,
    Value,
    Str,
}

/// The type of a plain scalar.
pub(super) fn resolve(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "yes" | "Yes" | "YES" | "no" | "No" | "NO" | "true" | "True" | "TRUE" | "false"
        | "False" | "FALSE" | "on" | "On" | "ON" | "off" | "Off" | "OFF" => Kind::Bool,
        "<<" => Kind::Merge,
        "=" => Kind::Value,
        _ if is_float(text) => Kind::Float,
        _ if is_int(text) => Kind::Int,
        _ if timestamp(text).is_some() || looks_like_timestamp(text) => Kind::Timestamp,
        _ => Kind::Str,
    }
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn all(text: &str, accepts: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(accepts)
}

fn digit_or_underscore(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

/// Groups after the first of a base-60 number.
fn sexagesimal(parts: &[&str]) -> bool {
    !parts.is_empty()
        && parts.iter().all(|part| match part.as_bytes() {
            [unit] => unit.is_ascii_digit(),
            [tens, unit] => (b'0'..=b'5').contains(tens) && unit.is_ascii_digit(),
            _ => false,
        })
}

fn is_int(text: &str) -> bool {
    let digits = unsigned(text);
    if let Some(binary) = digits.strip_prefix("0b") {
        return all(binary, |byte| matches!(byte, b'0' | b'1' | b'_'));
    }
    if let Some(hex) = digits.strip_prefix("0x") {
        return all(hex, |byte| byte.is_ascii_hexdigit() || byte == b'_');
    }
    if digits == "0" {
        return true;
    }
    if let Some(octal) = digits.strip_prefix('0') {
        return all(octal, |byte| matches!(byte, b'0'..=b'7' | b'_'));
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let mut parts = digits.split(':');
    let first = parts.next().unwrap_or("");
    let rest: Vec<&str> = parts.collect();
    all(first, digit_or_underscore) && (rest.is_empty() || sexagesimal(&rest))
}

fn is_float(text: &str) -> bool {
    let signed = unsigned(text);
    if matches!(signed, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (number, exponent) = match signed.find(['e', 'E']) {
        Some(at) => (&signed[..at], Some(&signed[at + 1..])),
        None => (signed, None),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        exponent.starts_with(['+', '-']) && all(&exponent[1..], |byte| byte.is_ascii_digit())
    });
    let Some((whole, fraction)) = number.split_once('.') else { return false };
    if !fraction.bytes().all(digit_or_underscore) {
        return false;
    }
    if whole.is_empty() {
        let starts = fraction.starts_with(|c: char| c.is_ascii_digit());
        return text.starts_with('.') && starts && exponent_fits;
    }
    if !whole.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or("");
    let rest: Vec<&str> = parts.collect();
    if rest.is_empty() {
        return all(first, digit_or_underscore) && exponent_fits;
    }
    all(first, digit_or_underscore) && sexagesimal(&rest) && exponent.is_none()
}

/// The shape of a timestamp whose parts may be out of range.
fn looks_like_timestamp(text: &str) -> bool {
    split_timestamp(text).is_some()
}

struct Parts<'a> {
    date: [&'a str; 3],
    /// Hour, minute, second, fraction.
    time: Option<[&'a str; 4]>,
    zone: Option<&'a str>,
}

fn digits(text: &str, low: usize, high: usize) -> bool {
    (low..=high).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn split_timestamp(text: &str) -> Option<Parts<'_>> {
    let end = text.find(['T', 't', ' ', '\t']).unwrap_or(text.len());
    let (date, rest) = text.split_at(end);
    let mut parts = date.split('-');
    let date = [parts.next()?, parts.next()?, parts.next()?];
    if parts.next().is_some() || !digits(date[0], 4, 4) {
        return None;
    }
    if rest.is_empty() {
        let plain = digits(date[1], 2, 2) && digits(date[2], 2, 2);
        return plain.then_some(Parts { date, time: None, zone: None });
    }
    if !digits(date[1], 1, 2) || !digits(date[2], 1, 2) {
        return None;
    }
    let rest = match rest.strip_prefix(['T', 't']) {
        Some(rest) => rest,
        None => rest.trim_start_matches([' ', '\t']),
    };
    let zone_at = rest.find([' ', '\t', 'Z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone_at);
    let zone = zone.trim_start_matches([' ', '\t']);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = clock.split(':');
    let clock = [parts.next()?, parts.next()?, parts.next()?, fraction];
    let valid = parts.next().is_none()
        && digits(clock[0], 1, 2)
        && digits(clock[1], 2, 2)
        && digits(clock[2], 2, 2)
        && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let zone = match zone {
        "" if rest.len() > zone_at => return None,
        "" => None,
        "Z" => Some(zone),
        offset => {
            let body = offset.strip_prefix(['+', '-'])?;
            let (hours, minutes) = body.split_once(':').unwrap_or((body, "00"));
            if !digits(hours, 1, 2) || !digits(minutes, 2, 2) {
                return None;
            }
            Some(zone)
        }
    };
    valid.then_some(Parts { date, time: Some(clock), zone })
}

/// The date or date-time a timestamp stands for; none when it does not exist in the calendar.
pub(super) fn timestamp(text: &str) -> Option<Value> {
    let parts = split_timestamp(text)?;
    let date = civil::Date::new(
        parts.date[0].parse().ok()?,
        parts.date[1].parse().ok()?,
        parts.date[2].parse().ok()?,
    )
    .ok()?;
    let Some([hour, minute, second, fraction]) = parts.time else {
        return Some(Value::object(Object::Date(Date(date))));
    };
    let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let time = civil::Time::new(
        hour.parse().ok()?,
        minute.parse().ok()?,
        second.parse().ok()?,
        micros.parse::<i32>().ok()? * 1000,
    )
    .ok()?;
    let offset = match parts.zone {
        None => None,
        Some("Z") => Some(Offset::UTC),
        Some(zone) => {
            let body = &zone[1..];
            let (hours, minutes) = body.split_once(':').unwrap_or((body, "0"));
            let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            Some(Offset::from_seconds(sign * seconds).ok()?)
        }
    };
    let wall = date.to_datetime(time);
    Some(Value::object(Object::DateTime(DateTime { wall, offset })))
}

/// The value of a scalar that [`resolve`] called a boolean.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" => Some(true),
        "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// The value of an integer scalar; none when it is not one.
pub(super) fn integer(text: &str) -> Option<Value> {
    let plain = text.replace('_', "");
    let negative = plain.starts_with('-');
    let digits = unsigned(&plain);
    let value = if let Some(binary) = digits.strip_prefix("0b") {
        BigInt::parse_bytes(binary.as_bytes(), 2)?
    } else if let Some(hex) = digits.strip_prefix("0x") {
        BigInt::parse_bytes(hex.as_bytes(), 16)?
    } else if digits.len() > 1 && digits.starts_with('0') && !digits.contains(':') {
        BigInt::parse_bytes(digits.as_bytes(), 8)?
    } else {
        let mut value = BigInt::default();
        for part in digits.split(':') {
            value = value * 60 + BigInt::parse_bytes(part.as_bytes(), 10)?;
        }
        value
    };
    Some(Value::big(if negative { -value } else { value }))
}

/// The value of a float scalar; none when it is not one.
pub(super) fn float(text: &str) -> Option<f64> {
    let plain = text.replace('_', "").to_ascii_lowercase();
    let sign = if plain.starts_with('-') { -1.0 } else { 1.0 };
    let digits = unsigned(&plain);
    match digits {
        ".inf" => return Some(sign * f64::INFINITY),
        ".nan" => return Some(f64::NAN),
        _ => {}
    }
    if digits.contains(':') {
        let mut value = 0.0;
        for part in digits.split(':') {
            value = value * 60.0 + part.parse::<f64>().ok()?;
        }
        return Some(sign * value);
    }
    digits.parse::<f64>().ok().map(|value| sign * value).filter(|value| value.to_f64().is_some())
}
