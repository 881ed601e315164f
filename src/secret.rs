//! Values that must not be shown, and URLs that cannot leak what they carry.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::diagnostic::Diagnostic;

/// A secret value. `Debug`, `Display` and `Serialize` print `***`; [`Secret::reveal`] is the only way to the value.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself; to be used only where it leaves for its one purpose.
    pub fn reveal(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

/// Removes what a URL may carry in secret: the userinfo's password (or lone token) and the query string.
///
/// Works on any text that has the form `scheme://…`; other texts come back unchanged.
pub fn redact_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        // The user name of an SSH address is not a secret and helps to find the repository.
        Some((user, host)) if scheme == "ssh" && !user.contains(':') => format!("{user}@{host}"),
        Some((_, host)) => format!("***@{host}"),
        None => authority.to_owned(),
    };
    let tail = match tail.split_once('?') {
        Some((path, _)) => format!("{path}?***"),
        None => tail.to_owned(),
    };
    format!("{scheme}://{authority}{tail}")
}

/// Redacts every URL inside a longer text, for texts that come from elsewhere.
pub fn redact_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in text
        .split_inclusive(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>'))
    {
        let body = piece.trim_end_matches(|c: char| {
            c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>')
        });
        out.push_str(&redact_url(body));
        out.push_str(&piece[body.len()..]);
    }
    out
}

/// Secret texts that a run came across, to take them out of whatever it tells. Clones share what they learn.
#[derive(Clone, Default)]
pub struct SecretTexts(Arc<Mutex<LongestFirst>>);

/// Texts by length.
type LongestFirst = BTreeSet<(Reverse<usize>, String)>;

impl SecretTexts {
    /// Shorter texts are not masked: they are words and numbers that occur anywhere.
    const SHORTEST: usize = 5;

    /// Remembers all texts below `value`, each line of long ones, and numbers.
    pub fn learn(&self, value: &Value) {
        match value {
            Value::Object(map) => map.values().for_each(|value| self.learn(value)),
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Value::String(text) => {
                self.add(text.trim());
                text.lines().for_each(|line| self.add(line.trim()));
                // As it is quoted in JSON and by Go.
                let quoted = value.to_string();
                let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                self.add(inner.unwrap_or_default());
            }
            Value::Number(number) => self.add(&number.to_string()),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn add(&self, text: &str) {
        if text.len() >= Self::SHORTEST {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert((Reverse(text.len()), text.to_owned()));
        }
    }

    /// `text` with `***` in place of everything secret.
    pub fn mask(&self, text: &str) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The longest come first, so that a text which contains another one is not left in part.
        known.iter().fold(text.to_owned(), |text, (_, secret)| {
            if text.contains(secret) { text.replace(secret, "***") } else { text }
        })
    }

    /// The diagnostic with `***` in place of everything secret, in whichever part.
    #[must_use]
    pub fn mask_diagnostic(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let Diagnostic { message, field, object, expected, hints, causes, excerpt, at, class: _ } =
            &mut diagnostic;
        let file = at.iter_mut().map(|at| &mut at.file);
        let lines = excerpt.iter_mut().flat_map(|excerpt| &mut excerpt.lines);
        let parts = [field, object, expected].into_iter().flatten();
        for text in parts.chain(hints).chain(causes).chain(file).chain(lines).chain([message]) {
            *text = self.mask(text);
        }
        diagnostic
    }
}

impl fmt::Debug for SecretTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_were_learned_are_masked_wherever_they_occur() {
        let secrets = SecretTexts::default();
        secrets.clone().learn(&serde_json::json!({
            "user": "anna", "password": "hunter2", "url": "x://hunter2@h", "pin": 471_100,
            "list": ["first line\nsecond line", "say \"please\""], "flag": true,
        }));
        for (text, masked) in [
            ("no hunter2 for anna", "no *** for anna"),
            ("x://hunter2@h", "***"),
            ("invalid: 471100", "invalid: ***"),
            ("at `second line` and first line", "at `***` and ***"),
            (r#"got "say \"please\"""#, r#"got "***""#),
            ("true", "true"),
        ] {
            assert_eq!(secrets.mask(text), masked);
        }
        assert_eq!(format!("{secrets:?}"), "***");
    }

    #[test]
    fn every_part_of_a_diagnostic_is_masked() {
        use crate::diagnostic::{Class, Position, SourceLocation};

        let secrets = SecretTexts::default();
        secrets.learn(&Value::from("hunter2"));
        let at = SourceLocation {
            file: "hunter2.yaml".to_owned(),
            position: Some(Position { line: 1, column: 1 }),
        };
        let diagnostic = Diagnostic::new(Class::Project, "hunter2 is no name")
            .with_location(at)
            .with_excerpt_of("name: hunter2")
            .with_field("hunter2")
            .with_object("ns/Secret/hunter2")
            .with_expected("not hunter2")
            .with_hint("change hunter2")
            .with_cause(&std::io::Error::other("hunter2"));
        let masked = secrets.mask_diagnostic(diagnostic);
        assert!(!format!("{masked:?}").contains("hunter2"), "{masked:?}");
        assert_eq!(masked.excerpt.unwrap().lines, ["name: ***"]);
    }

    #[test]
    fn secrets_do_not_print() {
        let secret = Secret::new("hunter2".to_owned());
        let shown = format!("{secret} {secret:?} {}", serde_json::to_string(&secret).unwrap());
        assert_eq!(shown, "*** *** \"***\"");
        assert_eq!(secret.reveal(), "hunter2");
    }

    #[test]
    fn urls_lose_passwords_and_queries() {
        for (url, shown) in [
            ("https://user:pw@git.example.com/a/b.git", "https://***@git.example.com/a/b.git"),
            ("https://token@git.example.com/a", "https://***@git.example.com/a"),
            ("ssh://git@git.example.com/a", "ssh://git@git.example.com/a"),
            ("https://s3.example.com/x?X-Amz-Signature=abc", "https://s3.example.com/x?***"),
            ("https://git.example.com/a@b", "https://git.example.com/a@b"),
            ("plain text", "plain text"),
        ] {
            assert_eq!(redact_url(url), shown);
        }
        assert_eq!(
            redact_text("unable to clone 'https://u:p@h/x': denied"),
            "unable to clone 'https://***@h/x': denied"
        );
    }
}
