//! Fields inside of a text that is JSON or YAML itself.

use serde_json::Value;

use super::text_edit;
use crate::yaml::{self, Schema};

/// Lets `change` edit the content of a text. Returns what it returned, or `None` when the text holds no structure.
///
/// JSON is written anew, with the keys of mappings sorted. Of YAML only the values that changed are replaced, so that order,
/// comments and style stay; where that is not possible it is written anew, too.
pub(super) fn edit(
    text: &mut String,
    change: impl FnOnce(&mut Value) -> Result<usize, String>,
) -> Result<Option<usize>, String> {
    let Ok(document) = yaml::parse_document("", text.as_bytes(), Schema::Manifest) else {
        return Ok(None);
    };
    if !document.value.is_object() && !document.value.is_array() {
        return Ok(None);
    }
    let mut content = document.value.clone();
    let changed = change(&mut content)?;
    if changed > 0 {
        *text = if text.trim_start().starts_with(['{', '[']) {
            json(&content, text)
        } else {
            let edited = text_edit::apply(text, &document, &content);
            edited.unwrap_or_else(|| yaml::emit(&content)).trim().to_owned()
        };
    }
    Ok(Some(changed))
}

fn json(content: &Value, old: &str) -> String {
    let pretty = old.contains('\n') && old.contains("  ");
    let text = if pretty {
        serde_json::to_string_pretty(content).unwrap_or_else(|_| content.to_string())
    } else {
        content.to_string()
    };
    crate::kustomize::generators::hash::escape_as_go(&text)
}
