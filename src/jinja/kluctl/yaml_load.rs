//! `from_yaml`: what PyYAML's safe loader makes of one document.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use yaml_rust2::parser::{Event, Parser, Tag};
use yaml_rust2::scanner::{Marker, TScalarStyle};

use super::yaml_scalar::{self as scalar, Kind};
use crate::jinja::error::{Raise, Res};
use crate::jinja::value::container::{Entries, insert};
use crate::jinja::value::repr::str_repr;
use crate::jinja::value::{Budget, Dict, Key, Value};

const STANDARD_TAG: &str = "tag:yaml.org,2002:";
const MAX_DEPTH: usize = 100;

/// The only document of a text; nothing gives `none`.
pub(super) fn load(text: &str, budget: &Budget) -> Res<Value> {
    budget.bytes(text.len())?;
    if let Some((at, c)) = text.chars().enumerate().find(|(_, c)| is_control(*c)) {
        return Err(Raise::new(
            "ReaderError",
            format!(
                "unacceptable character #x{:04x}: special characters are not allowed\n  \
                 in \"<unicode string>\", position {at}",
                u32::from(c)
            ),
        ));
    }
    let mut loader = Loader { parser: Parser::new_from_str(text), anchors: HashMap::new(), budget };
    let mut result = None;
    loop {
        match loader.next()? {
            (Event::StreamEnd, _) => return Ok(result.unwrap_or(Value::None)),
            (Event::DocumentStart, mark) => {
                if result.is_some() {
                    return Err(error("expected a single document in the stream", mark));
                }
                let (event, mark) = loader.next()?;
                result = Some(loader.node(event, mark, 0)?.value);
            }
            _ => {}
        }
    }
}

/// Characters that YAML does not allow in a text.
fn is_control(c: char) -> bool {
    let allowed = matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    (c.is_control() && !allowed) || matches!(c, '\u{FFFE}' | '\u{FFFF}')
}

fn error(message: &str, mark: Marker) -> Raise {
    let (line, column) = (mark.line(), mark.col() + 1);
    Raise::new(
        "ConstructorError",
        format!("{message}, in the YAML text, line {line}, column {column}"),
    )
}

/// A value, and whether it was written as the merge key `<<`.
#[derive(Clone)]
struct Node {
    value: Value,
    merges: bool,
}

struct Loader<'a> {
    parser: Parser<std::str::Chars<'a>>,
    anchors: HashMap<usize, Value>,
    budget: &'a Budget,
}

impl Loader<'_> {
    fn next(&mut self) -> Res<(Event, Marker)> {
        self.budget.spend(1)?;
        self.parser.next_token().map_err(|fault| error(fault.info(), *fault.marker()))
    }

    fn node(&mut self, event: Event, mark: Marker, depth: usize) -> Res<Node> {
        if depth > MAX_DEPTH {
            return Err(Raise::recursion("the YAML text nests too deeply"));
        }
        let plain = |value| Node { value, merges: false };
        let (anchor, node) = match event {
            Event::Alias(id) => {
                let Some(value) = self.anchors.get(&id) else {
                    return Err(error("found undefined alias", mark));
                };
                return Ok(plain(value.clone()));
            }
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, construct(&text, style, tag.as_ref(), mark)?)
            }
            Event::SequenceStart(anchor, tag) => {
                (anchor, plain(self.sequence(anchor, tag.as_ref(), mark, depth)?))
            }
            Event::MappingStart(anchor, tag) => {
                (anchor, plain(self.mapping(anchor, tag.as_ref(), mark, depth)?))
            }
            _ => return Err(error("unexpected end of the document", mark)),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, node.value.clone());
        }
        Ok(node)
    }

    fn sequence(
        &mut self,
        anchor: usize,
        tag: Option<&Tag>,
        mark: Marker,
        depth: usize,
    ) -> Res<Value> {
        check_tag(tag, &["seq"], mark)?;
        // Registered before it is filled, so that it may contain itself.
        let value = Value::list(Vec::new());
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        let mut items = Vec::new();
        loop {
            let (event, mark) = self.next()?;
            if event == Event::SequenceEnd {
                break;
            }
            items.push(self.node(event, mark, depth + 1)?.value);
        }
        if let Value::List(list) = &value {
            if anchor > 0 {
                self.budget.list_changed(list);
            }
            *list.items_mut() = items;
        }
        Ok(value)
    }

    fn mapping(
        &mut self,
        anchor: usize,
        tag: Option<&Tag>,
        mark: Marker,
        depth: usize,
    ) -> Res<Value> {
        check_tag(tag, &["map"], mark)?;
        let value = Value::dict(Dict::new(Entries::new()));
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        let (mut merged, mut own) = (Vec::new(), Vec::new());
        loop {
            let (event, key_mark) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let key = self.node(event, key_mark, depth + 1)?;
            let (event, value_mark) = self.next()?;
            let item = self.node(event, value_mark, depth + 1)?.value;
            if key.merges {
                merge(&item, &mut merged, value_mark)?;
                continue;
            }
            if Key::new(&key.value).is_err() {
                return Err(error("found unhashable key", key_mark));
            }
            own.push((key.value, item));
        }
        if let Value::Dict(dict) = &value {
            if anchor > 0 {
                self.budget.dict_changed(dict);
            }
            let mut entries = dict.entries_mut();
            for (key, item) in merged.into_iter().chain(own) {
                self.budget.spend(1)?;
                insert(&mut entries, key, item)?;
            }
        }
        Ok(value)
    }
}

/// The entries a merge key brings; of several mappings the first one wins.
fn merge(item: &Value, merged: &mut Vec<(Value, Value)>, mark: Marker) -> Res<()> {
    match item {
        Value::Dict(dict) => {
            merged.extend(dict.pairs());
            Ok(())
        }
        Value::List(list) => {
            for part in list.to_vec().iter().rev() {
                let Value::Dict(dict) = part else {
                    return Err(error("expected a mapping for merging", mark));
                };
                merged.extend(dict.pairs());
            }
            Ok(())
        }
        _ => Err(error("expected a mapping or list of mappings for merging", mark)),
    }
}

/// The short name of a tag of YAML itself, or the whole tag.
fn tag_name(tag: &Tag) -> Result<&str, String> {
    if tag.handle == "!!" {
        return Ok(&tag.suffix);
    }
    if tag.handle.is_empty() || tag.handle == "!" {
        if let Some(name) = tag.suffix.strip_prefix(STANDARD_TAG) {
            return Ok(name);
        }
        return Err(format!("!{}", tag.suffix));
    }
    if tag.handle == STANDARD_TAG {
        return Ok(&tag.suffix);
    }
    Err(format!("{}{}", tag.handle, tag.suffix))
}

fn unknown_tag(tag: &str, mark: Marker) -> Raise {
    error(&format!("could not determine a constructor for the tag {}", str_repr(tag)), mark)
}

fn check_tag(tag: Option<&Tag>, allowed: &[&str], mark: Marker) -> Res<()> {
    let Some(tag) = tag else { return Ok(()) };
    match tag_name(tag) {
        Ok(name) if allowed.contains(&name) => Ok(()),
        Ok(name) => Err(unknown_tag(&format!("{STANDARD_TAG}{name}"), mark)),
        Err(_) if tag.suffix.is_empty() => Ok(()),
        Err(full) => Err(unknown_tag(&full, mark)),
    }
}

fn construct(text: &str, style: TScalarStyle, tag: Option<&Tag>, mark: Marker) -> Res<Node> {
    let plain = |value| Ok(Node { value, merges: false });
    let kind = match tag {
        None if style == TScalarStyle::Plain => scalar::resolve(text),
        None => Kind::Str,
        Some(tag) => match tag_name(tag) {
            Ok("str") => Kind::Str,
            Ok("int") => Kind::Int,
            Ok("float") => Kind::Float,
            Ok("bool") => Kind::Bool,
            Ok("null") => Kind::Null,
            Ok("timestamp") => Kind::Timestamp,
            Ok("binary") => {
                let compact: String = text.split_whitespace().collect();
                return match STANDARD.decode(compact) {
                    Ok(bytes) => plain(Value::Bytes(bytes.into())),
                    Err(_) => Err(error("failed to decode base64 data", mark)),
                };
            }
            Ok(name) => return Err(unknown_tag(&format!("{STANDARD_TAG}{name}"), mark)),
            // The non-specific tag `!`: plain text.
            Err(_) if tag.suffix.is_empty() => Kind::Str,
            Err(full) => return Err(unknown_tag(&full, mark)),
        },
    };
    let value = match kind {
        Kind::Null => Some(Value::None),
        Kind::Bool => scalar::boolean(text).map(Value::Bool),
        Kind::Int => scalar::integer(text),
        Kind::Float => scalar::float(text).map(Value::Float),
        Kind::Timestamp => scalar::timestamp(text),
        Kind::Str | Kind::Value => Some(Value::str(text)),
        Kind::Merge => return Ok(Node { value: Value::str(text), merges: true }),
    };
    match value {
        Some(value) => plain(value),
        None => Err(error(&format!("{} is not a valid value of its type", str_repr(text)), mark)),
    }
}
