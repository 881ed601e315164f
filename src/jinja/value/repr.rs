//! `str()` and `repr()`.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use super::number::float_repr;
use super::{Budget, Value, View};
use crate::jinja::error::{Raise, Res};

const MAX_DEPTH: usize = 120;

/// `repr(str)`.
pub(crate) fn str_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            ' '..='~' => out.push(c),
            c if is_printable(c) => out.push(c),
            c => push_escape(&mut out, c),
        }
    }
    out.push(quote);
    out
}

fn push_escape(out: &mut String, c: char) {
    let code = u32::from(c);
    let result = if code < 0x100 {
        write!(out, "\\x{code:02x}")
    } else if code < 0x1_0000 {
        write!(out, "\\u{code:04x}")
    } else {
        write!(out, "\\U{code:08x}")
    };
    // Writing to a string cannot fail.
    result.unwrap_or_default();
}

/// An approximation of Python's notion: no control, format, private or separator characters.
pub(crate) fn is_printable(c: char) -> bool {
    let code = u32::from(c);
    if c == ' ' {
        return true;
    }
    !(c.is_control()
        || c.is_whitespace()
        || matches!(code,
            0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x180e | 0x200b..=0x200f
            | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff0..=0xfffb | 0xfffe | 0xffff
            | 0xe000..=0xf8ff | 0xe0000..=0xe0fff | 0xf0000..=0x10_ffff))
}

/// `repr(bytes)`.
pub(crate) fn bytes_repr(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut out = format!("b{quote}");
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' if char::from(*byte) == quote => {
                out.push('\\');
                out.push(quote);
            }
            b' '..=b'~' => out.push(char::from(*byte)),
            other => push_escape_byte(&mut out, *other),
        }
    }
    out.push(quote);
    out
}

fn push_escape_byte(out: &mut String, byte: u8) {
    {
        let text = format!("\\x{byte:02x}");
        out.push_str(&text);
    };
}

/// `str(value)`; undefined values fail.
pub(crate) fn to_str(value: &Value, budget: &Budget) -> Res<Arc<str>> {
    Ok(match value {
        Value::Str(text) | Value::Markup(text) => Arc::clone(text),
        Value::Undefined(undefined) if undefined.lenient => "".into(),
        Value::Undefined(undefined) => return undefined.raise(),
        Value::Int(number) => number.to_string().into(),
        Value::Object(object) => object.to_text().into(),
        other => repr(other, budget)?.into(),
    })
}

/// `repr(value)`.
pub(crate) fn repr(value: &Value, budget: &Budget) -> Res<String> {
    let mut writer = Writer { out: String::new(), open: Vec::new(), budget };
    writer.value(value)?;
    budget.bytes(writer.out.len())?;
    Ok(writer.out)
}

struct Writer<'a> {
    out: String,
    /// Containers being written, so that those containing themselves end.
    open: Vec<usize>,
    budget: &'a Budget,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value) -> Res<()> {
        self.budget.spend(1)?;
        self.budget.size(self.out.len())?;
        match value {
            Value::Undefined(undefined) if undefined.lenient => self.out.push_str("Undefined"),
            Value::Undefined(_) => self.out.push_str("Undefined"),
            Value::None => self.out.push_str("None"),
            Value::Bool(true) => self.out.push_str("True"),
            Value::Bool(false) => self.out.push_str("False"),
            Value::Int(number) => self.out.push_str(&number.to_string()),
            Value::Big(number) => {
                self.budget.spend(number.bits() / 64 * (1 + number.bits() / 4096))?;
                let digits = number.to_string();
                if digits.len() > 4300 {
                    return Err(Raise::value_error(
                        "Exceeds the limit (4300 digits) for integer string conversion; use \
                         sys.set_int_max_str_digits() to increase the limit",
                    ));
                }
                self.out.push_str(&digits);
            }
            Value::Float(number) => self.out.push_str(&float_repr(*number)),
            Value::Str(text) => self.out.push_str(&str_repr(text)),
            Value::Markup(text) => {
                self.out.push_str("Markup(");
                self.out.push_str(&str_repr(text));
                self.out.push(')');
            }
            Value::Bytes(bytes) => self.out.push_str(&bytes_repr(bytes)),
            Value::List(list) => {
                let address = Rc::as_ptr(list).cast::<()>() as usize;
                self.guarded(address, "[...]", |writer| writer.sequence("[", &list.to_vec(), "]"))?;
            }
            Value::Tuple(tuple) => {
                let close = if tuple.items.len() == 1 { ",)" } else { ")" };
                self.guarded(0, "(...)", |writer| writer.sequence("(", &tuple.items, close))?;
            }
            Value::Dict(dict) => {
                let address = Rc::as_ptr(dict).cast::<()>() as usize;
                self.guarded(address, "{...}", |writer| writer.dict(&dict.pairs()))?;
            }
            Value::Namespace(dict) => {
                let address = Rc::as_ptr(dict).cast::<()>() as usize;
                self.out.push_str("<Namespace ");
                self.guarded(address, "{...}", |writer| writer.dict(&dict.pairs()))?;
                self.out.push('>');
            }
            Value::Range(range) => {
                let text = format!("range({}, {}", range.start, range.stop);
                self.out.push_str(&text);
                if range.step != 1 {
                    {
                        let text = format!(", {}", range.step);
                        self.out.push_str(&text);
                    };
                }
                self.out.push(')');
            }
            Value::View(view, dict) => self.view(*view, &dict.pairs())?,
            Value::Iter(iter) => {
                let name = iter.type_name;
                {
                    let text = format!("<{name} object>");
                    self.out.push_str(&text);
                };
            }
            Value::Object(object) => self.out.push_str(&object.to_repr()),
        }
        Ok(())
    }

    fn guarded(
        &mut self,
        address: usize,
        cycle: &str,
        write: impl FnOnce(&mut Self) -> Res<()>,
    ) -> Res<()> {
        if address != 0 && self.open.contains(&address) {
            self.out.push_str(cycle);
            return Ok(());
        }
        if self.open.len() > MAX_DEPTH {
            let message = "maximum recursion depth exceeded while getting the repr of an object";
            return Err(Raise::recursion(message));
        }
        self.open.push(address);
        write(self)?;
        self.open.pop();
        Ok(())
    }

    fn sequence(&mut self, open: &str, items: &[Value], close: &str) -> Res<()> {
        self.out.push_str(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.value(item)?;
        }
        self.out.push_str(close);
        Ok(())
    }

    fn dict(&mut self, pairs: &[(Value, Value)]) -> Res<()> {
        self.out.push('{');
        for (index, (key, value)) in pairs.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.value(key)?;
            self.out.push_str(": ");
            self.value(value)?;
        }
        self.out.push('}');
        Ok(())
    }

    fn view(&mut self, view: View, pairs: &[(Value, Value)]) -> Res<()> {
        let (name, items): (&str, Vec<Value>) = match view {
            View::Keys => ("dict_keys", pairs.iter().map(|(key, _)| key.clone()).collect()),
            View::Values => ("dict_values", pairs.iter().map(|(_, value)| value.clone()).collect()),
            View::Items => (
                "dict_items",
                pairs
                    .iter()
                    .map(|(key, value)| Value::tuple(vec![key.clone(), value.clone()]))
                    .collect(),
            ),
        };
        self.out.push_str(name);
        self.guarded(0, "", |writer| writer.sequence("([", &items, "])"))
    }
}

/// A character as Python escapes it.
pub(crate) fn escaped(c: char) -> String {
    match u32::from(c) {
        code @ ..=0xff => format!("\\x{code:02x}"),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// `ascii(text)` of a text that is a representation already.
pub(crate) fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() { c.to_string() } else { escaped(c) }).collect()
}
