//! Writing values the way `sigs.k8s.io/yaml` does: block style, keys in its natural order, its quoting, its folding.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::{Schema, number, resolve};

/// Plain and quoted text is folded at the first single space behind this column.
const WIDTH: usize = 80;

/// Keys longer than this (in bytes) are written with `?`.
const LONGEST_SIMPLE_KEY: usize = 128;

/// One value as a YAML document that ends in a newline.
pub fn emit(value: &Value) -> String {
    let mut emitter = Emitter::default();
    match value {
        Value::Object(map) if !map.is_empty() => emitter.mapping(map, 0),
        Value::Array(items) if !items.is_empty() => emitter.sequence(items, 0),
        other => emitter.scalar(other, 2),
    }
    emitter.end_line();
    emitter.out
}

/// Several values as documents joined by `---`.
pub fn emit_documents<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let mut out = String::new();
    for value in values {
        if !out.is_empty() {
            out.push_str("---\n");
        }
        out.push_str(&emit(value));
    }
    out
}

#[derive(Default)]
struct Emitter {
    out: String,
    /// Characters on the current line.
    column: usize,
}

impl Emitter {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn put_char(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn newline(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn end_line(&mut self) {
        if self.column > 0 || self.out.is_empty() {
            self.newline();
        }
    }

    /// Goes to `indent` on a fresh line; stays when the line is fresh already and not beyond.
    fn indent(&mut self, indent: usize) {
        self.end_line_if_used();
        while self.column < indent {
            self.put_char(' ');
        }
    }

    fn end_line_if_used(&mut self) {
        if self.column > 0 {
            self.newline();
        }
    }

    fn mapping(&mut self, map: &Map<String, Value>, indent: usize) {
        for (i, key) in in_natural_order(map.keys().collect()).into_iter().enumerate() {
            // The first key of a list item continues the line of its dash.
            if i > 0 || self.column != indent {
                self.indent(indent);
            }
            let simple = self.key(key, indent);
            self.mapping_value(&map[key], indent, simple);
        }
    }

    /// Writes a key and its `:`. Returns whether it is a simple one, in contrast to one with `?`.
    fn key(&mut self, key: &str, indent: usize) -> bool {
        let simple = !key.contains(is_break) && key.len() <= LONGEST_SIMPLE_KEY;
        if simple {
            self.text(key, indent + 2, false);
        } else {
            self.put("? ");
            self.text(key, indent + 2, true);
            self.indent(indent);
        }
        self.put(":");
        simple
    }

    fn mapping_value(&mut self, value: &Value, indent: usize, simple_key: bool) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                self.start_collection(indent + 2, simple_key);
                self.mapping(map, indent + 2);
            }
            Value::Array(items) if !items.is_empty() => {
                // Lists below a key are not indented.
                let indent = if simple_key { indent } else { indent + 2 };
                self.start_collection(indent, simple_key);
                self.sequence(items, indent);
            }
            other => {
                self.put(" ");
                self.scalar(other, indent + 2);
            }
        }
    }

    fn start_collection(&mut self, indent: usize, new_line: bool) {
        if new_line {
            self.newline();
            self.indent(indent);
        } else {
            self.put(" ");
        }
    }

    fn sequence(&mut self, items: &[Value], indent: usize) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 || self.column != indent {
                self.indent(indent);
            }
            self.put("- ");
            match item {
                Value::Object(map) if !map.is_empty() => self.mapping(map, indent + 2),
                Value::Array(items) if !items.is_empty() => self.sequence(items, indent + 2),
                other => self.scalar(other, indent + 2),
            }
        }
    }

    /// A scalar or an empty collection; continuation lines go to `indent`.
    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.put("null"),
            Value::Bool(true) => self.put("true"),
            Value::Bool(false) => self.put("false"),
            Value::Number(number) => self.put(&number_text(number)),
            Value::String(text) => self.text(text, indent, true),
            Value::Array(_) => self.put("[]"),
            Value::Object(_) => self.put("{}"),
        }
    }

    fn text(&mut self, text: &str, indent: usize, is_value: bool) {
        match style_of(text, is_value) {
            Style::Plain => self.plain(text, indent, is_value),
            Style::Single => self.single_quoted(text, indent, is_value),
            Style::Double => self.double_quoted(text, indent, is_value),
            Style::Literal => self.literal(text, indent),
        }
    }

    fn plain(&mut self, text: &str, indent: usize, fold: bool) {
        if !fold || self.column + text.len() <= WIDTH {
            return self.put(text);
        }
        let mut after_space = false;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let foldable = c == ' ' && !after_space && self.column > WIDTH;
            if foldable && chars.peek() != Some(&' ') {
                self.newline();
                self.indent(indent);
            } else {
                self.put_char(c);
            }
            after_space = c == ' ';
        }
    }

    fn single_quoted(&mut self, text: &str, indent: usize, fold: bool) {
        self.put("'");
        let mut after_space = false;
        let mut chars = text.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            let inside = i > 0 && chars.peek().is_some_and(|(_, next)| *next != ' ');
            if c == ' ' && fold && !after_space && self.column > WIDTH && inside {
                self.newline();
                self.indent(indent);
            } else {
                if c == '\'' {
                    self.put("'");
                }
                self.put_char(c);
            }
            after_space = c == ' ';
        }
        self.put("'");
    }

    fn double_quoted(&mut self, text: &str, indent: usize, fold: bool) {
        self.put("\"");
        let mut after_space = false;
        let mut chars = text.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            if let Some(escape) = escape(c) {
                self.put(&escape);
                after_space = false;
                continue;
            }
            let next = chars.peek().map(|(_, next)| *next);
            if c == ' ' && fold && !after_space && self.column > WIDTH && i > 0 && next.is_some() {
                self.newline();
                self.indent(indent);
                if next == Some(' ') {
                    self.put("\\");
                }
            } else {
                self.put_char(c);
            }
            after_space = c == ' ';
        }
        self.put("\"");
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n']) {
            self.put("2");
        }
        let content = text.trim_end_matches('\n');
        match text.len() - content.len() {
            0 => self.put("-"),
            1 if !content.is_empty() => {}
            _ => self.put("+"),
        }
        self.newline();
        let lines = text.strip_suffix('\n').unwrap_or(text);
        for line in lines.split('\n') {
            if !line.is_empty() {
                self.indent(indent);
                self.put(line);
            }
            self.newline();
        }
    }
}

/// A number on Go's way through JSON: whole floats come out as integers when their digits fit 64 bits.
fn number_text(number: &Number) -> String {
    match number.as_f64() {
        // JSON in Go has no negative zero.
        Some(0.0) => "0".to_owned(),
        Some(float) if number.is_f64() => {
            let digits = float.to_string();
            let is_integer = digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok();
            if is_integer { digits } else { number::format_f64(float) }
        }
        _ => number.to_string(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// The style of a string, as a mapping's simple key or as a value.
fn style_of(text: &str, is_value: bool) -> Style {
    // What only escapes keep: special characters, and spaces in front of a line break.
    let fragile = text.chars().any(|c| !is_printable(c)) || text.contains(" \n");
    if text.contains('\n') {
        let literal = is_value && !fragile && !text.ends_with(' ');
        return if literal { Style::Literal } else { Style::Double };
    }
    // A plain `<<` as a key would merge.
    let merge = text == "<<" && !is_value;
    if fragile || merge || !reads_as_string(text) {
        Style::Double
    } else if text.starts_with(' ') || text.ends_with(' ') || has_indicators(text) {
        Style::Single
    } else {
        Style::Plain
    }
}

/// A line break, for YAML 1.1.
fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What is written as it is. Four-byte characters are not, nor what some readers take for line breaks.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}')
        && !matches!(c, '\u{FEFF}' | '\u{2028}' | '\u{2029}')
}

/// Whether a text of printable characters on one line needs quotes to not be taken for YAML syntax.
fn has_indicators(text: &str) -> bool {
    if text.starts_with("---") || text.starts_with("...") {
        return true;
    }
    let blank = |c: Option<&char>| c.is_none_or(|c| matches!(c, ' ' | '\t'));
    let mut chars = text.chars().peekable();
    let mut previous = None;
    while let Some(c) = chars.next() {
        let found = match (previous, c) {
            (None, '?' | '-') | (_, ':') => blank(chars.peek()),
            (None, c) => "#,[]{}&*!|>'\"%@`".contains(c),
            (Some(' ' | '\t'), '#') => true,
            _ => false,
        };
        if found {
            return true;
        }
        previous = Some(c);
    }
    false
}

/// Whether a plain `text` would be read back as a string, by us and by YAML 1.1 readers that know base 60.
fn reads_as_string(text: &str) -> bool {
    resolve::is_string(text, Schema::Config) && !is_base_60(text)
}

/// `190:20:30` or `1:30.5`: a number in base 60 for YAML 1.1.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (unsigned, ""),
    };
    let underscored = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !underscored(first) {
        return false;
    }
    let mut parts = parts.peekable();
    parts.peek().is_some()
        && underscored(fraction)
        && parts.all(|part| match part.as_bytes() {
            [unit] | [b'0'..=b'5', unit] => unit.is_ascii_digit(),
            _ => false,
        })
}

/// The escape sequence of a character inside double quotes; `None` when it stands for itself.
fn escape(c: char) -> Option<String> {
    Some(match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\0' => "\\0".to_owned(),
        '\u{07}' => "\\a".to_owned(),
        '\u{08}' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\u{0B}' => "\\v".to_owned(),
        '\u{0C}' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\u{1B}' => "\\e".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        c if is_printable(c) => return None,
        c => match u32::from(c) {
            code @ ..=0xFF => format!("\\x{code:02X}"),
            code @ ..=0xFFFF => format!("\\u{code:04X}"),
            code => format!("\\U{code:08X}"),
        },
    })
}

/// Sorts keys. By merging, since [`natural_order`] has cycles (`2` < `10` < `1a` < `2`), which the standard library's sort
/// need not bear; Go's result is random then.
fn in_natural_order(keys: Vec<&String>) -> Vec<&String> {
    // Without digits there are no cycles, and most mappings are in order already.
    let has_digits = keys.iter().any(|key| key.contains(is_digit));
    let in_order = |pair: &[&String]| !natural_order(pair[1], pair[0]).is_lt();
    if !has_digits && keys.windows(2).all(in_order) {
        return keys;
    }
    merge_sorted(keys)
}

fn merge_sorted(mut keys: Vec<&String>) -> Vec<&String> {
    if keys.len() < 2 {
        return keys;
    }
    let mut right = merge_sorted(keys.split_off(keys.len() / 2)).into_iter().peekable();
    let mut merged = Vec::with_capacity(keys.len() + right.len());
    for key in merge_sorted(keys) {
        while let Some(other) = right.next_if(|other| natural_order(other, key).is_lt()) {
            merged.push(other);
        }
        merged.push(key);
    }
    merged.extend(right);
    merged
}

/// The order of keys: letters by code point and behind everything else, runs of digits by their number.
fn natural_order(a: &str, b: &str) -> Ordering {
    let mut pairs = a.char_indices().zip(b.chars());
    let Some(((at, x), y)) = pairs.find(|((_, x), y)| x != y) else {
        return a.len().cmp(&b.len());
    };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(&y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (run_x, run_y) = (digits(&a[at..]), digits(&b[at..]));
    // A zero inside of a number that has already begun counts as a digit; in front of one it does not.
    let inside = (x == '0' || y == '0')
        && a[..at].chars().rev().take_while(|c| is_digit(*c)).any(|c| c != '0');
    let number = |run: &str| {
        run.chars().fold(i64::from(inside), |number, c| {
            number
                .wrapping_mul(10)
                .wrapping_add(i64::from(u32::from(c)) - i64::from(u32::from('0')))
        })
    };
    let (len_x, len_y) = (run_x.chars().count(), run_y.chars().count());
    number(run_x).cmp(&number(run_y)).then(len_x.cmp(&len_y)).then(x.cmp(&y))
}

/// The digits at the start of a text.
fn digits(text: &str) -> &str {
    &text[..text.find(|c| !is_digit(c)).unwrap_or(text.len())]
}

fn is_digit(c: char) -> bool {
    c.is_numeric()
}
