//! Keeps secrets that came as arguments or in messages out of what is shown and stored.

use serde_json::Value;

use super::{CommandResult, DeploymentError};

/// What stands for a secret.
const MASK: &str = "*****";
/// Words in the names of arguments whose values are secrets.
const SECRET_WORDS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "apikey",
    "privatekey",
    "accesskey",
];

impl CommandResult {
    /// Masks arguments whose names say that they are secrets, and runs every message and every other argument through
    /// `mask`, which knows what sensitive variables hold.
    pub fn mask(&mut self, mask: impl Fn(&str) -> String) {
        if let Some(args) = &mut self.command.args {
            mask_arguments(args, &mask);
        }
        if let Some(args) = self.target.get_mut("args") {
            mask_arguments(args, &mask);
        }
        for DeploymentError { message, .. } in self.errors.iter_mut().chain(&mut self.warnings) {
            *message = mask(message);
        }
    }
}

fn mask_arguments(value: &mut Value, mask: &impl Fn(&str) -> String) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if is_secret(name) {
                    mask_all(value);
                } else {
                    mask_arguments(value, mask);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask_arguments(item, mask)),
        Value::String(text) => *text = mask(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether the name of an argument says that it is a secret: `dbPassword`, `db_password`, `token`, but not `tokenizer`.
fn is_secret(name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let letters = letters.to_ascii_lowercase();
    let letters = letters.trim_end_matches('s');
    SECRET_WORDS.iter().any(|word| letters.ends_with(word.trim_end_matches('s')))
}

fn mask_all(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(mask_all),
        Value::Array(items) => items.iter_mut().for_each(mask_all),
        Value::Null | Value::Bool(_) => {}
        other => *other = MASK.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_are_called_secrets_are_masked() {
        let mut args = json!({
            "dbPassword": "a", "api_key": 1, "tokens": ["b", {"c": "d"}], "credentials": {"user": "e"},
            "tokenizer": "kept", "nested": {"private-key": "f", "name": "known"}, "secret": null,
        });
        mask_arguments(&mut args, &|text: &str| text.replace("known", "***"));
        assert_eq!(
            args,
            json!({
                "dbPassword": MASK, "api_key": MASK, "tokens": [MASK, {"c": MASK}],
                "credentials": {"user": MASK}, "tokenizer": "kept",
                "nested": {"private-key": MASK, "name": "***"}, "secret": null,
            })
        );
    }
}
