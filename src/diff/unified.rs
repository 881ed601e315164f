use std::borrow::Cow;

use serde_json::Value;
use similar::TextDiff;

use crate::yaml;

/// A change for people: whole values led by `+` or `-`, single lines one above the other, longer texts as a unified diff
/// without its header.
pub(super) fn unified(before: Option<&Value>, after: Option<&Value>) -> String {
    let (old, new) = (before.map(text), after.map(text));
    match (old, new) {
        (None, None) => String::new(),
        (None, Some(new)) => prefixed("+", &new),
        (Some(old), None) => prefixed("-", &old),
        (Some(old), Some(new)) if !old.contains('\n') && !new.contains('\n') => {
            format!("-{old}\n+{new}")
        }
        (Some(old), Some(new)) => {
            let diff = TextDiff::from_lines(old.as_ref(), new.as_ref());
            diff.unified_diff().context_radius(3).missing_newline_hint(false).to_string()
        }
    }
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed("<nil>"),
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(_) | Value::Object(_) => Cow::Owned(yaml::emit(value)),
        other => Cow::Owned(other.to_string()),
    }
}

fn prefixed(prefix: &str, text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let lines: Vec<_> = text.split('\n').map(|line| format!("{prefix}{line}")).collect();
    lines.join("\n")
}
