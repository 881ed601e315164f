//! Text to steps.

use super::{JsonPathError, Step, filter};

/// A cursor over the characters of a path.
pub(super) struct Cursor<'a> {
    text: &'a str,
    chars: Vec<char>,
    next: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, chars: text.chars().collect(), next: 0 }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.next).copied()
    }

    /// Takes `expected` if it comes next.
    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let matches = expected
            .chars()
            .enumerate()
            .all(|(i, c)| self.chars.get(self.next + i).copied() == Some(c));
        if matches {
            self.next += expected.chars().count();
        }
        matches
    }

    pub(super) fn skip_spaces(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.next += 1;
        }
    }

    pub(super) fn expect(&mut self, expected: &str, problem: &'static str) -> Parsed<()> {
        if self.eat(expected) { Ok(()) } else { Err(self.error(problem)) }
    }

    /// Takes characters as long as they satisfy `is_part`.
    pub(super) fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> String {
        let start = self.next;
        while self.peek().is_some_and(&is_part) {
            self.next += 1;
        }
        self.chars[start..self.next].iter().collect()
    }

    pub(super) fn error(&self, problem: &'static str) -> JsonPathError {
        JsonPathError { path: self.text.to_owned(), problem, at: self.next + 1 }
    }

    /// A quoted text, the opening quote being next. A backslash takes the following character as it is.
    pub(super) fn quoted(&mut self) -> Parsed<String> {
        let quote = self.peek().ok_or_else(|| self.error("expected a quoted text"))?;
        self.next += 1;
        let mut out = String::new();
        while let Some(c) = self.peek() {
            self.next += 1;
            match c {
                '\\' => {
                    let escaped = self.peek().ok_or_else(|| self.error("text not closed"))?;
                    self.next += 1;
                    out.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        other => other,
                    });
                }
                c if c == quote => return Ok(out),
                c => out.push(c),
            }
        }
        Err(self.error("text not closed"))
    }
}

pub(super) type Parsed<T> = Result<T, JsonPathError>;

pub(super) fn parse(text: &str) -> Parsed<Vec<Step>> {
    let mut cursor = Cursor::new(text);
    let steps = steps(&mut cursor)?;
    match cursor.peek() {
        Some(_) => Err(cursor.error("unexpected character")),
        None if steps.is_empty() => Err(cursor.error("the path is empty")),
        None => Ok(steps),
    }
}

/// Steps up to a character that cannot continue a path.
pub(super) fn steps(cursor: &mut Cursor<'_>) -> Parsed<Vec<Step>> {
    let rooted = cursor.eat("$") || cursor.eat("@");
    let mut steps = Vec::new();
    if !rooted && cursor.peek().is_some_and(|c| is_name(c) || c == '*') {
        steps.push(name(cursor)?);
    }
    loop {
        if cursor.eat("..") {
            steps.push(Step::Descent);
            if cursor.peek().is_some_and(|c| is_name(c) || c == '*') {
                steps.push(name(cursor)?);
            }
        } else if cursor.eat(".") {
            steps.push(name(cursor)?);
        } else if cursor.eat("[") {
            steps.push(bracket(cursor)?);
        } else {
            return Ok(steps);
        }
    }
}

fn is_name(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !".[](){}*$@?,=<>!&|'\"~".contains(c)
}

fn name(cursor: &mut Cursor<'_>) -> Parsed<Step> {
    if cursor.eat("*") {
        return Ok(Step::Every);
    }
    let name = cursor.take_while(is_name);
    if name.is_empty() { Err(cursor.error("expected a field name")) } else { Ok(Step::Key(name)) }
}

/// What follows `[`, up to and with `]`.
fn bracket(cursor: &mut Cursor<'_>) -> Parsed<Step> {
    cursor.skip_spaces();
    if cursor.eat("?") {
        let filter = filter::parse(cursor)?;
        cursor.skip_spaces();
        cursor.expect("]", "expected ]")?;
        return Ok(Step::Filter(filter));
    }
    let mut steps = Vec::new();
    loop {
        cursor.skip_spaces();
        steps.push(bracket_entry(cursor)?);
        cursor.skip_spaces();
        if !cursor.eat(",") {
            break;
        }
    }
    cursor.expect("]", "expected ]")?;
    match steps.len() {
        1 => Ok(steps.swap_remove(0)),
        _ => Ok(Step::Union(steps)),
    }
}

fn bracket_entry(cursor: &mut Cursor<'_>) -> Parsed<Step> {
    match cursor.peek() {
        Some('*') => {
            cursor.eat("*");
            Ok(Step::Every)
        }
        Some('\'' | '"') => cursor.quoted().map(Step::Key),
        _ => index_or_slice(cursor),
    }
}

fn index_or_slice(cursor: &mut Cursor<'_>) -> Parsed<Step> {
    let start = integer(cursor)?;
    if !cursor.eat(":") {
        return start.map(Step::Index).ok_or_else(|| cursor.error("expected an index or a key"));
    }
    let end = integer(cursor)?;
    let step = if cursor.eat(":") { integer(cursor)?.unwrap_or(1) } else { 1 };
    if step < 1 {
        return Err(cursor.error("expected a positive step"));
    }
    Ok(Step::Slice { start, end, step })
}

fn integer(cursor: &mut Cursor<'_>) -> Parsed<Option<i64>> {
    let text = cursor.take_while(|c| c.is_ascii_digit() || c == '-');
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| cursor.error("expected an integer"))
}
