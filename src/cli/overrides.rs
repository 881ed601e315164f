//! Local directories in place of repositories: `--local-git-override` and its kin.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use crate::{
    diagnostic::{Class, Diagnostic},
    git::RepoKey,
};

/// What one flag replaces by what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Override {
    host: String,
    path: String,
    dir: PathBuf,
    /// The directory holds a sub directory for each repository below the path.
    is_group: bool,
}

/// The directories that stand in for repositories of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Overrides(Vec<Override>);

impl Overrides {
    /// Reads the values of a flag for single repositories and of one for groups. `scheme` is what addresses may begin with.
    ///
    /// # Errors
    /// Names the flag whose value has another form.
    pub(super) fn parse(
        scheme: &str,
        single: &[String],
        groups: &[String],
        environment: &Environment,
    ) -> Result<Self, Diagnostic> {
        let read = |flag: &str, text: &String, is_group: bool| {
            parse(scheme, text, is_group, environment).ok_or_else(|| {
                let message = format!("invalid --local-{scheme}-{flag}: {text:?}");
                Diagnostic::new(Class::Project, message).with_expected("host[:port]/path=directory")
            })
        };
        let singles = single.iter().map(|text| read("override", text, false));
        let groups = groups.iter().map(|text| read("group-override", text, true));
        singles.chain(groups).collect::<Result<_, _>>().map(Self)
    }

    /// The directory that stands in for a repository. One that does not exist does not count.
    ///
    /// # Errors
    /// When it is no directory.
    pub(super) fn find(&self, key: &RepoKey) -> Result<Option<PathBuf>, Diagnostic> {
        let candidates = self.0.iter().filter(|one| one.host == key.host);
        for one in candidates {
            let dir = match (one.is_group, key.path.strip_prefix(&*one.path)) {
                (false, Some("")) => one.dir.clone(),
                (true, Some(rest)) if rest.starts_with('/') => one.dir.join(&rest[1..]),
                _ => continue,
            };
            if dir.is_dir() {
                return Ok(Some(dir));
            }
            if dir.exists() {
                let message = format!("{} stands in for {key}, but is no directory", dir.display());
                return Err(Diagnostic::new(Class::Project, message));
            }
        }
        Ok(None)
    }
}

fn parse(scheme: &str, text: &str, is_group: bool, environment: &Environment) -> Option<Override> {
    let (address, dir) = text.split_once('=')?;
    let address = address.strip_prefix(&format!("{scheme}://")).unwrap_or(address);
    let (host, path) = address.split_once('/')?;
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).to_lowercase();
    let is_complete = !host.is_empty() && !path.is_empty() && !dir.is_empty();
    let dir = environment.path(Path::new(dir));
    is_complete.then(|| Override { host: host.to_lowercase(), path, dir, is_group })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "makes directories to find")]

    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn repositories_are_replaced_one_by_one_or_as_a_group() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("group/sub/lib")).unwrap();
        std::fs::create_dir(dir.path().join("one")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let environment = Environment {
            variables: BTreeMap::new(),
            working_dir: dir.path().to_owned(),
            program_dir: None,
            is_terminal: false,
            shows_results: false,
            can_ask: false,
        };
        let texts =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let single = texts(&[
            "git.example.com/team/one.git=one",
            "git://git.example.com:8080/x/y=file",
            "git.example.com/team/gone=gone",
        ]);
        let groups = texts(&["git.example.com/group=group"]);
        let overrides = Overrides::parse("git", &single, &groups, &environment).unwrap();
        let find = |host: &str, path: &str| {
            overrides.find(&RepoKey { host: host.to_owned(), path: path.to_owned() })
        };
        let found = |host, path| find(host, path).unwrap();
        assert_eq!(found("git.example.com", "team/one"), Some(dir.path().join("one")));
        assert_eq!(
            found("git.example.com", "group/sub/lib"),
            Some(dir.path().join("group/sub/lib"))
        );
        for path in ["team/other", "team/gone", "group/none", "groups/sub/lib", "group"] {
            assert_eq!(found("git.example.com", path), None, "{path}");
        }
        assert_eq!(found("git.other.com", "team/one"), None);
        assert!(find("git.example.com:8080", "x/y").unwrap_err().message.contains("no directory"));
        for text in ["nope", "host=dir", "/path=dir", "host/path="] {
            assert!(Overrides::parse("git", &texts(&[text]), &[], &environment).is_err(), "{text}");
        }
    }
}
