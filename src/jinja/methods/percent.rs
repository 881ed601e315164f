//! `'%s' % values`.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::Signed;

use super::spec::float;
use crate::jinja::error::{Raise, Res};
use crate::jinja::filters::html::{escape_text, escape_value};
use crate::jinja::value::index::wrap;
use crate::jinja::value::number::{Num, to_float, truncate};
use crate::jinja::value::repr::{ascii, repr, to_str};
use crate::jinja::value::{Budget, Value, char_count};

#[expect(clippy::struct_excessive_bools, reason = "the flags of a directive")]
#[derive(Default)]
struct Flags {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
}

struct Formatter<'a> {
    values: &'a Value,
    next: usize,
    used_mapping: bool,
    safe: bool,
    budget: &'a Budget,
}

/// Formats a string; safe strings escape what is put into them.
pub(crate) fn format(template: &Value, values: &Value, budget: &Budget) -> Res<Value> {
    let text: Arc<str> = template.as_str().cloned().unwrap_or_else(|| "".into());
    let safe = matches!(template, Value::Markup(_));
    let mut formatter = Formatter { values, next: 0, used_mapping: false, safe, budget };
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(index) = rest.find('%') {
        out.push_str(&rest[..index]);
        let at = char_count(&text[..text.len() - rest.len() + index]);
        rest = formatter.directive(&rest[index + 1..], at, &mut out)?;
        budget.size(out.len())?;
    }
    out.push_str(rest);
    budget.bytes(out.len())?;
    formatter.finish()?;
    Ok(wrap(template, &out))
}

impl Formatter<'_> {
    fn finish(&self) -> Res<()> {
        let left_over = match self.values {
            Value::Tuple(tuple) => self.next < tuple.items.len(),
            Value::Dict(_)
            | Value::List(_)
            | Value::Range(_)
            | Value::Bytes(_)
            | Value::Undefined(_) => false,
            _ => self.next == 0 && !self.used_mapping,
        };
        if left_over {
            let message = "not all arguments converted during string formatting";
            return Err(Raise::type_error(message));
        }
        Ok(())
    }

    fn take(&mut self) -> Res<Value> {
        let value = match self.values {
            Value::Tuple(tuple) => tuple.items.get(self.next).cloned(),
            single => (self.next == 0).then(|| single.clone()),
        };
        self.next += 1;
        value.ok_or_else(|| Raise::type_error("not enough arguments for format string"))
    }

    fn number<'t>(&mut self, rest: &'t str) -> Res<(Option<i64>, &'t str)> {
        if let Some(rest) = rest.strip_prefix('*') {
            let value = self.take()?;
            let Some(number) = value.as_index() else {
                return Err(Raise::type_error("* wants int"));
            };
            return Ok((Some(number), rest));
        }
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Ok((rest[..end].parse().ok(), &rest[end..]))
    }

    /// One directive after its `%`; returns what follows it.
    fn directive<'t>(&mut self, text: &'t str, at: usize, out: &mut String) -> Res<&'t str> {
        let mut rest = text;
        let mut mapped = None;
        if let Some(inner) = rest.strip_prefix('(') {
            let Value::Dict(dict) = self.values else {
                self.values.require()?;
                return Err(Raise::type_error("format requires a mapping"));
            };
            let Some(end) = closing(inner) else {
                return Err(Raise::value_error("incomplete format key"));
            };
            let key = &inner[..end];
            self.used_mapping = true;
            mapped =
                Some(dict.get_str(key).ok_or_else(|| {
                    Raise::new("KeyError", crate::jinja::value::repr::str_repr(key))
                })?);
            rest = &inner[end + 1..];
        }
        let mut flags = Flags::default();
        loop {
            let flag = match rest.chars().next() {
                Some('-') => &mut flags.left,
                Some('+') => &mut flags.plus,
                Some(' ') => &mut flags.space,
                Some('0') => &mut flags.zero,
                Some('#') => &mut flags.alternate,
                _ => break,
            };
            *flag = true;
            rest = &rest[1..];
        }
        let (width, after) = self.number(rest)?;
        rest = after;
        let mut precision = None;
        if let Some(after) = rest.strip_prefix('.') {
            let (number, after) = self.number(after)?;
            precision = Some(usize::try_from(number.unwrap_or(0)).unwrap_or(0));
            rest = after;
        }
        rest = rest.trim_start_matches(['h', 'l', 'L']);
        let width = width.unwrap_or(0);
        flags.left |= width < 0;
        let width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        self.budget.bytes(width.max(precision.unwrap_or(0)))?;
        let Some(kind) = rest.chars().next() else {
            return Err(Raise::value_error("incomplete format"));
        };
        let after = &rest[kind.len_utf8()..];
        if kind == '%' {
            out.push('%');
            return Ok(after);
        }
        let value = match mapped {
            Some(value) => value,
            None if "srdiuoxXeEfFgGca".contains(kind) => self.take()?,
            None => Value::None,
        };
        let at = at + 1 + char_count(&text[..text.len() - rest.len()]);
        let (head, body, numeric) = self.convert(kind, &value, precision, &flags, at)?;
        push_padded(out, &head, &body, width, &flags, numeric);
        Ok(after)
    }

    /// Sign or prefix, digits or text, and whether zeros may fill the width.
    fn convert(
        &self,
        kind: char,
        value: &Value,
        precision: Option<usize>,
        flags: &Flags,
        at: usize,
    ) -> Res<(String, String, bool)> {
        match kind {
            's' | 'r' | 'a' => {
                let text = match kind {
                    's' if self.safe => escape_value(value, self.budget)?,
                    's' => to_str(value, self.budget)?,
                    'a' if !self.safe => ascii(&repr(value, self.budget)?).into(),
                    _ if self.safe => escape_text(&repr(value, self.budget)?).into(),
                    _ => repr(value, self.budget)?.into(),
                };
                let text = match precision {
                    Some(precision) => text.chars().take(precision).collect(),
                    None => text.to_string(),
                };
                Ok((String::new(), text, false))
            }
            'c' => {
                let c = match value.as_str() {
                    Some(text) if char_count(text) == 1 => text.to_string(),
                    _ => {
                        let Some(code) = value.as_index() else {
                            return Err(Raise::type_error("%c requires int or char"));
                        };
                        let c = u32::try_from(code).ok().and_then(char::from_u32);
                        c.map(String::from).ok_or_else(|| {
                            Raise::new("OverflowError", "%c arg not in range(0x110000)")
                        })?
                    }
                };
                Ok((String::new(), c, false))
            }
            'd' | 'i' | 'u' | 'o' | 'x' | 'X' => integer(kind, value, precision, flags),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                value.require()?;
                if value.as_str().is_some() || Num::of(value).is_none() {
                    let name = value.type_name();
                    return Err(Raise::type_error(format!("must be real number, not {name}")));
                }
                let number = to_float(value)?;
                let negative = number.is_sign_negative() && !number.is_nan();
                let digits = float(number.abs(), kind, precision.unwrap_or(6), flags.alternate);
                Ok((sign(negative, flags), digits, number.is_finite()))
            }
            other => {
                let code = u32::from(other);
                Err(Raise::value_error(format!(
                    "unsupported format character '{other}' (0x{code:x}) at index {at}"
                )))
            }
        }
    }
}

/// The end of a key in parentheses, which may contain balanced ones.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

fn sign(negative: bool, flags: &Flags) -> String {
    let sign = match (negative, flags.plus, flags.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    };
    sign.to_owned()
}

fn integer(
    kind: char,
    value: &Value,
    precision: Option<usize>,
    flags: &Flags,
) -> Res<(String, String, bool)> {
    value.require()?;
    let decimal = matches!(kind, 'd' | 'i' | 'u');
    let whole = match Num::of(value) {
        Some(Num::Float(number)) if decimal => truncate(number)?,
        Some(Num::Float(_)) | None => {
            let name = value.type_name();
            let wanted =
                if decimal { "a real number is required" } else { "an integer is required" };
            return Err(Raise::type_error(format!("%{kind} format: {wanted}, not {name}")));
        }
        Some(number) => number.into_value(),
    };
    let number = match &whole {
        Value::Big(number) => (**number).clone(),
        other => BigInt::from(other.as_index().unwrap_or(0)),
    };
    let magnitude = number.abs();
    let (prefix, mut digits) = match kind {
        'o' => ("0o", magnitude.to_str_radix(8)),
        'x' => ("0x", magnitude.to_str_radix(16)),
        'X' => ("0X", magnitude.to_str_radix(16).to_uppercase()),
        _ => ("", magnitude.to_string()),
    };
    if let Some(precision) = precision {
        digits = format!("{}{digits}", "0".repeat(precision.saturating_sub(digits.len())));
    }
    let prefix = if flags.alternate { prefix } else { "" };
    Ok((format!("{}{prefix}", sign(number.is_negative(), flags)), digits, true))
}

fn push_padded(
    out: &mut String,
    head: &str,
    body: &str,
    width: usize,
    flags: &Flags,
    numeric: bool,
) {
    let space = width.saturating_sub(char_count(head) + char_count(body));
    if flags.left {
        out.push_str(head);
        out.push_str(body);
        out.push_str(&" ".repeat(space));
    } else if flags.zero && numeric {
        out.push_str(head);
        out.push_str(&"0".repeat(space));
        out.push_str(body);
    } else {
        out.push_str(&" ".repeat(space));
        out.push_str(head);
        out.push_str(body);
    }
}
