//! Filters: `?(@.name == "web" && @.ports[0].port > 80)`.

use std::cmp::Ordering;

use regex::Regex;
use serde_json::Value;

use super::{
    JsonPath, Step,
    parse::{Cursor, Parsed, steps},
};
use crate::object::get_at;

/// A condition on a value.
#[derive(Debug, Clone)]
pub(super) enum Filter {
    Any(Vec<Filter>),
    All(Vec<Filter>),
    Not(Box<Filter>),
    Exists(Operand),
    Compare(Operand, Operator, Operand),
    Matches(Operand, Regex),
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

#[derive(Debug, Clone)]
pub(super) enum Operand {
    Literal(Value),
    /// Relative to the value at hand; the first match counts.
    Path(Vec<Step>),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Filter {
    /// Whether `value` satisfies the condition.
    pub(super) fn matches(&self, value: &Value) -> bool {
        match self {
            Self::Any(filters) => filters.iter().any(|filter| filter.matches(value)),
            Self::All(filters) => filters.iter().all(|filter| filter.matches(value)),
            Self::Not(filter) => !filter.matches(value),
            Self::Exists(operand) => operand.find(value).is_some(),
            Self::Compare(left, operator, right) => {
                operator.holds(left.find(value).as_ref(), right.find(value).as_ref())
            }
            Self::Matches(operand, regex) => operand
                .find(value)
                .is_some_and(|text| text.as_str().is_some_and(|t| regex.is_match(t))),
        }
    }
}

impl Operand {
    fn find(&self, value: &Value) -> Option<Value> {
        match self {
            Self::Literal(literal) => Some(literal.clone()),
            Self::Path(steps) if steps.is_empty() => Some(value.clone()),
            Self::Path(steps) => {
                let paths = JsonPath(steps.clone()).locate(value);
                paths.first().and_then(|path| get_at(value, path)).cloned()
            }
        }
    }
}

impl Operator {
    fn holds(self, left: Option<&Value>, right: Option<&Value>) -> bool {
        let order = match (left, right) {
            (Some(Value::Number(a)), Some(Value::Number(b))) => {
                a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b))
            }
            (Some(Value::String(a)), Some(Value::String(b))) => Some(a.cmp(b)),
            (a, b) if a == b => Some(Ordering::Equal),
            _ => None,
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

/// A filter, with or without parentheses, the `?` being taken already.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Parsed<Filter> {
    let mut alternatives = vec![all(cursor)?];
    loop {
        cursor.skip_spaces();
        if !cursor.eat("||") {
            break;
        }
        alternatives.push(all(cursor)?);
    }
    Ok(single(alternatives, Filter::Any))
}

fn all(cursor: &mut Cursor<'_>) -> Parsed<Filter> {
    let mut filters = vec![one(cursor)?];
    loop {
        cursor.skip_spaces();
        if !cursor.eat("&&") {
            break;
        }
        filters.push(one(cursor)?);
    }
    Ok(single(filters, Filter::All))
}

fn single(mut filters: Vec<Filter>, many: fn(Vec<Filter>) -> Filter) -> Filter {
    if filters.len() == 1 { filters.swap_remove(0) } else { many(filters) }
}

fn one(cursor: &mut Cursor<'_>) -> Parsed<Filter> {
    cursor.skip_spaces();
    if cursor.eat("(") {
        let inner = parse(cursor)?;
        cursor.skip_spaces();
        cursor.expect(")", "expected )")?;
        return Ok(inner);
    }
    if cursor.eat("!") {
        return Ok(Filter::Not(Box::new(one(cursor)?)));
    }
    let left = operand(cursor)?;
    cursor.skip_spaces();
    if cursor.eat("=~") || cursor.eat("~=") {
        cursor.skip_spaces();
        let pattern = match cursor.peek() {
            Some('/' | '\'' | '"') => raw_quoted(cursor)?,
            _ => return Err(cursor.error("expected a regular expression")),
        };
        let regex = Regex::new(&pattern)
            .map_err(|_| cursor.error("the regular expression is not valid"))?;
        return Ok(Filter::Matches(left, regex));
    }
    match operator(cursor) {
        Some(operator) => {
            cursor.skip_spaces();
            Ok(Filter::Compare(left, operator, operand(cursor)?))
        }
        None => Ok(Filter::Exists(left)),
    }
}

/// A quoted text whose backslashes are kept, except before the quote.
fn raw_quoted(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let quote = cursor.peek().unwrap_or('/');
    let delimiter = quote.to_string();
    cursor.eat(&delimiter);
    let mut out = String::new();
    loop {
        out.push_str(&cursor.take_while(|c| c != quote && c != '\\'));
        if cursor.eat(&delimiter) {
            return Ok(out);
        }
        if !cursor.eat("\\") {
            return Err(cursor.error("regular expression not closed"));
        }
        if cursor.eat(&delimiter) {
            out.push(quote);
        } else {
            out.push('\\');
        }
    }
}

fn operator(cursor: &mut Cursor<'_>) -> Option<Operator> {
    let table = [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    table.into_iter().find_map(|(text, operator)| cursor.eat(text).then_some(operator))
}

fn operand(cursor: &mut Cursor<'_>) -> Parsed<Operand> {
    match cursor.peek() {
        Some('@' | '$') => steps(cursor).map(Operand::Path),
        Some('\'' | '"') => cursor.quoted().map(|text| Operand::Literal(Value::String(text))),
        _ => {
            let word = cursor.take_while(|c| c.is_alphanumeric() || "-+._".contains(c));
            let literal = serde_json::from_str::<Value>(&word)
                .map_err(|_| cursor.error("expected a path or a value"))?;
            Ok(Operand::Literal(literal))
        }
    }
}
