//! A project's `deployment.yaml`: read, checked, and its items with the places they are written at.

use std::sync::Arc;

use super::{
    LoadError, LoadProblem,
    config_file::{self, ConfigFile, Place},
    inherited::default_tag,
    walk::Visit,
};
use crate::{
    diagnostic::FieldPath,
    schema::{DeploymentFile, DeploymentItem},
    tree::{self, EntryKind, SourceTree},
    vars::{Context, Templates},
};

/// Reads the file of a project, with the place of its root; `None` when the project is the root and has none.
///
/// # Errors
/// Why it cannot be read, or all rules between its fields that it breaks.
pub(super) fn read(
    visit: &Visit,
    templates: &Templates,
) -> Result<Option<(DeploymentFile, Place)>, Vec<LoadError>> {
    let tree = &**templates.tree();
    let one = |error: LoadError| vec![error];
    let find = |name| config_file::find(tree, &visit.dir, name, ["yml", "yaml"]);
    let Some(path) = find("deployment").map_err(|error| one(error.into()))? else {
        let Some((_, place)) = &visit.include else { return Ok(None) };
        let kustomization = find("kustomization").map_err(|error| one(error.into()))?;
        let problem = LoadProblem::NoDeploymentFile {
            dir: visit.dir.clone(),
            has_kustomization: kustomization.is_some(),
        };
        return Err(one(LoadError::at(problem, place.clone())));
    };
    let read = ConfigFile::read(&path, templates, Some(&visit.context));
    let (mut file, config): (DeploymentFile, _) =
        read.map_err(|problems| problems.into_iter().map(LoadError::from).collect::<Vec<_>>())?;
    let root = Place::new(&Arc::new(config), FieldPath::root());
    let violations = file.violations();
    if !violations.is_empty() {
        let error = |violation: crate::schema::Violation| {
            let place = root.below(&violation.path);
            LoadError::at(LoadProblem::Rule(violation), place)
        };
        return Err(violations.into_iter().map(error).collect());
    }
    for item in &mut file.deployments {
        let path = item.path.as_deref().or(item.include.as_deref());
        if item.tags.is_empty() {
            item.tags.extend(path.and_then(default_tag));
        }
    }
    Ok(Some((file, root)))
}

/// The items whose condition is true and whose directory exists, with their places, and what is wrong with others.
pub(super) fn items(
    project_dir: &str,
    items: &[DeploymentItem],
    root: &Place,
    templates: &Templates,
    context: &Context,
) -> (Vec<(DeploymentItem, Place)>, Vec<LoadError>) {
    let (mut used, mut errors) = (Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        let place = root.below(&FieldPath::root().child("deployments").child(index));
        match check(project_dir, item, &place, templates, context) {
            Ok(true) => used.push((item.clone(), place)),
            Ok(false) => {}
            Err(error) => errors.push(error),
        }
    }
    (used, errors)
}

/// Whether the item's condition is true; if so, its directory has to exist.
fn check(
    project_dir: &str,
    item: &DeploymentItem,
    place: &Place,
    templates: &Templates,
    context: &Context,
) -> Result<bool, LoadError> {
    if !is_true(item.when.as_deref(), place, templates, context)? {
        return Ok(false);
    }
    if let Some(path) = &item.path {
        let place = place.child("path");
        let dir = join(project_dir, path, &place)?;
        check_directory(&**templates.tree(), &dir, &place)?;
    }
    Ok(true)
}

pub(super) fn is_true(
    when: Option<&str>,
    place: &Place,
    templates: &Templates,
    context: &Context,
) -> Result<bool, LoadError> {
    templates.is_true(when, context).map_err(|source| {
        let expression = when.unwrap_or_default().to_owned();
        let problem = LoadProblem::When { expression, source: Box::new(source) };
        LoadError::at(problem, place.child("when"))
    })
}

pub(super) fn join(base: &str, path: &str, place: &Place) -> Result<String, LoadError> {
    tree::join(base, path)
        .map_err(|_| LoadError::at(LoadProblem::Escapes { path: path.to_owned() }, place.clone()))
}

pub(super) fn check_directory(
    tree: &dyn SourceTree,
    dir: &str,
    place: &Place,
) -> Result<(), LoadError> {
    let shown = || if dir.is_empty() { ".".to_owned() } else { dir.to_owned() };
    let problem = match tree.kind(dir) {
        Ok(Some(EntryKind::Directory)) => return Ok(()),
        Ok(Some(EntryKind::File)) => LoadProblem::NotADirectory { dir: shown() },
        Ok(None) => LoadProblem::MissingDirectory { dir: shown() },
        Err(error) => error.into(),
    };
    Err(LoadError::at(problem, place.clone()))
}
