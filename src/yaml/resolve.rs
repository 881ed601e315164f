//! From a scalar's text to its value, by the rules of Go's YAML libraries.

use serde_json::Value;

use super::{
    Schema,
    number::{self, Integer},
    positions::Written,
    timestamp,
};

/// A scalar's tag, as far as it changes the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// No tag on a plain scalar: the text decides.
    Implied,
    Str,
    Int,
    Float,
    Bool,
    Null,
    Timestamp,
    Binary,
    /// A tag of the document's own: the text stands.
    Custom,
}

/// What a scalar is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Integer(Integer),
    /// May be infinite or NaN.
    Float(f64),
    String(String),
    /// A date or time; the text is kept and the instant known in RFC 3339.
    Timestamp {
        text: String,
        rfc3339: String,
    },
}

impl Scalar {
    fn tag(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Integer(_) => "int",
            Self::Float(_) => "float",
            Self::String(_) => "str",
            Self::Timestamp { .. } => "timestamp",
        }
    }
}

/// Resolves `text` under `tag`.
///
/// # Errors
/// When the text contradicts the tag, for example `!!int x`. The message is complete but for the place.
pub(super) fn scalar(tag: Tag, text: &str, schema: Schema) -> Result<Scalar, String> {
    let wanted = match tag {
        Tag::Implied => return Ok(implied(text, schema)),
        Tag::Str | Tag::Custom => return Ok(Scalar::String(text.to_owned())),
        Tag::Binary => return binary(text),
        Tag::Int => "int",
        Tag::Float => "float",
        Tag::Bool => "bool",
        Tag::Null => "null",
        Tag::Timestamp => "timestamp",
    };
    match implied(text, schema) {
        Scalar::Integer(Integer::Signed(integer)) if tag == Tag::Float => {
            #[expect(clippy::cast_precision_loss, reason = "that is what the tag asks for")]
            let float = integer as f64;
            Ok(Scalar::Float(float))
        }
        // Only `!!timestamp` asks for a time; other tags see the text.
        scalar if scalar.tag() == wanted => Ok(scalar),
        scalar => Err(format!("a value is tagged !!{wanted} but reads as !!{}", scalar.tag())),
    }
}

fn binary(text: &str) -> Result<Scalar, String> {
    use base64::Engine as _;
    let packed: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(packed)
        .map_err(|_| "the !!binary value is not valid base64".to_owned())?;
    String::from_utf8(bytes)
        .map(Scalar::String)
        .map_err(|_| "the !!binary value is not UTF-8 text, which JSON cannot hold".to_owned())
}

/// Resolves a plain scalar without a tag.
pub(super) fn implied(text: &str, schema: Schema) -> Scalar {
    if let Some(scalar) = word(text, schema) {
        return scalar;
    }
    match text.as_bytes().first() {
        Some(b'.') => match number::parse_float(&join_digits(text)) {
            Some(float) => Scalar::Float(float),
            None => Scalar::String(text.to_owned()),
        },
        Some(b'+' | b'-' | b'0'..=b'9') => numeric(text),
        _ => Scalar::String(text.to_owned()),
    }
}

/// Whether a plain scalar without a tag is a string.
pub(super) fn is_string(text: &str, schema: Schema) -> bool {
    match text.as_bytes().first() {
        Some(b'.' | b'+' | b'-' | b'0'..=b'9') => {
            matches!(implied(text, schema), Scalar::String(_))
        }
        _ => word(text, schema).is_none(),
    }
}

/// Without the underscores that stand between digits.
fn join_digits(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |i: Option<usize>| i.and_then(|i| bytes.get(i)).is_some_and(u8::is_ascii_digit);
    let joined = |i: usize| digit(i.checked_sub(1)) && digit(i.checked_add(1));
    text.char_indices().filter(|(i, c)| !(*c == '_' && joined(*i))).map(|(_, c)| c).collect()
}

fn word(text: &str, schema: Schema) -> Option<Scalar> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "true" | "True" | "TRUE" => Scalar::Bool(true),
        "false" | "False" | "FALSE" => Scalar::Bool(false),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" if schema == Schema::Config => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" if schema == Schema::Config => {
            Scalar::Bool(false)
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        _ => return None,
    })
}

fn numeric(text: &str) -> Scalar {
    if let Some(rfc3339) = timestamp::to_rfc3339(text) {
        return Scalar::Timestamp { text: text.to_owned(), rfc3339 };
    }
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    if let Some(integer) = number::parse_integer(&plain) {
        return Scalar::Integer(integer);
    }
    match number::parse_float(&plain) {
        Some(float) => Scalar::Float(float),
        None => Scalar::String(text.to_owned()),
    }
}

/// The JSON value of a scalar, and the number as written where the value no longer tells.
///
/// # Errors
/// For infinities and NaN, which JSON does not have.
pub(super) fn to_value(
    scalar: Scalar,
    schema: Schema,
) -> Result<(Value, Option<Written>), &'static str> {
    Ok(match (scalar, schema) {
        (Scalar::Null, _) => (Value::Null, None),
        (Scalar::Bool(bool), _) => (Value::Bool(bool), None),
        (Scalar::String(text), _) | (Scalar::Timestamp { text, .. }, Schema::Config) => {
            (Value::String(text), None)
        }
        (Scalar::Timestamp { rfc3339, .. }, Schema::Manifest) => (Value::String(rfc3339), None),
        (Scalar::Integer(integer), schema) => integer_value(integer, schema),
        (Scalar::Float(float), _) => {
            let value = number::from_f64(float).ok_or("infinity and NaN have no place in JSON")?;
            let written = value.as_f64().is_none_or(|_| !value.is_f64());
            (value, written.then_some(Written::Float(float)))
        }
    })
}

/// Free-form config values are 64-bit floats in the reference; beyond 2^53 digits get lost there, and so here.
fn integer_value(integer: Integer, schema: Schema) -> (Value, Option<Written>) {
    const EXACT: u64 = 1 << 53;
    #[expect(clippy::cast_precision_loss, reason = "the loss is the rule")]
    let (exact, magnitude, float, written) = match integer {
        Integer::Signed(i) => (Value::from(i), i.unsigned_abs(), i as f64, Written::Signed(i)),
        Integer::Unsigned(u) => (Value::from(u), u, u as f64, Written::Unsigned(u)),
    };
    if schema == Schema::Manifest || magnitude <= EXACT {
        return (exact, None);
    }
    (number::from_f64(float).unwrap_or(exact), Some(written))
}

/// The text of a scalar used as a mapping key.
///
/// # Errors
/// Names what cannot be a key.
pub(super) fn to_key(scalar: Scalar, text: &str, schema: Schema) -> Result<String, &'static str> {
    if schema == Schema::Manifest {
        // Kubernetes takes whatever was written.
        return match scalar {
            Scalar::Null => Err("null"),
            Scalar::String(text) => Ok(text),
            _ => Ok(text.to_owned()),
        };
    }
    Ok(match scalar {
        Scalar::Null => return Err("null"),
        Scalar::Bool(bool) => bool.to_string(),
        Scalar::Integer(Integer::Signed(integer)) => integer.to_string(),
        Scalar::Integer(Integer::Unsigned(integer)) => integer.to_string(),
        Scalar::Float(float) if float.is_nan() => ".nan".to_owned(),
        Scalar::Float(float) if float == f64::INFINITY => ".inf".to_owned(),
        Scalar::Float(float) if float == f64::NEG_INFINITY => "-.inf".to_owned(),
        Scalar::Float(float) => number::format_f32(float),
        Scalar::String(text) | Scalar::Timestamp { text, .. } => text,
    })
}
