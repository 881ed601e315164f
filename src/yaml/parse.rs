//! From bytes to values: decoding, the walk over the parser's events, anchors, merge keys, duplicates.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};
use yaml_rust2::{
    parser::{Event, Parser, Tag as EventTag},
    scanner::{Marker, TScalarStyle},
};

use super::{
    Document, Positions, Schema, YamlError,
    error::Problem,
    positions::{Children, Node},
    resolve::{self, Tag},
    text,
};
use crate::diagnostic::Position;

/// Deeper nesting than this is refused; no Kubernetes object comes near.
const MAX_DEPTH: usize = 256;

/// How many values aliases may add to a document, which bounds what a few lines can expand to.
const MAX_ALIASED: usize = 400_000;

/// The documents of a text, null ones included, up to `limit`.
pub(super) fn documents(
    bytes: &[u8],
    schema: Schema,
    limit: usize,
) -> Result<Vec<Document>, YamlError> {
    let text = text::decode(bytes)?;
    text::check_characters(&text)?;
    let mut composer = Composer::new(&text, schema);
    let mut found = Vec::new();
    while found.len() < limit {
        match composer.document()? {
            Some(document) => found.push(document),
            None => break,
        }
    }
    Ok(found)
}

fn position(marker: Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

/// What an anchor stands for.
enum Anchored {
    /// Its value is being read: an alias to it would be endless.
    Open,
    Done {
        value: Value,
        node: Node,
        size: usize,
    },
}

struct Composer<'a> {
    parser: Parser<std::str::Chars<'a>>,
    text: &'a str,
    schema: Schema,
    anchors: HashMap<usize, Anchored>,
    aliased: usize,
    depth: usize,
    /// Values read so far in this document, expanded aliases included.
    size: usize,
}

impl<'a> Composer<'a> {
    fn new(text: &'a str, schema: Schema) -> Self {
        Self {
            parser: Parser::new_from_str(text),
            text,
            schema,
            anchors: HashMap::new(),
            aliased: 0,
            depth: 0,
            size: 0,
        }
    }

    fn next(&mut self) -> Result<(Event, Marker), YamlError> {
        let error = match self.parser.next_token() {
            Ok(event) => return Ok(event),
            Err(error) => error,
        };
        let at = position(*error.marker());
        let hint = text::syntax_hint(self.text, at, error.info());
        let message = text::syntax_message(error.info());
        Err(YamlError::at(Problem::Syntax { message, hint }, at))
    }

    /// The next document, `None` at the end of the stream.
    fn document(&mut self) -> Result<Option<Document>, YamlError> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(None),
                (Event::DocumentStart, _) => break,
                _ => {}
            }
        }
        self.anchors.clear();
        (self.aliased, self.size, self.depth) = (0, 0, 0);
        let event = self.next()?;
        let (value, node) = self.node(event)?;
        self.next()?;
        Ok(Some(Document { value, positions: Positions(Some(node)) }))
    }

    fn node(&mut self, (event, marker): (Event, Marker)) -> Result<(Value, Node), YamlError> {
        let at = position(marker);
        self.size += 1;
        let size = self.size;
        let (anchor, (value, node)) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, self.scalar(&text, style, tag.as_ref(), at)?)
            }
            Event::Alias(anchor) => return self.alias(anchor, at),
            Event::SequenceStart(anchor, tag) => {
                check_collection_tag(tag.as_ref(), "seq", at)?;
                self.enter(anchor, at)?;
                (anchor, self.sequence(at)?)
            }
            Event::MappingStart(anchor, tag) => {
                check_collection_tag(tag.as_ref(), "map", at)?;
                self.enter(anchor, at)?;
                (anchor, self.mapping(at)?)
            }
            other => {
                let message = format!("unexpected {other:?}");
                return Err(YamlError::at(Problem::Syntax { message, hint: None }, at));
            }
        };
        if anchor > 0 {
            let (value, node, size) = (value.clone(), node.clone(), self.size - size + 1);
            self.anchors.insert(anchor, Anchored::Done { value, node, size });
        }
        Ok((value, node))
    }

    fn enter(&mut self, anchor: usize, at: Position) -> Result<(), YamlError> {
        if anchor > 0 {
            self.anchors.insert(anchor, Anchored::Open);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            return Err(YamlError::at(Problem::Value { message }, at));
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(Value, Node), YamlError> {
        let refuse =
            |message: &str| YamlError::at(Problem::Alias { message: message.to_owned() }, at);
        match self.anchors.get(&anchor) {
            Some(Anchored::Done { value, node, size }) => {
                self.aliased += size;
                self.size += size;
                if self.aliased > MAX_ALIASED {
                    return Err(refuse("aliases expand to too much content"));
                }
                Ok((value.clone(), node.clone()))
            }
            Some(Anchored::Open) => Err(refuse("the anchor contains itself")),
            // The parser knows anchors of former documents, too.
            None => Err(refuse("there is no such anchor in this document")),
        }
    }

    fn sequence(&mut self, at: Position) -> Result<(Value, Node), YamlError> {
        let mut values = Vec::new();
        let mut nodes = Vec::new();
        loop {
            let event = self.next()?;
            if event.0 == Event::SequenceEnd {
                break;
            }
            let (value, node) = self.node(event)?;
            values.push(value);
            nodes.push(node);
        }
        self.depth -= 1;
        Ok((Value::Array(values), Node { at, children: Children::List(nodes) }))
    }

    fn mapping(&mut self, at: Position) -> Result<(Value, Node), YamlError> {
        let mut entries = Entries::default();
        loop {
            let (event, marker) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let key_at = position(marker);
            if is_merge(&event) {
                let value_event = self.next()?;
                let value_at = position(value_event.1);
                let (value, node) = self.node(value_event)?;
                entries.merge(value, node, value_at)?;
                continue;
            }
            let key = self.key(event, key_at)?;
            let value_event = self.next()?;
            let (value, node) = self.node(value_event)?;
            entries.insert(key, key_at, value, node)?;
        }
        self.depth -= 1;
        Ok(entries.finish(at))
    }

    fn key(&mut self, event: Event, at: Position) -> Result<String, YamlError> {
        let refuse = |found| YamlError::at(Problem::Key { found }, at);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if anchor > 0 {
                    let (value, node) = self.scalar(&text, style, tag.as_ref(), at)?;
                    self.anchors.insert(anchor, Anchored::Done { value, node, size: 1 });
                }
                let tag = scalar_tag(tag.as_ref(), style);
                let scalar = resolve::scalar(tag, &text, self.schema)
                    .map_err(|message| YamlError::at(Problem::Value { message }, at))?;
                resolve::to_key(scalar, &text, self.schema).map_err(refuse)
            }
            Event::Alias(anchor) => match self.alias(anchor, at)?.0 {
                Value::String(text) => Ok(text),
                Value::Bool(bool) => Ok(bool.to_string()),
                Value::Number(number) => Ok(number.to_string()),
                Value::Null => Err(refuse("null")),
                Value::Array(_) => Err(refuse("a list")),
                Value::Object(_) => Err(refuse("a mapping")),
            },
            Event::SequenceStart(..) => Err(refuse("a list")),
            _ => Err(refuse("a mapping")),
        }
    }

    fn scalar(
        &self,
        text: &str,
        style: TScalarStyle,
        tag: Option<&EventTag>,
        at: Position,
    ) -> Result<(Value, Node), YamlError> {
        let refuse = |message| YamlError::at(Problem::Value { message }, at);
        let scalar = resolve::scalar(scalar_tag(tag, style), text, self.schema).map_err(refuse)?;
        let (value, written) = resolve::to_value(scalar, self.schema)
            .map_err(|message| refuse(format!("\"{text}\" cannot be used: {message}")))?;
        let mut node = Node::scalar(at);
        node.children = Children::Scalar(written);
        Ok((value, node))
    }
}

/// A mapping's entries while it is read. Its own keys win over merged ones, earlier merged mappings over later ones.
#[derive(Default)]
struct Entries {
    values: Map<String, Value>,
    nodes: BTreeMap<String, (Position, Node)>,
    merged: Vec<(Map<String, Value>, Node)>,
}

impl Entries {
    fn insert(
        &mut self,
        key: String,
        at: Position,
        value: Value,
        node: Node,
    ) -> Result<(), YamlError> {
        if let Some((first, _)) = self.nodes.get(&key) {
            let problem = Problem::DuplicateKey { key, first: *first };
            return Err(YamlError::at(problem, at));
        }
        self.nodes.insert(key.clone(), (at, node));
        self.values.insert(key, value);
        Ok(())
    }

    /// Takes what `<<` refers to: a mapping or a list of mappings.
    fn merge(&mut self, value: Value, node: Node, at: Position) -> Result<(), YamlError> {
        let refuse = || {
            let expected = "a mapping or a list of mappings after `<<`".to_owned();
            let found = "something else".to_owned();
            YamlError::at(Problem::Type { expected, found }, at)
        };
        match (value, node.children) {
            (Value::Object(values), children) => {
                self.merged.push((values, Node { at: node.at, children }));
            }
            (Value::Array(values), Children::List(nodes)) => {
                for (value, node) in values.into_iter().zip(nodes) {
                    let Value::Object(values) = value else { return Err(refuse()) };
                    self.merged.push((values, node));
                }
            }
            _ => return Err(refuse()),
        }
        Ok(())
    }

    fn finish(mut self, at: Position) -> (Value, Node) {
        for (values, node) in self.merged {
            let Children::Map(mut nodes) = node.children else { continue };
            for (key, value) in values {
                if self.values.contains_key(&key) {
                    continue;
                }
                if let Some(node) = nodes.remove(&key) {
                    self.nodes.insert(key.clone(), node);
                }
                self.values.insert(key, value);
            }
        }
        (Value::Object(self.values), Node { at, children: Children::Map(self.nodes) })
    }
}

fn is_merge(event: &Event) -> bool {
    match event {
        Event::Scalar(text, TScalarStyle::Plain, _, None) => text == "<<",
        Event::Scalar(_, _, _, Some(tag)) => core_suffix(tag) == Some("merge"),
        _ => false,
    }
}

/// The name of a tag of YAML itself: `str` for `!!str` and `!<tag:yaml.org,2002:str>`.
fn core_suffix(tag: &EventTag) -> Option<&str> {
    const CORE: &str = "tag:yaml.org,2002:";
    if tag.handle == CORE {
        return Some(&tag.suffix);
    }
    tag.handle.is_empty().then(|| tag.suffix.strip_prefix(CORE)).flatten()
}

fn scalar_tag(tag: Option<&EventTag>, style: TScalarStyle) -> Tag {
    let Some(tag) = tag else {
        return if style == TScalarStyle::Plain { Tag::Implied } else { Tag::Str };
    };
    match core_suffix(tag) {
        Some("str") => Tag::Str,
        Some("int") => Tag::Int,
        Some("float") => Tag::Float,
        Some("bool") => Tag::Bool,
        Some("null") => Tag::Null,
        Some("timestamp") => Tag::Timestamp,
        Some("binary") => Tag::Binary,
        _ => Tag::Custom,
    }
}

/// Refuses YAML's own tags on collections of another kind; a document's own tags say nothing to us.
fn check_collection_tag(tag: Option<&EventTag>, kind: &str, at: Position) -> Result<(), YamlError> {
    match tag.and_then(core_suffix) {
        Some(suffix) if matches!(suffix, "str" | "int" | "float" | "bool" | "null" | "binary") => {
            let message = format!("a !!{kind} is tagged !!{suffix}");
            Err(YamlError::at(Problem::Value { message }, at))
        }
        _ => Ok(()),
    }
}
