/// The include and exclude filters of a run, by tag and by item directory (kluctl 2.28).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inclusion {
    /// Tags of which one must match, if any include filter is given.
    pub include_tags: Vec<String>,
    /// Tags that exclude an item.
    pub exclude_tags: Vec<String>,
    /// Item directories relative to the source root; tags and directories form one set of includes.
    pub include_dirs: Vec<String>,
    /// Item directories that are excluded.
    pub exclude_dirs: Vec<String>,
}

impl Inclusion {
    /// Whether there is no filter at all.
    pub fn is_empty(&self) -> bool {
        self.include_tags.is_empty()
            && self.exclude_tags.is_empty()
            && self.include_dirs.is_empty()
            && self.exclude_dirs.is_empty()
    }

    /// Whether something with these tags and this directory is part of the run: an exclude match always decides; given
    /// include filters, one must match.
    pub fn includes<S: AsRef<str>>(&self, tags: &[S], dir: Option<&str>) -> bool {
        let has_tag =
            |filter: &[String]| tags.iter().any(|tag| filter.iter().any(|f| f == tag.as_ref()));
        let has_dir = |filter: &[String]| dir.is_some_and(|dir| filter.iter().any(|f| f == dir));
        if has_tag(&self.exclude_tags) || has_dir(&self.exclude_dirs) {
            return false;
        }
        let no_includes = self.include_tags.is_empty() && self.include_dirs.is_empty();
        no_includes || has_tag(&self.include_tags) || has_dir(&self.include_dirs)
    }
}

#[cfg(test)]
mod tests {
    use super::Inclusion;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn excludes_win_and_tags_and_dirs_are_one_set() {
        let all = Inclusion::default();
        assert!(all.includes(&["a"], Some("x")));
        let filter = Inclusion {
            include_tags: names(&["a"]),
            include_dirs: names(&["x"]),
            exclude_tags: names(&["b"]),
            exclude_dirs: names(&["y"]),
        };
        assert!(filter.includes(&["a"], None));
        assert!(filter.includes(&["other"], Some("x")));
        assert!(!filter.includes(&["other"], Some("z")));
        assert!(!filter.includes(&["a", "b"], Some("x")));
        assert!(!filter.includes(&["a"], Some("y")));
    }
}
