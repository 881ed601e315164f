//! `gitFiles`: the files of a repository that match patterns, for each branch or tag that matches.

use std::sync::Arc;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::{git::label, text::Text};
use crate::{
    schema::{GitFiles, GitFilesEntry, GitRef, VarsSource},
    tree::{EntryKind, SourceTree},
    vars::{
        Context, GitSource, GitTip, Templates, VarsError, glob::Glob, is_encrypted, load::Loaded,
    },
};

/// How many bytes all matching files of a source may have together.
const MAX_BYTES: usize = 64 << 20;
/// How many files a repository may have, and how deep its directories may be nested.
const MAX_FILES: usize = 100_000;
const MAX_DEPTH: usize = 64;

/// Reads the files: a list with an entry for each reference, by name, that holds its files as a list, by path and as a tree.
/// No match gives an empty list.
pub(in crate::vars) async fn read(
    source: &GitFiles,
    entry: &VarsSource,
    git: Option<&dyn GitSource>,
    templates: &Templates,
    context: &Context,
) -> Result<Loaded, VarsError> {
    let git = git.ok_or(VarsError::NotAvailable { kind: "gitFiles" })?;
    let patterns = patterns(&source.files)?;
    let is_sensitive = entry.sensitive.unwrap_or_default();
    let mut bytes = 0;
    let mut matches = Vec::new();
    for reference in references(source, git).await? {
        let checkout = git.checkout(&source.url, Some(&reference)).await;
        let checkout = checkout.map_err(VarsError::outside)?;
        let label = label(&source.url, Some(&reference));
        let root = vec![String::new()];
        let templates =
            templates.of_source(checkout.tree.clone(), Some(Arc::from(label.as_str())), root);
        let mut reader =
            Reader { patterns: &patterns, templates, context, label, is_sensitive, bytes };
        matches.push(reader.reference(&*checkout.tree, &reference)?);
        bytes = reader.bytes;
    }
    Ok(Loaded { value: Value::Array(matches), what: label(&source.url, None) })
}

fn patterns(files: &[GitFilesEntry]) -> Result<Vec<(Glob, &GitFilesEntry)>, VarsError> {
    let compile = |file: &'_ GitFilesEntry| {
        Glob::parse(&file.glob).map_err(|problem| VarsError::Pattern {
            field: "gitFiles.files",
            pattern: file.glob.clone(),
            problem,
        })
    };
    files.iter().map(|file| Ok((compile(file)?, file))).collect()
}

/// The branches or tags that are meant, by name: the default branch, or all whose whole name the pattern matches.
async fn references(source: &GitFiles, git: &dyn GitSource) -> Result<Vec<GitRef>, VarsError> {
    let tips = git.tips(&source.url).await.map_err(VarsError::outside)?;
    let Some(wanted) = &source.reference else {
        let default = tips.default.as_deref().and_then(reference);
        return match default {
            Some(default) => Ok(vec![default]),
            None => Err(VarsError::NoDefaultBranch { url: label(&source.url, None) }),
        };
    };
    let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(commit) = set(&wanted.commit) {
        let tip = tips.all.iter().find(|tip| tip.commit == commit);
        let named = tip.and_then(|tip| reference(&tip.name));
        return Ok(vec![named.unwrap_or_else(|| wanted.clone())]);
    }
    let (field, prefix, pattern) = match (set(&wanted.branch), set(&wanted.tag)) {
        (Some(branch), _) => ("gitFiles.ref.branch", "refs/heads/", branch),
        (None, tag) => ("gitFiles.ref.tag", "refs/tags/", tag.unwrap_or_default()),
    };
    let regex = Regex::new(&format!("^{prefix}(?:{pattern})$")).map_err(|error| {
        let problem = error.to_string();
        VarsError::Pattern { field, pattern: pattern.clone(), problem }
    })?;
    let is_meant = |tip: &&GitTip| regex.is_match(&tip.name);
    Ok(tips.all.iter().filter(is_meant).filter_map(|tip| reference(&tip.name)).collect())
}

/// The reference of a full name.
fn reference(name: &str) -> Option<GitRef> {
    if let Some(branch) = name.strip_prefix("refs/heads/") {
        return Some(GitRef { branch: Some(branch.to_owned()), ..GitRef::default() });
    }
    let tag = name.strip_prefix("refs/tags/")?;
    Some(GitRef { tag: Some(tag.to_owned()), ..GitRef::default() })
}

/// The files of a repository, by path. Links can lead upwards and multiply files without end.
fn walk(
    tree: &dyn SourceTree,
    dir: &str,
    depth: usize,
    paths: &mut Vec<String>,
) -> Result<(), VarsError> {
    for entry in tree.list(dir)? {
        let path = if dir.is_empty() { entry.name } else { format!("{dir}/{}", entry.name) };
        match entry.kind {
            EntryKind::Directory if depth < MAX_DEPTH => walk(tree, &path, depth + 1, paths)?,
            EntryKind::Directory => {}
            EntryKind::File if paths.len() == MAX_FILES => {
                let (what, limit) = ("the repository".to_owned(), format!("{MAX_FILES} files"));
                return Err(VarsError::TooLarge { what, limit });
            }
            EntryKind::File => paths.push(path),
        }
    }
    Ok(())
}

/// Reads the files of one reference.
struct Reader<'a> {
    patterns: &'a [(Glob, &'a GitFilesEntry)],
    templates: Templates,
    context: &'a Context,
    label: String,
    is_sensitive: bool,
    /// How much was read so far.
    bytes: usize,
}

impl Reader<'_> {
    fn reference(&mut self, tree: &dyn SourceTree, reference: &GitRef) -> Result<Value, VarsError> {
        let mut files = Vec::new();
        let mut paths = Vec::new();
        walk(tree, "", 0, &mut paths)?;
        for path in paths {
            let matching = self.patterns.iter().find(|(glob, _)| glob.is_match(&path));
            if let Some((_, entry)) = matching {
                let content = tree.read(&path)?;
                let file = self.file(&path, &content, entry)?;
                files.push((path, file));
            }
        }
        let mut by_path = Map::new();
        let mut by_part = Value::Object(Map::new());
        for (path, file) in &files {
            by_path.insert(path.clone(), file.clone());
            crate::object::set_at(&mut by_part, &path.split('/').collect(), file.clone());
        }
        Ok(json!({
            "ref": reference,
            "refStr": reference.to_string(),
            "files": files.into_iter().map(|(_, file)| file).collect::<Vec<_>>(),
            "filesByPath": by_path,
            "filesTree": by_part,
        }))
    }

    fn file(
        &mut self,
        path: &str,
        content: &[u8],
        entry: &GitFilesEntry,
    ) -> Result<Value, VarsError> {
        self.bytes += content.len();
        if self.bytes > MAX_BYTES {
            let what = format!("the matching files of {}", self.label);
            let limit = format!("{} MiB", MAX_BYTES >> 20);
            return Err(VarsError::TooLarge { what, limit });
        }
        // What is no text stays recognisable, as templates know only text.
        let text = String::from_utf8_lossy(content).into_owned();
        let what = format!("{}//{path}", self.label);
        let mut text = Text { content: text, what, is_sensitive: self.is_sensitive };
        if entry.render {
            text = text.render(path, &self.templates, self.context)?;
        }
        if is_encrypted(path, text.content.as_bytes()) {
            return Err(VarsError::Encrypted { path: text.what });
        }
        let mut file = json!({"file": entry, "path": path, "size": content.len()});
        if entry.parse_yaml {
            file["parsed"] = text.parse(entry.yaml_multi_doc)?;
        }
        file["content"] = Value::String(text.content);
        Ok(file)
    }
}
