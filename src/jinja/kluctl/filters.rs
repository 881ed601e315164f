//! Kluctl's filters.

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::{json, slugify as slug, yaml_dump, yaml_load};
use crate::jinja::args::Bound;
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::methods::hex;
use crate::jinja::value::{Value, no_attribute};

/// The text of an argument that must be a string.
fn text<'a>(value: &'a Value, method: &str) -> Res<&'a str> {
    if let Some(text) = value.as_str() {
        Ok(text)
    } else {
        value.require()?;
        Err(no_attribute(value, method))
    }
}

pub(crate) fn b64encode(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let text = text(args.get(0), "encode")?;
    it.budget.bytes(text.len())?;
    Ok(Value::str(STANDARD.encode(text)))
}

pub(crate) fn b64decode(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let text = text(args.get(0), "encode")?;
    if !text.is_ascii() {
        return Err(Raise::value_error("string argument should contain only ASCII characters"));
    }
    // As Python does: characters outside of the alphabet are skipped.
    let kept: Vec<u8> = text
        .bytes()
        .filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
        .collect();
    let data = kept.iter().take_while(|byte| **byte != b'=').count();
    let padding = kept.len() - data;
    if data % 4 == 1 {
        return Err(Raise::new(
            "Error",
            format!(
                "Invalid base64-encoded string: number of data characters ({data}) cannot be 1 more \
                 than a multiple of 4"
            ),
        ));
    }
    if data % 4 != 0 && data % 4 + padding < 4 {
        return Err(Raise::new("Error", "Incorrect padding"));
    }
    let engine = base64::engine::GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        base64::engine::GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent),
    );
    let bytes =
        engine.decode(&kept[..data]).map_err(|error| Raise::new("Error", error.to_string()))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Value::str(text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let byte = error.as_bytes().get(at).copied().unwrap_or(0);
            let reason = if error.utf8_error().error_len().is_none() {
                "unexpected end of data"
            } else if matches!(byte, 0x80..=0xc1 | 0xf5..=0xff) {
                "invalid start byte"
            } else {
                "invalid continuation byte"
            };
            Err(Raise::new(
                "UnicodeDecodeError",
                format!("'utf-8' codec can't decode byte 0x{byte:02x} in position {at}: {reason}"),
            ))
        }
    }
}

pub(crate) fn to_yaml(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    yaml_dump::dump(args.get(0), &it.budget).map(Value::str)
}

pub(crate) fn from_yaml(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    match args.get(0) {
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => yaml_load::load(text, &it.budget),
            Err(_) => Err(Raise::value_error("the YAML is not UTF-8 text")),
        },
        value => yaml_load::load(text(value, "read")?, &it.budget),
    }
}

pub(crate) fn to_json(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    json::dump(args.get(0), None, false, &it.budget).map(Value::str)
}

/// The filter does not see what loops have set, unlike the function of the same name.
pub(crate) fn render(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let layer = scope.ctx.snapshot(crate::jinja::eval::scope::Names::default());
    super::functions::render_text(it, scope, args.get(0), layer)
}

/// Lower-case hexadecimal of bytes, the first `length` characters if given.
pub(super) fn hex_digest(bytes: &[u8], length: Option<&Value>) -> Res<Value> {
    shortened(&hex(&Sha256::digest(bytes)), length)
}

/// `text[:length]`.
pub(super) fn shortened(text: &str, length: Option<&Value>) -> Res<Value> {
    let Some(length) = length else { return Ok(Value::str(text)) };
    let Some(length) = length.as_index() else {
        length.require()?;
        return Err(Raise::type_error(
            "slice indices must be integers or None or have an __index__ method",
        ));
    };
    let size = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let end = if length < 0 { (size + length).max(0) } else { length.min(size) };
    Ok(Value::str(&text[..usize::try_from(end).unwrap_or(0)]))
}

pub(crate) fn sha256(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let length = args.optional(1);
    match args.get(0) {
        Value::Bytes(bytes) => hex_digest(bytes, length),
        value => {
            let text = text(value, "encode")?;
            it.budget.bytes(text.len())?;
            hex_digest(text.as_bytes(), length)
        }
    }
}

pub(crate) fn slugify(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    slug::slugify(it, args)
}
