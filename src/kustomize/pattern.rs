use regex::Regex;

/// A regular expression for a whole text. Most are plain names, which need no engine.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// Characters for themselves; a dot stands for any character.
    Plain(String),
    /// Anything else.
    Regex(Regex),
}

impl Pattern {
    /// Reads a regular expression.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn whole(text: &str) -> Result<Self, regex::Error> {
        if is_plain(text) {
            return Ok(Self::Plain(text.to_owned()));
        }
        Regex::new(&format!("^(?:{text})$")).map(Self::Regex)
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Plain(pattern) => prefix_matched(pattern, text).is_some_and(str::is_empty),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Whether a regular expression has no special characters but dots.
pub(crate) fn is_plain(pattern: &str) -> bool {
    pattern.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@".contains(c))
}

/// What follows in `text` behind what a plain pattern matches; `None` when it does not match.
pub(crate) fn prefix_matched<'a>(pattern: &str, text: &'a str) -> Option<&'a str> {
    let mut rest = text.chars();
    let fits = |wanted: char| match rest.next() {
        Some('\n') | None => false,
        Some(found) => wanted == '.' || wanted == found,
    };
    pattern.chars().all(fits).then_some(rest.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_patterns_match_as_regular_expressions_do() {
        let texts = ["web", "we", "webs", "a.b", "axb", "a\nb", "aéb", "Web", "", "x/y:z@1"];
        for pattern in ["web", "a.b", "...", "", "x/y:z@1", "w-b", "WEB"] {
            let Pattern::Plain(_) = Pattern::whole(pattern).unwrap() else { panic!("{pattern}") };
            let regex = Pattern::Regex(Regex::new(&format!("^(?:{pattern})$")).unwrap());
            for text in texts {
                let plain = Pattern::whole(pattern).unwrap();
                assert_eq!(plain.is_match(text), regex.is_match(text), "{pattern} on {text:?}");
            }
        }
        assert!(matches!(Pattern::whole("w.*"), Ok(Pattern::Regex(_))));
        assert!(Pattern::whole("(").is_err());
    }
}
