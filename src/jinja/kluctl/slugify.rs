//! python-slugify.

use std::rc::Rc;

use regex::Regex;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::jinja::args::{Bound, Signature};
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::filters::elements_of;
use crate::jinja::filters::html::unescape_entities;
use crate::jinja::value::Value;
use crate::jinja::value::repr::to_str;

const ONE: Signature = Signature::new("slugify", &["s"], 1);
const SIGNATURE: Signature = Signature::new(
    "slugify",
    &[
        "text",
        "entities",
        "decimal",
        "hexadecimal",
        "max_length",
        "word_boundary",
        "separator",
        "save_order",
        "stopwords",
        "regex_pattern",
        "lowercase",
        "replacements",
        "allow_unicode",
    ],
    1,
);

#[expect(clippy::struct_excessive_bools, reason = "python-slugify's own options")]
struct Options {
    entities: [bool; 3],
    max_length: usize,
    word_boundary: bool,
    separator: Rc<str>,
    save_order: bool,
    stopwords: Vec<String>,
    pattern: Option<Regex>,
    lowercase: bool,
    replacements: Vec<(String, String)>,
    allow_unicode: bool,
}

pub(super) fn slugify(it: &mut Interp<'_>, raw: &Bound) -> Res<Value> {
    let mut args = raw.raw.clone();
    if args.pos.len() > 1 {
        args.pos.truncate(2);
        args.kw.clear();
        args.bind(Some(&ONE))?;
        return Ok(Value::None);
    }
    let args = args.bind(Some(&SIGNATURE))?;
    let flag = |index: usize, default: bool| args.given(index).map_or(Ok(default), Value::is_true);
    let Some(text) = args.get(0).as_str() else {
        args.get(0).require()?;
        let name = args.get(0).type_name();
        let message = format!("decoding to str: need a bytes-like object, {name} found");
        return Err(Raise::type_error(message));
    };
    it.budget.bytes(text.len().saturating_mul(4))?;
    let options = Options {
        entities: [flag(1, true)?, flag(2, true)?, flag(3, true)?],
        max_length: usize::try_from(args.int(4, 0)?).unwrap_or(0),
        word_boundary: flag(5, false)?,
        separator: match args.given(6) {
            Some(separator) => Rc::from(&*to_str(separator, &it.budget)?),
            None => Rc::from("-"),
        },
        save_order: flag(7, false)?,
        stopwords: texts(it, args.optional(8))?,
        pattern: match args.optional(9) {
            None => None,
            Some(pattern) => {
                let pattern = to_str(pattern, &it.budget)?;
                let compiled = Regex::new(&pattern);
                Some(compiled.map_err(|error| Raise::new("re.error", error.to_string()))?)
            }
        },
        lowercase: flag(10, true)?,
        replacements: replacements(it, args.optional(11))?,
        allow_unicode: flag(12, false)?,
    };
    Ok(Value::str(slug(text, &options)))
}

fn texts(it: &Interp<'_>, value: Option<&Value>) -> Res<Vec<String>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    elements_of(it, value)?.iter().map(|item| Ok(to_str(item, &it.budget)?.to_string())).collect()
}

fn replacements(it: &Interp<'_>, value: Option<&Value>) -> Res<Vec<(String, String)>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for pair in elements_of(it, value)? {
        match texts(it, Some(&pair))?.as_slice() {
            [old, new] => out.push((old.clone(), new.clone())),
            _ => return Err(Raise::value_error("each replacement needs an old and a new text")),
        }
    }
    Ok(out)
}

fn replace_all(mut text: String, replacements: &[(String, String)]) -> String {
    for (old, new) in replacements {
        text = text.replace(old, new);
    }
    text
}

/// Runs of characters that may not stay become one dash.
fn dashed(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if keep(c) {
            out.push(c);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    out
}

fn slug(text: &str, options: &Options) -> String {
    let mut text = replace_all(text.to_owned(), &options.replacements);
    text = dashed(&text, |c| c != '\'');
    text = if options.allow_unicode {
        text.nfkc().collect()
    } else {
        unidecode::unidecode(&text.nfkd().collect::<String>())
    };
    text = unescape_entities(&text, options.entities);
    text = if options.allow_unicode { text.nfkc().collect() } else { text.nfkd().collect() };
    if options.lowercase {
        text = text.to_lowercase();
    }
    text = without_number_commas(&text.replace('\'', ""));
    text = match &options.pattern {
        Some(pattern) => pattern.replace_all(&text, "-").into_owned(),
        None if options.allow_unicode => {
            dashed(&text, |c| c.is_alphanumeric() && !is_combining_mark(c))
        }
        None => dashed(&text, |c| c == '-' || c.is_ascii_alphanumeric()),
    };
    let words: Vec<&str> = text.split('-').filter(|word| !word.is_empty()).collect();
    let stopwords: Vec<String> = if options.lowercase {
        options.stopwords.iter().map(|word| word.to_lowercase()).collect()
    } else {
        options.stopwords.clone()
    };
    let words: Vec<&str> =
        words.into_iter().filter(|word| !stopwords.iter().any(|stop| stop == word)).collect();
    text = replace_all(words.join("-"), &options.replacements);
    if options.max_length > 0 {
        text = truncate(&text, options);
    }
    if &*options.separator == "-" { text } else { text.replace('-', &options.separator) }
}

fn without_number_commas(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let digit = |index: Option<usize>| {
        index.and_then(|index| chars.get(index)).is_some_and(|c| c.is_numeric())
    };
    let keeps = |(index, c): &(usize, &char)| {
        !(**c == ',' && digit(index.checked_sub(1)) && digit(Some(index + 1)))
    };
    chars.iter().enumerate().filter(keeps).map(|(_, c)| *c).collect()
}

fn truncate(text: &str, options: &Options) -> String {
    let text = text.trim_matches('-');
    let limit = options.max_length;
    let head = || text.chars().take(limit).collect::<String>();
    if text.chars().count() < limit {
        return text.to_owned();
    }
    if !options.word_boundary {
        return head().trim_matches('-').to_owned();
    }
    if !text.contains('-') {
        return head();
    }
    let mut out = String::new();
    for word in text.split('-').filter(|word| !word.is_empty()) {
        let next = out.chars().count() + word.chars().count();
        if next < limit {
            out.push_str(word);
            out.push('-');
        } else if next == limit {
            out.push_str(word);
            break;
        } else if options.save_order {
            break;
        }
    }
    if out.is_empty() {
        out = head();
    }
    out.trim_matches('-').to_owned()
}
