//! The index of a Helm repository, read as it comes: indexes have tens of megabytes, of which one chart is wanted.

use std::io::{BufRead, Read};

use yaml_rust2::{Event, parser::Parser, scanner::TScalarStyle};

/// A version of a chart in an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexEntry {
    /// The version.
    pub version: String,
    /// Where to download it, relative to the index or absolute.
    pub urls: Vec<String>,
    /// SHA-256 of the archive, with or without `sha256:`.
    pub digest: Option<String>,
}

/// What an index has of a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// The versions, in order of the index; `None` when it does not have the chart.
    pub entries: Option<Vec<IndexEntry>>,
    /// The names of all charts, to tell the user of one that is nearly the same.
    pub names: Vec<String>,
}

/// Nesting beyond this is no index.
const MAX_DEPTH: usize = 64;
/// Names that are remembered.
const MAX_NAMES: usize = 100_000;

/// Reads the versions of one chart from an index, YAML or JSON, holding nothing else of it. Blocking.
///
/// # Errors
/// When the text is no index; the message says why.
pub fn read_index(text: impl BufRead, chart: &str) -> Result<Index, String> {
    let mut failed = None;
    let chars = Utf8 { bytes: text.bytes(), failed: &mut failed };
    let mut parser = Parser::new(chars);
    let read = Reader { parser: &mut parser, chart, index: Index::default() }.run();
    drop(parser);
    match failed {
        Some(message) => Err(message),
        None => read,
    }
}

struct Reader<'a, T: Iterator<Item = char>> {
    parser: &'a mut Parser<T>,
    chart: &'a str,
    index: Index,
}

impl<T: Iterator<Item = char>> Reader<'_, T> {
    fn next(&mut self) -> Result<Event, String> {
        let (event, _) = self.parser.next_token().map_err(|error| error.to_string())?;
        Ok(event)
    }

    fn run(mut self) -> Result<Index, String> {
        let mut is_index = false;
        loop {
            match self.next()? {
                Event::StreamStart | Event::DocumentStart | Event::Nothing => {}
                Event::MappingStart(..) => break,
                Event::Scalar(text, TScalarStyle::Plain, ..) if text.is_empty() => {}
                _ => return Err("is no index of a Helm repository".to_owned()),
            }
        }
        while let Some(key) = self.key()? {
            match key.as_str() {
                "apiVersion" => {
                    is_index = true;
                    self.skip()?;
                }
                "entries" => {
                    is_index = true;
                    self.entries()?;
                }
                _ => self.skip()?,
            }
        }
        if is_index { Ok(self.index) } else { Err("is no index of a Helm repository".to_owned()) }
    }

    /// The next key of the mapping that is open; `None` at its end.
    fn key(&mut self) -> Result<Option<String>, String> {
        match self.next()? {
            Event::MappingEnd => Ok(None),
            Event::Scalar(text, ..) => Ok(Some(text)),
            _ => Err("has a key that is no text".to_owned()),
        }
    }

    /// Reads over one value.
    fn skip(&mut self) -> Result<(), String> {
        let event = self.next()?;
        self.skip_rest(&event)
    }

    fn skip_rest(&mut self, first: &Event) -> Result<(), String> {
        let mut depth = usize::from(is_start(first));
        while depth > 0 {
            let event = self.next()?;
            if is_start(&event) {
                depth += 1;
            } else if matches!(event, Event::MappingEnd | Event::SequenceEnd) {
                depth -= 1;
            } else if matches!(event, Event::StreamEnd) {
                return Err("ends in the middle".to_owned());
            }
            if depth > MAX_DEPTH {
                return Err("is nested too deeply".to_owned());
            }
        }
        Ok(())
    }

    fn entries(&mut self) -> Result<(), String> {
        match self.next()? {
            Event::MappingStart(..) => {}
            // An empty repository.
            Event::Scalar(..) => return Ok(()),
            _ => return Err("entries is no mapping".to_owned()),
        }
        while let Some(name) = self.key()? {
            if name == self.chart {
                let versions = self.versions()?;
                self.index.entries.get_or_insert_default().extend(versions);
            } else {
                if self.index.names.len() < MAX_NAMES {
                    self.index.names.push(name);
                }
                self.skip()?;
            }
        }
        Ok(())
    }

    fn versions(&mut self) -> Result<Vec<IndexEntry>, String> {
        let mut versions = Vec::new();
        match self.next()? {
            Event::SequenceStart(..) => {}
            Event::Scalar(..) => return Ok(versions),
            _ => return Err(format!("entries.{} is no list", self.chart)),
        }
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(versions),
                Event::MappingStart(..) => {
                    let entry = self.version()?;
                    // Helm passes over entries without one, too.
                    if !entry.version.is_empty() {
                        versions.push(entry);
                    }
                }
                other => self.skip_rest(&other)?,
            }
        }
    }

    fn version(&mut self) -> Result<IndexEntry, String> {
        let mut entry = IndexEntry::default();
        while let Some(key) = self.key()? {
            match key.as_str() {
                "version" => entry.version = self.text()?.unwrap_or_default(),
                "digest" => entry.digest = self.text()?.filter(|text| !text.is_empty()),
                "urls" => match self.next()? {
                    Event::SequenceStart(..) => loop {
                        match self.next()? {
                            Event::SequenceEnd => break,
                            Event::Scalar(text, ..) => entry.urls.push(text),
                            other => self.skip_rest(&other)?,
                        }
                    },
                    other => self.skip_rest(&other)?,
                },
                _ => self.skip()?,
            }
        }
        Ok(entry)
    }

    fn text(&mut self) -> Result<Option<String>, String> {
        match self.next()? {
            Event::Scalar(text, ..) => Ok(Some(text)),
            other => self.skip_rest(&other).map(|()| None),
        }
    }
}

fn is_start(event: &Event) -> bool {
    matches!(event, Event::MappingStart(..) | Event::SequenceStart(..))
}

/// The characters of a stream of bytes. What cannot be read ends them, and is noted.
struct Utf8<'a, R: Read> {
    bytes: std::io::Bytes<R>,
    failed: &'a mut Option<String>,
}

impl<R: Read> Utf8<'_, R> {
    fn byte(&mut self) -> Option<u8> {
        match self.bytes.next()? {
            Ok(byte) => Some(byte),
            Err(error) => {
                *self.failed = Some(error.to_string());
                None
            }
        }
    }
}

impl<R: Read> Iterator for Utf8<'_, R> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let first = self.byte()?;
        if first.is_ascii() {
            return Some(char::from(first));
        }
        let length = match first {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        };
        let mut buffer = [first, 0, 0, 0];
        // What is cut off is no character either.
        let mut read = 1;
        while let Some(byte) = (read < length).then(|| self.byte()).flatten() {
            buffer[read] = byte;
            read += 1;
        }
        let text = std::str::from_utf8(&buffer[..read]);
        if let Some(c) = text.ok().and_then(|text| text.chars().next()) {
            return Some(c);
        }
        self.failed.get_or_insert_with(|| "is not UTF-8".to_owned());
        None
    }
}
