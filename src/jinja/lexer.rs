//! Jinja2's lexer with its default delimiters: text → tokens, with whitespace control and raw blocks resolved.

use std::sync::Arc;

use num_bigint::BigInt;

use super::ast::{Const, Pos};
use super::error::Raise;
use super::value::repr;

/// What a token is. Names and operators carry their spelling.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Data(Arc<str>),
    VariableBegin,
    VariableEnd,
    BlockBegin,
    BlockEnd,
    Name(Arc<str>),
    Str(Arc<str>),
    Integer,
    Float,
    Op(&'static str),
    Eof,
    /// The text cannot be tokenised from here on; the error waits in [`Tokens::error`].
    Broken,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Value of a number.
    pub(crate) number: Option<Const>,
    pub(crate) pos: Pos,
}

/// All tokens of a template. The last one is `Eof` or `Broken`.
pub(crate) struct Tokens {
    pub(crate) tokens: Vec<Token>,
    pub(crate) error: Option<Raise>,
}

impl Kind {
    /// How Jinja2's messages name this token.
    pub(crate) fn describe(&self) -> &str {
        match self {
            Kind::Name(name) => name,
            Kind::Op(op) => op,
            Kind::Data(_) => "template data / text",
            Kind::VariableBegin => "begin of print statement",
            Kind::VariableEnd => "end of print statement",
            Kind::BlockBegin => "begin of statement block",
            Kind::BlockEnd => "end of statement block",
            Kind::Str(_) => "string",
            Kind::Integer => "integer",
            Kind::Float => "float",
            Kind::Eof | Kind::Broken => "end of template",
        }
    }
}

/// Line breaks as `\n`, and one line break less at the end.
pub(crate) fn normalize(source: &str) -> String {
    let mut text = normalize_newlines(source);
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

fn normalize_newlines(text: &str) -> String {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.to_owned()
    }
}

/// Tokenises a text whose line breaks are normalised.
pub(crate) fn tokenize(source: &str) -> Tokens {
    let mut lexer = Lexer { source, at: 0, line: 1, column: 1, counted: 0, tokens: Vec::new() };
    let error = lexer.run().err();
    let kind = if error.is_some() { Kind::Broken } else { Kind::Eof };
    // As in Jinja2, the end is where the last token began.
    let pos = lexer.tokens.last().map_or(Pos { line: 1, column: 1 }, |token| token.pos);
    lexer.tokens.push(Token { kind, number: None, pos });
    Tokens { tokens: lexer.tokens, error }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: u32,
    column: u32,
    counted: usize,
    tokens: Vec<Token>,
}

const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}",
    ">", "<", "=", ".", ":", "|", ",", ";",
];

impl<'a> Lexer<'a> {
    /// Position of a byte offset, which must not lie before the last one asked for.
    fn pos(&mut self, offset: usize) -> Pos {
        if offset > self.counted {
            for c in self.source[self.counted..offset].chars() {
                if c == '\n' {
                    self.line += 1;
                    self.column = 1;
                } else {
                    self.column += 1;
                }
            }
            self.counted = offset;
        }
        Pos { line: self.line, column: self.column }
    }

    fn push(&mut self, kind: Kind, offset: usize) {
        let pos = self.pos(offset);
        self.tokens.push(Token { kind, number: None, pos });
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn data(&mut self, text: &str, offset: usize) {
        if !text.is_empty() {
            self.push(Kind::Data(text.into()), offset);
        }
    }

    fn run(&mut self) -> Result<(), Raise> {
        while self.at < self.source.len() {
            let start = self.at;
            let Some((index, tag)) = find_tag(self.rest()) else {
                let text = self.rest();
                self.at = self.source.len();
                self.data(text, start);
                return Ok(());
            };
            let tag_start = start + index;
            let mut text = &self.source[start..tag_start];
            let sign = self.source[tag_start + 2..].chars().next().filter(|c| "+-".contains(*c));
            if sign == Some('-') {
                text = text.trim_end();
            }
            self.data(text, start);
            self.at = tag_start + 2 + usize::from(sign.is_some());
            match tag {
                b'#' => self.comment(tag_start)?,
                b'%' => {
                    if let Some(length) = raw_begin(self.rest()) {
                        self.raw(length)?;
                    } else {
                        self.push(Kind::BlockBegin, tag_start);
                        self.tag(true)?;
                    }
                }
                _ => {
                    self.push(Kind::VariableBegin, tag_start);
                    self.tag(false)?;
                }
            }
        }
        Ok(())
    }

    fn comment(&mut self, start: usize) -> Result<(), Raise> {
        let Some(end) = self.rest().find("#}") else {
            return Err(Raise::syntax("Missing end of comment tag", self.pos(start)));
        };
        let strips = self.rest()[..end].ends_with('-');
        self.at += end + 2;
        if strips {
            self.skip_space();
        }
        Ok(())
    }

    fn raw(&mut self, begin: usize) -> Result<(), Raise> {
        let start = self.at + begin;
        let mut search = start;
        while let Some(index) = self.source[search..].find("{%") {
            let open = search + index;
            if let Some((length, strip_before, strip_after)) = raw_end(&self.source[open..]) {
                let mut text = &self.source[start..open];
                if strip_before {
                    text = text.trim_end();
                }
                self.data(text, start);
                self.at = open + length;
                if strip_after {
                    self.skip_space();
                }
                return Ok(());
            }
            search = open + 2;
        }
        Err(Raise::syntax("Missing end of raw directive", self.pos(start)))
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The inside of a block or print tag, up to and with its end.
    fn tag(&mut self, block: bool) -> Result<(), Raise> {
        let mut open: Vec<&'static str> = Vec::new();
        loop {
            if open.is_empty() && self.tag_end(block) {
                return Ok(());
            }
            self.skip_space();
            if open.is_empty() && self.tag_end(block) {
                return Ok(());
            }
            let start = self.at;
            let Some(first) = self.rest().chars().next() else { return Ok(()) };
            if first.is_ascii_digit() {
                self.number(start)?;
            } else if first.is_alphanumeric() || first == '_' {
                let rest = self.rest();
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                let name = &rest[..end.unwrap_or(rest.len())];
                if !first.is_alphabetic() && first != '_' {
                    let pos = self.pos(start);
                    return Err(Raise::syntax("Invalid character in identifier", pos));
                }
                self.at += name.len();
                self.push(Kind::Name(name.into()), start);
            } else if let Some(length) = string_length(self.rest()) {
                let body = normalize_newlines(&self.rest()[1..length - 1]);
                let pos = self.pos(start);
                let text = unescape(&body).map_err(|message| Raise::syntax(message, pos))?;
                self.at += length;
                self.push(Kind::Str(text.into()), start);
            } else if let Some(op) = OPERATORS.iter().find(|op| self.rest().starts_with(**op)) {
                self.balance(op, &mut open)?;
                self.at += op.len();
                self.push(Kind::Op(op), start);
            } else {
                let index = self.source[..start].chars().count();
                let shown = repr::str_repr(&first.to_string());
                let pos = self.pos(start);
                return Err(Raise::syntax(format!("unexpected char {shown} at {index}"), pos));
            }
        }
    }

    fn tag_end(&mut self, block: bool) -> bool {
        let (end, kind) = if block { ("%}", Kind::BlockEnd) } else { ("}}", Kind::VariableEnd) };
        let rest = self.rest();
        let start = self.at;
        if rest.starts_with(end) {
            self.at += 2;
        } else if block && rest.starts_with("+%}") {
            self.at += 3;
        } else if rest.starts_with('-') && rest[1..].starts_with(end) {
            self.at += 3;
            self.skip_space();
        } else {
            return false;
        }
        self.push(kind, start);
        true
    }

    fn balance(&mut self, op: &'static str, open: &mut Vec<&'static str>) -> Result<(), Raise> {
        match op {
            "{" => open.push("}"),
            "(" => open.push(")"),
            "[" => open.push("]"),
            "}" | ")" | "]" => {
                let message = match open.pop() {
                    None => format!("unexpected '{op}'"),
                    Some(expected) if expected != op => {
                        format!("unexpected '{op}', expected '{expected}'")
                    }
                    Some(_) => return Ok(()),
                };
                return Err(Raise::syntax(message, self.pos(self.at)));
            }
            _ => {}
        }
        Ok(())
    }

    fn number(&mut self, start: usize) -> Result<(), Raise> {
        let rest = self.rest().as_bytes();
        let after_dot = start > 0 && self.source.as_bytes()[start - 1] == b'.';
        let float = if after_dot { None } else { float_length(rest) };
        let pos = self.pos(start);
        let (length, kind, value) = if let Some(length) = float {
            let text = self.rest()[..length].replace('_', "");
            (length, Kind::Float, text.parse().ok().map(Const::Float))
        } else {
            let length = integer_length(rest);
            (length, Kind::Integer, parse_integer(&self.rest()[..length]))
        };
        let Some(value) = value else {
            return Err(Raise::syntax("invalid number", pos));
        };
        self.at += length;
        self.tokens.push(Token { kind, number: Some(value), pos });
        Ok(())
    }
}

/// The next `{{`, `{%` or `{#`: its offset and second byte.
fn find_tag(text: &str) -> Option<(usize, u8)> {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(index) = text[from..].find('{') {
        let at = from + index;
        match bytes.get(at + 1) {
            Some(second @ (b'{' | b'%' | b'#')) => return Some((at, *second)),
            _ => from = at + 1,
        }
    }
    None
}

/// After `{%` and its sign: the length of `raw %}` with the space that belongs to it.
fn raw_begin(rest: &str) -> Option<usize> {
    let after = rest.trim_start().strip_prefix("raw")?.trim_start();
    if let Some(after) = after.strip_prefix("-%}") {
        return Some(rest.len() - after.trim_start().len());
    }
    after.strip_prefix("%}").map(|after| rest.len() - after.len())
}

/// At `{%`: the length of an `endraw` tag, and whether it strips before and after.
fn raw_end(text: &str) -> Option<(usize, bool, bool)> {
    let rest = &text[2..];
    let strip_before = rest.starts_with('-');
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let rest = rest.trim_start().strip_prefix("endraw")?.trim_start();
    let strip_after = rest.starts_with('-');
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest).strip_prefix("%}")?;
    Some((text.len() - rest.len(), strip_before, strip_after))
}

/// `(\d+_)*\d+` at `from`: the end, or `from` when there is no digit.
fn digits(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() {
        let joins =
            bytes[at] == b'_' && at > from && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        if !bytes[at].is_ascii_digit() && !joins {
            break;
        }
        at += 1;
    }
    at
}

fn float_length(bytes: &[u8]) -> Option<usize> {
    let whole = digits(bytes, 0);
    let mut end = whole;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(bytes, end + 1);
        if fraction > end + 1 {
            end = fraction;
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let mut from = end + 1;
        if matches!(bytes.get(from), Some(b'+' | b'-')) {
            from += 1;
        }
        let exponent = digits(bytes, from);
        if exponent > from {
            return Some(exponent);
        }
    }
    (end > whole).then_some(end)
}

fn integer_length(bytes: &[u8]) -> usize {
    let run = |from: usize, accepts: fn(&u8) -> bool| {
        let mut at = from;
        loop {
            let step = usize::from(bytes.get(at) == Some(&b'_'));
            if !bytes.get(at + step).is_some_and(accepts) {
                return at;
            }
            at += step + 1;
        }
    };
    if bytes[0] != b'0' {
        return run(1, u8::is_ascii_digit);
    }
    let prefixed = match bytes.get(1) {
        Some(b'b' | b'B') => run(2, |b| matches!(b, b'0' | b'1')),
        Some(b'o' | b'O') => run(2, |b| matches!(b, b'0'..=b'7')),
        Some(b'x' | b'X') => run(2, u8::is_ascii_hexdigit),
        _ => 2,
    };
    if prefixed > 2 { prefixed } else { run(1, |b| *b == b'0') }
}

fn parse_integer(text: &str) -> Option<Const> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let (digits, radix) = match text.get(..2) {
        Some("0b") => (&text[2..], 2),
        Some("0o") => (&text[2..], 8),
        Some("0x") => (&text[2..], 16),
        _ => (&*text, 10),
    };
    match i64::from_str_radix(digits, radix) {
        Ok(value) => Some(Const::Int(value)),
        Err(_) => BigInt::parse_bytes(digits.as_bytes(), radix).map(Const::Big),
    }
}

/// Length of a quoted string at the start of `text`, quotes included.
fn string_length(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut chars = text.char_indices().skip(1);
    while let Some((index, c)) = chars.next() {
        if c == '\\' {
            chars.next()?;
        } else if c == quote {
            return Some(index + 1);
        }
    }
    None
}

/// Python's `unicode-escape` on a string body.
fn unescape(body: &str) -> Result<String, &'static str> {
    if !body.contains('\\') {
        return Ok(body.to_owned());
    }
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(index) = rest.find('\\') {
        out.push_str(&rest[..index]);
        rest = &rest[index + 1..];
        let Some(escape) = rest.chars().next() else { return Err("\\ at end of string") };
        rest = &rest[escape.len_utf8()..];
        match escape {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(escape),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\x0b'),
            'x' => rest = push_hex(&mut out, rest, 2, "truncated \\xXX escape")?,
            'u' => rest = push_hex(&mut out, rest, 4, "truncated \\uXXXX escape")?,
            'U' => rest = push_hex(&mut out, rest, 8, "truncated \\UXXXXXXXX escape")?,
            'N' => return Err("unknown Unicode character name"),
            '0'..='7' => {
                let more = rest.bytes().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let digits = format!("{escape}{}", &rest[..more]);
                rest = &rest[more..];
                let code = u32::from_str_radix(&digits, 8).unwrap_or(0);
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            other => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn push_hex<'a>(
    out: &mut String,
    rest: &'a str,
    digits: usize,
    message: &'static str,
) -> Result<&'a str, &'static str> {
    let hex = rest.get(..digits).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    let code = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).ok_or(message)?;
    if code > 0x0010_ffff {
        return Err("illegal Unicode character");
    }
    // Rust strings hold no surrogates; Python would fail when it encodes the output.
    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    Ok(&rest[digits..])
}
