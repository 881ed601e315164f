//! The `urlize` filter: links in text.

use std::rc::Rc;
use std::sync::LazyLock;

use regex::Regex;

use super::html::escape_text;
use crate::jinja::args::Bound;
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::value::repr::{str_repr, to_str};
use crate::jinja::value::{Value, char_count};

fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

static HTTP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"(?ix)^(
            (https?://|www\.)(([\w%-]+\.)+)?([a-z]{2,63}|xn--[\w%]{2,59})
            |([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil)
            |(https?://)((([\d]{1,3})(\.[\d]{1,3}){3})|(\[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}\]))
        )(?::[\d]{1,5})?(?:[/?\#]\S*)?$",
    )
});
static EMAIL: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"^\S+@\w[\w.-]*\.\w+$"));
static SCHEME: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"^([\w.+-]{2,}:(/){0,2})$"));

fn matches(regex: &LazyLock<Option<Regex>>, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

struct Links {
    limit: Option<usize>,
    attributes: String,
    schemes: Vec<String>,
}

pub(super) fn urlize(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let text = to_str(args.get(0), &it.budget)?;
    let escaped = match args.get(0) {
        Value::Markup(_) => text.to_string(),
        _ => escape_text(&text),
    };
    let limit = match args.optional(1) {
        Some(_) => Some(usize::try_from(args.int(1, 0)?).unwrap_or(0)),
        None => None,
    };
    let mut rel: Vec<String> = vec!["noopener".to_owned()];
    if args.flag(2)? {
        rel.push("nofollow".to_owned());
    }
    if let Some(more) = args.optional(4) {
        rel.extend(to_str(more, &it.budget)?.split_whitespace().map(str::to_owned));
    }
    rel.sort();
    rel.dedup();
    let mut attributes = format!(" rel=\"{}\"", escape_text(&rel.join(" ")));
    if let Some(target) = args.optional(3) {
        let target = escape_text(&to_str(target, &it.budget)?);
        {
            let text = format!(" target=\"{target}\"");
            attributes.push_str(&text);
        };
    }
    let mut schemes = Vec::new();
    if let Some(extra) = args.optional(5) {
        for scheme in super::sequence::collect(it, extra)? {
            let scheme = to_str(&scheme, &it.budget)?;
            if !matches(&SCHEME, &scheme) {
                let message = format!("{} is not a valid URI scheme prefix.", str_repr(&scheme));
                return Err(Raise::new("FilterArgumentError", message));
            }
            schemes.push(scheme.to_string());
        }
    }
    let links = Links { limit, attributes, schemes };
    let mut out = String::new();
    let mut rest = &*escaped;
    while !rest.is_empty() {
        let word_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        out.push_str(&links.word(&rest[..word_end]));
        rest = &rest[word_end..];
        let space_end = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        out.push_str(&rest[..space_end]);
        rest = &rest[space_end..];
        it.budget.size(out.len())?;
    }
    Ok(if scope.ctx.autoescape.get() { Value::Markup(out.into()) } else { Value::str(out) })
}

impl Links {
    fn word(&self, word: &str) -> String {
        let (head, mut middle, mut tail) = split_punctuation(word);
        for (open, close) in [("(", ")"), ("<", ">"), ("&lt;", "&gt;")] {
            let opened = middle.matches(open).count();
            if opened <= middle.matches(close).count() {
                continue;
            }
            for _ in 0..opened.min(tail.matches(close).count()) {
                let Some(index) = tail.find(close) else { break };
                let end = index + close.len();
                middle.push_str(&tail[..end]);
                tail.replace_range(..end, "");
            }
        }
        format!("{head}{}{tail}", self.link(&middle))
    }

    fn link(&self, text: &str) -> String {
        let attributes = &self.attributes;
        if matches(&HTTP, text) {
            let shown = self.trimmed(text);
            let has_scheme = text.starts_with("https://") || text.starts_with("http://");
            let scheme = if has_scheme { "" } else { "https://" };
            return format!("<a href=\"{scheme}{text}\"{attributes}>{shown}</a>");
        }
        if let Some(address) = text.strip_prefix("mailto:")
            && matches(&EMAIL, address)
        {
            return format!("<a href=\"{text}\">{address}</a>");
        }
        let mail = text.contains('@') && !text.starts_with("www.") && !text.starts_with('@');
        if mail && !text.contains(':') && matches(&EMAIL, text) {
            return format!("<a href=\"mailto:{text}\">{text}</a>");
        }
        let extra = self.schemes.iter().any(|scheme| text != scheme && text.starts_with(&**scheme));
        if extra { format!("<a href=\"{text}\"{attributes}>{text}</a>") } else { text.to_owned() }
    }

    fn trimmed(&self, text: &str) -> String {
        match self.limit {
            Some(limit) if char_count(text) > limit => {
                let kept: String = text.chars().take(limit).collect();
                format!("{kept}...")
            }
            _ => text.to_owned(),
        }
    }
}

/// Opening punctuation, the word itself, closing punctuation.
fn split_punctuation(word: &str) -> (String, String, String) {
    let mut start = 0;
    while let Some(mark) = ["(", "<", "&lt;"].iter().find(|mark| word[start..].starts_with(**mark))
    {
        start += mark.len();
    }
    let mut end = word.len();
    let closing = [")", ">", ".", ",", "\n", "&gt;"];
    while let Some(mark) = closing.iter().find(|mark| word[start..end].ends_with(**mark)) {
        end -= mark.len();
    }
    (word[..start].to_owned(), word[start..end].to_owned(), word[end..].to_owned())
}
