use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use crate::tree::{self, SourceTree, TreeError};

/// Name of the files with patterns of what is copied as it is.
const FILE_NAME: &str = ".templateignore";

/// Which files of an item are not rendered (kluctl 2.28): gitignore patterns from the source root down to the file,
/// of which the last one that matches the file or a directory above it decides.
#[derive(Default)]
pub(super) struct TemplateIgnore {
    patterns: Vec<Gitignore>,
}

impl TemplateIgnore {
    /// Reads the patterns of the source root, of each directory down to `item_dir`, and of `nested_dirs` in it, which come in
    /// the order of a walk.
    pub(super) fn read(
        tree: &dyn SourceTree,
        item_dir: &str,
        nested_dirs: &[String],
    ) -> Result<Self, TreeError> {
        let mut ignore = Self::default();
        let mut above = vec![""];
        above.extend(item_dir.match_indices('/').map(|(end, _)| &item_dir[..end]));
        for dir in above.into_iter().filter(|dir| *dir != item_dir) {
            ignore.read_dir(tree, dir)?;
        }
        ignore.read_dir(tree, item_dir)?;
        for dir in nested_dirs {
            ignore.read_dir(tree, dir)?;
        }
        Ok(ignore)
    }

    fn read_dir(&mut self, tree: &dyn SourceTree, dir: &str) -> Result<(), TreeError> {
        let path = tree::join(dir, FILE_NAME)?;
        if !tree.is_file(&path) {
            return Ok(());
        }
        let content = tree.read(&path)?;
        for line in String::from_utf8_lossy(&content).lines() {
            // One matcher per line keeps the order of patterns across files and directories.
            let mut builder = GitignoreBuilder::new(format!("/{dir}"));
            if builder.add_line(None, line).is_ok()
                && let Ok(pattern) = builder.build()
                && !pattern.is_empty()
            {
                self.patterns.push(pattern);
            }
        }
        Ok(())
    }

    /// Whether the file is copied as it is.
    pub(super) fn is_ignored(&self, path: &str) -> bool {
        let path = format!("/{path}");
        let path = std::path::Path::new(&path);
        for pattern in self.patterns.iter().rev() {
            // A pattern says nothing about what is outside of its directory.
            if !path.starts_with(pattern.path()) {
                continue;
            }
            match pattern.matched_path_or_any_parents(path, false) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}
