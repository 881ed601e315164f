//! Fields inside of a text that is JSON or YAML itself.

use serde_json::Value;

use crate::yaml::{self, Schema};

/// Lets `change` edit the content of a text. Returns what it returned, or `None` when the text holds no structure. The text
/// is written anew, in its own format, when something was changed; the keys of mappings come out sorted.
pub(super) fn edit(
    text: &mut String,
    change: impl FnOnce(&mut Value) -> Result<usize, String>,
) -> Result<Option<usize>, String> {
    let Ok(document) = yaml::parse_document("", text.as_bytes(), Schema::Manifest) else {
        return Ok(None);
    };
    let mut content = document.value;
    if !content.is_object() && !content.is_array() {
        return Ok(None);
    }
    let changed = change(&mut content)?;
    if changed > 0 {
        *text = write(&content, text);
    }
    Ok(Some(changed))
}

fn write(content: &Value, old: &str) -> String {
    if !old.trim_start().starts_with(['{', '[']) {
        return yaml::emit(content).trim().to_owned();
    }
    let pretty = old.contains('\n') && old.contains("  ");
    let text = if pretty {
        serde_json::to_string_pretty(content).unwrap_or_else(|_| content.to_string())
    } else {
        content.to_string()
    };
    crate::kustomize::generators::hash::escape_as_go(&text)
}
