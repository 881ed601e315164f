//! Recognises files that SOPS encrypted. Decryption will take its place here.

use serde_json::Value;

use crate::{
    tree::file_name,
    yaml::{self, Schema},
};

/// Whether SOPS encrypted the file: its format is one that SOPS knows by the extension (YAML, JSON, dotenv, INI), and it
/// carries SOPS' metadata.
pub(crate) fn is_encrypted(path: &str, content: &[u8]) -> bool {
    let has_word = content.windows(4).any(|window| window == b"sops");
    let Some((_, extension)) = file_name(path).rsplit_once('.') else { return false };
    if !has_word {
        return false;
    }
    match extension {
        "yaml" | "yml" | "json" => yaml::parse_documents(path, content, Schema::Manifest)
            .is_ok_and(|documents| documents.iter().any(|doc| has_metadata(&doc.value["sops"]))),
        "env" => has_line(content, |line| line.starts_with("sops_mac=")),
        "ini" => has_line(content, |line| line.trim() == "[sops]"),
        _ => false,
    }
}

fn has_metadata(sops: &Value) -> bool {
    sops.get("mac").is_some() || sops.get("version").is_some()
}

fn has_line(content: &[u8], is_metadata: impl Fn(&str) -> bool) -> bool {
    String::from_utf8_lossy(content).lines().any(is_metadata)
}
