mod images;
mod load;
mod render;

use std::sync::Arc;

use futures::{FutureExt, executor::block_on, future::BoxFuture};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    jinja,
    schema::GitRef,
    tree::{MemoryTree, SourceTree},
    vars::{Context, VarsLoader},
};

/// A deployment project in memory.
struct Fixture {
    tree: Arc<dyn SourceTree>,
    git: Option<Arc<dyn GitSource>>,
    variables: Value,
}

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Arc::new(MemoryTree::from_texts(files.iter().copied()));
        Self { tree, git: None, variables: json!({"args": {}, "target": {"name": "t"}}) }
    }

    fn with_git(mut self, repositories: &[(&str, &[(&str, &str)])]) -> Self {
        let repository = |(url, files): &(&str, &[(&str, &str)])| {
            let tree: Arc<dyn SourceTree> = Arc::new(MemoryTree::from_texts(files.iter().copied()));
            ((*url).to_owned(), tree)
        };
        self.git = Some(Arc::new(FakeGit(repositories.iter().map(repository).collect())));
        self
    }

    fn load(&self) -> Result<Deployment, LoadError> {
        self.load_all().map_err(|mut errors| errors.swap_remove(0))
    }

    fn load_all(&self) -> Result<Deployment, Vec<LoadError>> {
        let Value::Object(variables) = self.variables.clone() else { panic!("no mapping") };
        let input = LoadInput {
            tree: self.tree.clone(),
            dir: String::new(),
            context: Context::from(variables),
            jinja: options(),
            vars: VarsLoader { git: self.git.clone(), ..VarsLoader::default() },
        };
        block_on(load(input, &CancellationToken::new()))
    }

    /// The message that loading fails with.
    fn load_error(&self) -> Diagnostic {
        match self.load() {
            Ok(_) => panic!("loading should fail"),
            Err(error) => error.describe(),
        }
    }

    /// Renders and builds everything that the filters leave.
    fn desired(&self, inclusion: Inclusion) -> Result<DesiredState, Vec<Diagnostic>> {
        let describe = |error: &dyn Describe| vec![error.describe()];
        let deployment = self.load().map_err(|error| describe(&error))?;
        let rendering = Arc::new(deployment.into_rendering(RenderOptions {
            inclusion,
            discriminator: Some("shop".to_owned()),
            images: Vec::new(),
        }));
        let all = |errors: Vec<ItemError>| -> Vec<Diagnostic> {
            errors.iter().map(Describe::describe).collect()
        };
        let count = rendering.item_count();
        let rendered: Result<Vec<_>, _> = (0..count).map(|i| rendering.render_item(i)).collect();
        let building = Building::new(rendering, rendered.map_err(all)?);
        let built: Result<Vec<_>, _> = (0..count).map(|i| building.build_item(i)).collect();
        Ok(building.desired(built.map_err(all)?, None))
    }
}

fn options() -> jinja::Options {
    jinja::Options::new(jiff::Timestamp::UNIX_EPOCH)
}

/// Repositories by URL; any reference leads to the same commit.
struct FakeGit(Vec<(String, Arc<dyn SourceTree>)>);

impl GitSource for FakeGit {
    fn checkout<'a>(
        &'a self,
        url: &'a str,
        _reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>> {
        let found = self.0.iter().find(|(known, _)| known == url);
        let checkout = found
            .map(|(_, tree)| GitCheckout { tree: tree.clone(), commit: "c0ffee".to_owned() })
            .ok_or_else(|| Diagnostic::new(Class::Project, "repository does not exist"));
        async move { checkout }.boxed()
    }
}

/// Directory, tags and variables of each item.
fn items(deployment: &Deployment) -> Vec<(String, Vec<String>)> {
    let item = |item: &super::item::Item| (item.name(), item.tags.clone());
    deployment.items.iter().map(item).collect()
}

fn item_variables(deployment: &Deployment, index: usize) -> Map<String, Value> {
    deployment.items[index].context.values().as_object().cloned().unwrap_or_default()
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n";
