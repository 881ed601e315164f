//! The objects hash: tells whether two renders want the same (kluctl 2.28).

use std::{fmt::Write as _, sync::Arc};

use sha2::{Digest, Sha256};

use crate::object::Object;

/// Hex SHA-256 over the concatenated SHA-256 of each object's JSON, in the order given. Keys are sorted; `<`, `>`, `&` and the
/// line separators of JavaScript are escaped, as Go writes JSON.
pub(super) fn objects_hash<'a>(objects: impl IntoIterator<Item = &'a Arc<Object>>) -> String {
    let mut all = Sha256::new();
    for object in objects {
        all.update(Sha256::digest(canonical_json(object)));
    }
    let mut hex = String::with_capacity(64);
    for byte in all.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

fn canonical_json(object: &Object) -> String {
    let json = object.value().to_string();
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}
