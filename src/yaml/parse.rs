//! From bytes to values: decoding, the walk over the parser's events, anchors.

use std::{borrow::Cow, cell::OnceCell, collections::HashMap};

use serde_json::Value;
use yaml_rust2::{
    parser::{Event, Parser, Tag as EventTag},
    scanner::{Marker, TScalarStyle},
};

use super::{
    Document, Positions, Schema, YamlError,
    entries::Entries,
    error::Problem,
    positions::{Children, Node},
    repair::Repairs,
    resolve::{self, Tag},
    text,
};
use crate::diagnostic::Position;

/// Deeper nesting than this is refused; no Kubernetes object comes near.
const MAX_DEPTH: usize = 256;

/// How many values aliases may add to a document, which bounds what a few lines can expand to. Long texts count more.
const MAX_ALIASED: usize = 400_000;

/// How many documents one file may have. Each takes some kilobytes while it is worked on.
const MAX_DOCUMENTS: usize = 20_000;

/// So many bytes of text count like one more value.
const BYTES_PER_VALUE: usize = 64;

/// What becomes of a key that is written twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplicates {
    /// It is an error.
    Refused,
    /// The last one counts.
    LastWins,
}

/// The documents of a text, null ones included, up to `limit`.
pub(super) fn documents(
    bytes: &[u8],
    schema: Schema,
    limit: usize,
) -> Result<Vec<Document>, YamlError> {
    documents_with(bytes, schema, Duplicates::Refused, limit)
}

/// As [`documents`], by a rule for keys that are written twice.
pub(super) fn documents_with(
    bytes: &[u8],
    schema: Schema,
    duplicates: Duplicates,
    limit: usize,
) -> Result<Vec<Document>, YamlError> {
    let text = text::decode(bytes)?;
    text::check_characters(&text)?;
    if limit > MAX_DOCUMENTS {
        check_count(&text)?;
    }
    let mut repairs = Repairs::default();
    let mut text = Cow::Borrowed(text::without_blank_end(&text));
    loop {
        let composer = Composer::new(&text, &repairs, schema, duplicates);
        let (info, at, open) = match compose(composer, limit) {
            Ok(documents) => return Ok(documents),
            Err(Stop::Yaml(error)) => return Err(error),
            Err(Stop::Scan { info, at, open }) => (info, at, open),
        };
        let Some(repaired) = repairs.repair(&text, &info, at, open) else {
            let hint = text::syntax_hint(&text, at, &info).map(str::to_owned).or_else(|| {
                let bracket = open.and_then(|open| text::bracket_at(&text, open));
                let Position { line, column } = repairs.original(open?);
                Some(format!("is the `{}` in line {line}, column {column} closed?", bracket?))
            });
            let problem = Problem::Syntax { message: text::syntax_message(&info), hint };
            return Err(YamlError::at(problem, repairs.original(at)));
        };
        text = Cow::Owned(repaired);
    }
}

/// Refuses a file with very many documents before any of them is read. Documents begin at lines with `---`, and only there.
fn check_count(text: &str) -> Result<(), YamlError> {
    let mut starts = text.lines().enumerate().filter(|(_, line)| line.starts_with("---"));
    let Some((line, _)) = starts.nth(MAX_DOCUMENTS) else { return Ok(()) };
    let message = format!("more than {MAX_DOCUMENTS} documents in one file");
    let problem = Problem::Value { message };
    Err(YamlError::at(problem, Position { line: line + 1, column: 1 }))
}

fn compose(mut composer: Composer<'_>, limit: usize) -> Result<Vec<Document>, Stop> {
    let mut found = Vec::new();
    while found.len() < limit {
        match composer.document()? {
            Some(document) => found.push(document),
            None => break,
        }
    }
    Ok(found)
}

/// Why reading stopped.
enum Stop {
    /// The parser met something; positions are those of the repaired text.
    Scan { info: String, at: Position, open: Option<Position> },
    /// The content is wrong.
    Yaml(YamlError),
}

impl From<YamlError> for Stop {
    fn from(error: YamlError) -> Self {
        Self::Yaml(error)
    }
}

/// As the parser counts, in the text it was given.
fn raw_position(marker: Marker) -> Position {
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
    /// The lines of the text, found when they are first asked for: files can have very many documents.
    lines: OnceCell<Vec<&'a str>>,
    has_tab: bool,
    repairs: &'a Repairs,
    schema: Schema,
    duplicates: Duplicates,
    anchors: HashMap<usize, Anchored>,
    aliased: usize,
    /// Where the collections start that are being read, innermost last, in the parser's counting.
    open: Vec<Position>,
    /// How many of them are around the outermost one in brackets, if there is one.
    around_brackets: Option<usize>,
    /// Values read so far in this document, expanded aliases included, and what long texts add.
    size: usize,
}

impl<'a> Composer<'a> {
    fn new(text: &'a str, repairs: &'a Repairs, schema: Schema, duplicates: Duplicates) -> Self {
        Self {
            parser: Parser::new_from_str(text),
            text,
            lines: OnceCell::new(),
            has_tab: text.contains('\t'),
            repairs,
            schema,
            duplicates,
            anchors: HashMap::new(),
            aliased: 0,
            open: Vec::new(),
            around_brackets: None,
            size: 0,
        }
    }

    fn next(&mut self) -> Result<(Event, Marker), Stop> {
        self.parser.next_token().map_err(|error| Stop::Scan {
            info: error.info().to_owned(),
            at: raw_position(*error.marker()),
            open: self.open.last().copied(),
        })
    }

    fn position(&self, marker: Marker) -> Position {
        self.repairs.original(raw_position(marker))
    }

    /// The next document, `None` at the end of the stream.
    fn document(&mut self) -> Result<Option<Document>, Stop> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(None),
                (Event::DocumentStart, _) => break,
                _ => {}
            }
        }
        self.anchors.clear();
        (self.aliased, self.size) = (0, 0);
        self.open.clear();
        self.around_brackets = None;
        let event = self.next()?;
        let (value, node) = self.node(event)?;
        self.next()?;
        Ok(Some(Document { value, positions: Positions(Some(node)) }))
    }

    fn node(&mut self, (event, marker): (Event, Marker)) -> Result<(Value, Node), Stop> {
        let at = self.position(marker);
        self.size += 1;
        let size = self.size;
        let (anchor, (value, node)) = match event {
            Event::Scalar(mut text, style, anchor, tag) => {
                // Of block scalars, the marker is somewhere inside.
                let in_block = matches!(style, TScalarStyle::Literal | TScalarStyle::Folded);
                if !text.is_empty() && !in_block {
                    self.check_indentation(marker, false)?;
                }
                self.end_block_scalar(&mut text, style, marker);
                self.size += text.len() / BYTES_PER_VALUE;
                (anchor, self.scalar(&text, style, tag.as_ref(), at)?)
            }
            Event::Alias(anchor) => return Ok(self.alias(anchor, at)?),
            // Tags on collections are of no consequence.
            Event::SequenceStart(anchor, _) => {
                self.enter(anchor, marker)?;
                (anchor, self.sequence(at)?)
            }
            Event::MappingStart(anchor, _) => {
                self.enter(anchor, marker)?;
                (anchor, self.mapping(at)?)
            }
            other => {
                let message = format!("unexpected {other:?}");
                return Err(YamlError::at(Problem::Syntax { message, hint: None }, at).into());
            }
        };
        if anchor > 0 {
            let (value, node, size) = (value.clone(), node.clone(), self.size - size + 1);
            self.anchors.insert(anchor, Anchored::Done { value, node, size });
        }
        Ok((value, node))
    }

    fn enter(&mut self, anchor: usize, marker: Marker) -> Result<(), YamlError> {
        let raw = raw_position(marker);
        if anchor > 0 {
            self.anchors.insert(anchor, Anchored::Open);
        }
        self.check_indentation(marker, true)?;
        if self.has_tab && self.around_brackets.is_none() && self.is_bracket(raw) {
            self.around_brackets = Some(self.open.len());
        }
        self.open.push(raw);
        if self.open.len() > MAX_DEPTH {
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            return Err(YamlError::at(Problem::Value { message }, self.position(marker)));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.open.pop();
        if self.around_brackets == Some(self.open.len()) {
            self.around_brackets = None;
        }
    }

    fn is_bracket(&self, at: Position) -> bool {
        let line = self.line(at.line).unwrap_or_default();
        matches!(line.chars().nth(at.column - 1), Some('[' | '{'))
    }

    /// Refuses tabs as indentation of what starts at `marker`, where the parser takes them. Of collections and keys, the
    /// indentation goes on behind `-`, `?` and `:`.
    fn check_indentation(&self, marker: Marker, compact: bool) -> Result<(), YamlError> {
        if !self.has_tab || self.around_brackets.is_some() {
            return Ok(());
        }
        let Position { line, column } = raw_position(marker);
        let before = self.line(line).unwrap_or_default().chars().take(column - 1);
        let mut tab = false;
        for c in before {
            match c {
                '\t' => tab = true,
                ' ' => {}
                '-' | '?' | ':' if compact => {}
                _ if compact => return Ok(()),
                _ => break,
            }
        }
        if !tab {
            return Ok(());
        }
        let message = "a tab is used as indentation".to_owned();
        let hint = Some(text::NO_TABS.to_owned());
        Err(YamlError::at(Problem::Syntax { message, hint }, self.position(marker)))
    }

    /// A line, counted from 1.
    fn line(&self, line: usize) -> Option<&'a str> {
        self.lines.get_or_init(|| self.text.lines().collect()).get(line.checked_sub(1)?).copied()
    }

    /// Where a block scalar ends with the text, the parser adds a line break that libyaml, and so Go, does not.
    fn end_block_scalar(&mut self, text: &mut String, style: TScalarStyle, marker: Marker) {
        if !matches!(style, TScalarStyle::Literal | TScalarStyle::Folded) || !text.ends_with('\n') {
            return;
        }
        if text == "\n" && self.is_empty_block_scalar(marker) {
            text.clear();
            return;
        }
        if self.text.ends_with(['\n', '\r']) {
            return;
        }
        let last = self.text.rsplit(['\n', '\r']).next().unwrap_or_default().trim_start();
        let fits = text.strip_suffix('\n').is_some_and(|content| content.ends_with(last));
        let at_end = fits
            && self.parser.peek().is_ok_and(|(_, next)| {
                next.line() > self.text.bytes().filter(|byte| *byte == b'\n').count()
            });
        if at_end {
            text.pop();
        }
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

    /// Without any content, only `+` with an empty line keeps a line break. The parser's marker is at the header then, which
    /// it is not otherwise.
    fn is_empty_block_scalar(&self, marker: Marker) -> bool {
        let header = self.line(marker.line()).unwrap_or_default();
        matches!(header.chars().nth(marker.col()), Some('|' | '>'))
            && (!header.contains('+') || self.line(marker.line() + 1).is_none())
    }

    fn sequence(&mut self, at: Position) -> Result<(Value, Node), Stop> {
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
        self.leave();
        Ok((Value::Array(values), Node { at, children: Children::List(nodes) }))
    }

    fn mapping(&mut self, mut at: Position) -> Result<(Value, Node), Stop> {
        let mut entries = Entries::default();
        loop {
            let (event, marker) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let key_at = self.position(marker);
            // Of a block mapping, the parser marks the first `:`.
            at = at.min(key_at);
            if is_merge(&event) {
                let value_event = self.next()?;
                let value_at = self.position(value_event.1);
                let (value, node) = self.node(value_event)?;
                entries.merge(value, node, value_at)?;
                continue;
            }
            self.check_indentation(marker, true)?;
            let key = self.key(event, key_at)?;
            let value_event = self.next()?;
            let (value, node) = self.node(value_event)?;
            if self.duplicates == Duplicates::LastWins {
                entries.forget(&key);
            }
            entries.insert(key, key_at, value, node)?;
        }
        self.leave();
        Ok(entries.finish(at))
    }

    fn key(&mut self, event: Event, at: Position) -> Result<String, YamlError> {
        let text = self.text;
        let refuse = move |found| {
            let line = text.lines().nth(at.line - 1).unwrap_or_default();
            let around: String = line.chars().skip(at.column.saturating_sub(2)).take(3).collect();
            let template = found == "a mapping" && around.contains("{{");
            let hint = template.then_some("quote texts that start with a template expression");
            YamlError::at(Problem::Key { found, hint }, at)
        };
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if anchor > 0 {
                    let (value, node) = self.scalar(&text, style, tag.as_ref(), at)?;
                    self.anchors.insert(anchor, Anchored::Done { value, node, size: 1 });
                }
                check_plain(&text, style, at)?;
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
        check_plain(text, style, at)?;
        let scalar = resolve::scalar(scalar_tag(tag, style), text, self.schema).map_err(refuse)?;
        let (value, written) = resolve::to_value(scalar, self.schema)
            .map_err(|message| refuse(format!("\"{text}\" cannot be used: {message}")))?;
        let mut node = Node::scalar(at);
        node.children = Children::Scalar(written);
        Ok((value, node))
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

/// Block scalars do not go in brackets, where the parser takes their headers for text.
fn check_plain(text: &str, style: TScalarStyle, at: Position) -> Result<(), YamlError> {
    if style != TScalarStyle::Plain || !text.starts_with(['|', '>']) {
        return Ok(());
    }
    let message = format!("`{}` cannot start a text in brackets", &text[..1]);
    let hint = Some("quote it".to_owned());
    Err(YamlError::at(Problem::Syntax { message, hint }, at))
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
