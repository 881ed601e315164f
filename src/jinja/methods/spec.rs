//! Python's format specification mini-language (`>10.2f`), and what it shares with `%` formatting.

use num_bigint::BigInt;
use num_traits::Signed;

use crate::jinja::error::{Raise, Res};
use crate::jinja::value::number::{Num, float_repr};
use crate::jinja::value::repr::str_repr;
use crate::jinja::value::{Budget, Value, char_count};

/// A parsed specification.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    fill: char,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    pub(super) fn parse(text: &str, type_name: &str) -> Res<Self> {
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        let mut fill_given = false;
        let is_align = |c: Option<&char>| c.is_some_and(|c| "<>=^".contains(*c));
        let mut spec = Spec {
            fill: ' ',
            align: None,
            sign: None,
            alternate: false,
            width: 0,
            grouping: None,
            precision: None,
            kind: None,
        };
        if is_align(chars.get(1)) {
            spec.fill = chars[0];
            fill_given = true;
            spec.align = Some(chars[1]);
            at = 2;
        } else if is_align(chars.first()) {
            spec.align = Some(chars[0]);
            at = 1;
        }
        if let Some(sign) = chars.get(at).filter(|c| "+- ".contains(**c)) {
            spec.sign = Some(*sign);
            at += 1;
        }
        if chars.get(at) == Some(&'#') {
            spec.alternate = true;
            at += 1;
        }
        if chars.get(at) == Some(&'0') && !fill_given {
            spec.fill = '0';
            let number = !matches!(type_name, "str" | "Markup");
            if spec.align.is_none() && number {
                spec.align = Some('=');
            }
            at += 1;
        }
        let number = |at: &mut usize| -> Res<Option<usize>> {
            let start = *at;
            while chars.get(*at).is_some_and(char::is_ascii_digit) {
                *at += 1;
            }
            if start == *at {
                return Ok(None);
            }
            let digits: String = chars[start..*at].iter().collect();
            match digits.parse() {
                Ok(number) if i64::try_from(number).is_ok() => Ok(Some(number)),
                _ => Err(Raise::value_error("Too many decimal digits in format string")),
            }
        };
        spec.width = number(&mut at)?.unwrap_or(0);
        if let Some(grouping) = chars.get(at).filter(|c| ",_".contains(**c)) {
            spec.grouping = Some(*grouping);
            at += 1;
        }
        if chars.get(at) == Some(&'.') {
            at += 1;
            spec.precision = number(&mut at)?;
            if spec.precision.is_none() {
                return Err(Raise::value_error("Format specifier missing precision"));
            }
        }
        spec.kind = chars.get(at).copied();
        if at + 1 < chars.len() {
            let text = str_repr(text);
            return Err(Raise::value_error(format!(
                "Invalid format specifier {text} for object of type '{type_name}'"
            )));
        }
        if let (Some(grouping), Some(kind)) = (spec.grouping, spec.kind) {
            let grouped = "deEfFgG%".contains(kind) || grouping == '_' && "boxX".contains(kind);
            if !grouped {
                let message = format!("Cannot specify '{grouping}' with '{kind}'.");
                return Err(Raise::value_error(message));
            }
        }
        Ok(spec)
    }

    fn unknown<T>(&self, type_name: &str) -> Res<T> {
        let kind = self.kind.unwrap_or(' ');
        Err(Raise::value_error(format!(
            "Unknown format code '{kind}' for object of type '{type_name}'"
        )))
    }

    /// Only texts and numbers have specifications.
    pub(super) fn check_type(value: &Value) -> Res<()> {
        if value.as_str().is_some() || Num::of(value).is_some() {
            return Ok(());
        }
        value.require()?;
        let name = value.type_name();
        let message = format!("unsupported format string passed to {name}.__format__");
        Err(Raise::type_error(message))
    }

    /// `format(value, spec)`.
    pub(super) fn apply(&self, value: &Value, budget: &Budget) -> Res<String> {
        budget.bytes(self.width.max(self.precision.unwrap_or(0)))?;
        match value {
            Value::Str(text) | Value::Markup(text) => self.text(text),
            Value::Bool(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) => {
                match Num::of(value) {
                    Some(number) => self.number(&number, value.type_name()),
                    None => Ok(String::new()),
                }
            }
            other => Self::check_type(other).map(|()| String::new()),
        }
    }

    fn text(&self, text: &str) -> Res<String> {
        if self.kind.is_some_and(|kind| kind != 's') {
            return self.unknown("str");
        }
        let refused = match (self.sign, self.alternate) {
            (Some(' '), _) => Some("Space"),
            (Some(_), _) => Some("Sign"),
            (None, true) => Some("Alternate form (#)"),
            (None, false) => None,
        };
        if let Some(what) = refused {
            let message = format!("{what} not allowed in string format specifier");
            return Err(Raise::value_error(message));
        }
        if self.grouping.is_some() {
            let grouping = self.grouping.unwrap_or(',');
            return Err(Raise::value_error(format!("Cannot specify '{grouping}' with 's'.")));
        }
        if self.align == Some('=') {
            let message = "'=' alignment not allowed in string format specifier";
            return Err(Raise::value_error(message));
        }
        let text: String = match self.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text.to_owned(),
        };
        Ok(self.pad("", &text, self.align.unwrap_or('<')))
    }

    fn number(&self, number: &Num, type_name: &str) -> Res<String> {
        let whole = !matches!(number, Num::Float(_));
        let (negative, digits) = match self.kind {
            None | Some('d' | 'b' | 'o' | 'x' | 'X' | 'c' | 'n') if whole => {
                return self.integer(number);
            }
            None => {
                let value = number.to_f64()?;
                let digits = match self.precision {
                    None => float_repr(value.abs()),
                    Some(precision) => general(value.abs(), precision.max(1), self.alternate, true),
                };
                (value.is_sign_negative() && !value.is_nan(), digits)
            }
            Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%' | 'n') => {
                let value = number.to_f64()?;
                let kind = self.kind.unwrap_or('g');
                let precision = self.precision.unwrap_or(6);
                let digits = match kind {
                    '%' => {
                        format!("{}%", float(value.abs() * 100.0, 'f', precision, self.alternate))
                    }
                    'n' => float(value.abs(), 'g', precision, self.alternate),
                    kind => float(value.abs(), kind, precision, self.alternate),
                };
                (value.is_sign_negative() && !value.is_nan(), digits)
            }
            Some(_) => return self.unknown(type_name),
        };
        Ok(self.signed(negative, "", &digits))
    }

    fn integer(&self, number: &Num) -> Res<String> {
        if self.precision.is_some() {
            let message = "Precision not allowed in integer format specifier";
            return Err(Raise::value_error(message));
        }
        let value = match number {
            Num::Int(value) => BigInt::from(*value),
            Num::Big(value) => value.clone(),
            Num::Float(_) => BigInt::default(),
        };
        let magnitude = value.abs();
        let (prefix, digits) = match self.kind {
            Some('b') => ("0b", magnitude.to_str_radix(2)),
            Some('o') => ("0o", magnitude.to_str_radix(8)),
            Some('x') => ("0x", magnitude.to_str_radix(16)),
            Some('X') => ("0X", magnitude.to_str_radix(16).to_uppercase()),
            Some('c') => {
                let code = u32::try_from(&value).ok().and_then(char::from_u32);
                let Some(c) = code else {
                    return Err(Raise::new("OverflowError", "%c arg not in range(0x110000)"));
                };
                return Ok(self.pad("", &c.to_string(), self.align.unwrap_or('<')));
            }
            _ => ("", magnitude.to_string()),
        };
        let prefix = if self.alternate { prefix } else { "" };
        Ok(self.signed(value.is_negative(), prefix, &digits))
    }

    fn signed(&self, negative: bool, prefix: &str, digits: &str) -> String {
        let sign = match (negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            _ => "",
        };
        let head = format!("{sign}{prefix}");
        let digits = self.group(digits, head.len());
        self.pad(&head, &digits, self.align.unwrap_or('>'))
    }

    /// Inserts thousands separators, also into the zeros that fill the width.
    fn group(&self, digits: &str, head: usize) -> String {
        let Some(separator) = self.grouping else { return digits.to_owned() };
        let size = if matches!(self.kind, Some('b' | 'o' | 'x' | 'X')) { 4 } else { 3 };
        let radix = if matches!(self.kind, Some('x' | 'X')) { 16 } else { 10 };
        let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
        let (whole, rest) = digits.split_at(end);
        let grouped = |whole: &str| {
            let mut out = String::new();
            for (index, c) in whole.chars().enumerate() {
                if index > 0 && (whole.len() - index).is_multiple_of(size) {
                    out.push(separator);
                }
                out.push(c);
            }
            out
        };
        let mut whole = whole.to_owned();
        if self.fill == '0' && self.align == Some('=') {
            while head + grouped(&whole).len() + rest.len() < self.width {
                whole.insert(0, '0');
            }
        }
        format!("{}{rest}", grouped(&whole))
    }

    fn pad(&self, head: &str, body: &str, align: char) -> String {
        let length = char_count(head) + char_count(body);
        let space = self.width.saturating_sub(length);
        let fill = |count: usize| -> String { std::iter::repeat_n(self.fill, count).collect() };
        match align {
            '<' => format!("{head}{body}{}", fill(space)),
            '^' => format!("{}{head}{body}{}", fill(space / 2), fill(space - space / 2)),
            '=' => format!("{head}{}{body}", fill(space)),
            _ => format!("{}{head}{body}", fill(space)),
        }
    }
}

/// A non-negative float as `%e`, `%f` or `%g` writes it.
pub(super) fn float(value: f64, kind: char, precision: usize, alternate: bool) -> String {
    let upper = kind.is_ascii_uppercase();
    let text = if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        "inf".to_owned()
    } else {
        match kind.to_ascii_lowercase() {
            'e' => {
                let text = exponent(&format!("{value:.precision$e}"));
                if alternate && precision == 0 { text.replacen('e', ".e", 1) } else { text }
            }
            'g' => general(value, precision.max(1), alternate, false),
            _ => {
                let dot = if alternate && precision == 0 { "." } else { "" };
                format!("{value:.precision$}{dot}")
            }
        }
    };
    if upper { text.to_uppercase() } else { text }
}

/// Rust's `1.5e7` as C's `1.5e+07`.
fn exponent(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// `%g`; with `keep_point` as `format(x, ".3")` does, which shows that the number is a float.
fn general(value: f64, precision: usize, alternate: bool, keep_point: bool) -> String {
    if !value.is_finite() {
        return float_repr(value);
    }
    let scientific = format!("{value:.*e}", precision - 1);
    let power: i64 =
        scientific.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    let limit = i64::try_from(precision).unwrap_or(i64::MAX);
    let uses_exponent = power < -4 || power >= if keep_point { limit - 1 } else { limit };
    let text = if uses_exponent {
        scientific.clone()
    } else {
        let decimals = usize::try_from(limit - 1 - power).unwrap_or(0);
        format!("{value:.decimals$}")
    };
    let (mantissa, tail) = text.split_once('e').map_or((&*text, None), |(m, e)| (m, Some(e)));
    let pointed;
    let mantissa = if alternate {
        pointed = if mantissa.contains('.') { mantissa.to_owned() } else { format!("{mantissa}.") };
        &*pointed
    } else if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    match tail {
        Some(tail) => exponent(&format!("{mantissa}e{tail}")),
        None if keep_point && !mantissa.contains('.') => format!("{mantissa}.0"),
        None => mantissa.to_owned(),
    }
}
