//! The stages from a loaded deployment to the desired state. Each stage works item by item, so that a front can run them in
//! parallel; the next stage needs the results of all items.

use std::sync::Arc;

use super::{
    ChartError, ChartUse, Deployment, DesiredItem, DesiredState, FixedImageUse, ImageError,
    Inclusion, KustomizationError, PostprocessError, RenderError, ScopeLookup, charts,
    hash::objects_hash,
    images::FixedImageList,
    item::Item,
    kustomization::{self, Kustomization},
    namespaces::fix_namespaces,
    postprocess::postprocess,
    render::{Rendered, render},
    sources::Source,
    view::{View, Views},
};
use crate::{
    diagnostic::{Class, Describe, Diagnostic, SourceLocation},
    kustomize::{self, KustomizeError, Options, Remotes},
    object::ObjectRef,
    schema::FixedImage,
    tree::{MemoryTree, SourceTree, parent},
};

/// What can be wrong with an item.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ItemProblem {
    /// A file cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A Helm chart of the item cannot be rendered.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The item has no usable kustomization.
    #[error(transparent)]
    Kustomization(#[from] KustomizationError),
    /// kustomize refuses the item.
    #[error(transparent)]
    Kustomize(#[from] KustomizeError),
    /// An object cannot be completed.
    #[error(transparent)]
    Postprocess(#[from] PostprocessError),
}

/// An item that cannot be deployed: which, and why.
#[derive(Debug, thiserror::Error)]
#[error("item {item}: {problem}")]
pub struct ItemError {
    /// The item's directory.
    pub item: String,
    /// What is wrong.
    #[source]
    pub problem: ItemProblem,
    diagnostic: Box<Diagnostic>,
}

impl Describe for ItemError {
    fn describe(&self) -> Diagnostic {
        (*self.diagnostic).clone()
    }
}

/// The settings of a run that concern rendering and building.
pub struct RenderOptions {
    /// Which items take part.
    pub inclusion: Inclusion,
    /// Value of the discriminator label.
    pub discriminator: Option<String>,
    /// Fixed images, later ones winning: those of the target, then those of the user.
    pub images: Vec<FixedImage>,
}

/// Items that are ready to be rendered.
pub struct Rendering {
    items: Vec<Arc<Item>>,
    sources: Vec<Source>,
    warnings: Vec<String>,
    options: RenderOptions,
    images: FixedImageList,
}

/// The files of one item after rendering. The default stands for one that has none.
#[derive(Default)]
pub struct RenderedItem {
    files: Arc<MemoryTree>,
    kustomization: Kustomization,
    /// Helm charts that are still to be rendered.
    charts: Vec<ChartUse>,
}

impl RenderedItem {
    /// The Helm charts that are to be rendered; [`Rendering::complete_item`] takes their manifests.
    pub fn charts(&self) -> &[ChartUse] {
        &self.charts
    }
}

impl Deployment {
    /// Takes the items that the filters leave.
    pub fn into_rendering(self, options: RenderOptions) -> Rendering {
        let included = self.items.into_iter().filter(|item| item.is_included(&options.inclusion));
        Rendering {
            items: included.map(Arc::new).collect(),
            sources: self.sources,
            warnings: self.warnings,
            images: FixedImageList::new(options.images.clone()),
            options,
        }
    }
}

impl Rendering {
    /// How many items there are.
    pub fn item_count(&self) -> usize {
        self.items.len()
    }

    /// Whether the item only provides files for others.
    pub(crate) fn is_only_render(&self, index: usize) -> bool {
        self.items[index].config.only_render
    }

    /// Renders the files of an item, and reads or generates its kustomization. An item with Helm charts is complete only after
    /// [`Self::complete_item`].
    ///
    /// # Errors
    /// The problems of all its files.
    pub fn render_item(&self, index: usize) -> Result<RenderedItem, Vec<ItemError>> {
        let item = &self.items[index];
        let fail = |problem: ItemProblem| self.error(item, problem, None);
        let Rendered { files, chart_files } = render(item).map_err(|errors| {
            errors.into_iter().map(|error| fail(error.into())).collect::<Vec<_>>()
        })?;
        let charts = charts::read(item, &files, &chart_files).map_err(|errors| {
            let lift = |error: ChartError| self.error(item, error.into(), Some(&files));
            errors.into_iter().map(lift).collect::<Vec<_>>()
        })?;
        if charts.is_empty() {
            return self.with_kustomization(item, files, &charts);
        }
        let kustomization = Kustomization::default();
        Ok(RenderedItem { files: Arc::new(files), kustomization, charts })
    }

    /// Adds the manifests of an item's Helm charts, which are as many as [`RenderedItem::charts`], in order.
    ///
    /// # Errors
    /// When the item has no usable kustomization.
    pub fn complete_item(
        &self,
        index: usize,
        rendered: RenderedItem,
        manifests: &[Arc<str>],
    ) -> Result<RenderedItem, Vec<ItemError>> {
        let mut files = Arc::unwrap_or_clone(rendered.files);
        for (chart, text) in rendered.charts.iter().zip(manifests) {
            files.insert(&chart.output, text.as_bytes());
        }
        self.with_kustomization(&self.items[index], files, &rendered.charts)
    }

    fn with_kustomization(
        &self,
        item: &Item,
        mut files: MemoryTree,
        charts: &[ChartUse],
    ) -> Result<RenderedItem, Vec<ItemError>> {
        let mut kustomization = Kustomization::default();
        if let Some(dir) = item.dir.as_deref().filter(|_| !item.config.only_render) {
            kustomization = kustomization::prepare(item, dir, &files, charts)
                .map_err(|error| vec![self.error(item, error.into(), Some(&files))])?;
            if let Some((path, text)) = kustomization.written.take() {
                files.insert(&path, text.into_bytes());
            }
        }
        Ok(RenderedItem { files: Arc::new(files), kustomization, charts: Vec::new() })
    }

    /// The source that an item is in, for its local charts.
    pub fn source_of(&self, index: usize) -> Arc<dyn SourceTree> {
        self.items[index].project.templates.tree().clone()
    }

    /// The problem of one of an item's charts, with its place.
    pub fn chart_error(
        &self,
        index: usize,
        rendered: &RenderedItem,
        error: ChartError,
    ) -> ItemError {
        self.error(&self.items[index], error.into(), Some(&*rendered.files))
    }

    /// An item's problem with its place in the user's files; `files` are the rendered ones.
    fn error(
        &self,
        item: &Item,
        problem: ItemProblem,
        files: Option<&dyn SourceTree>,
    ) -> ItemError {
        let mut diagnostic = problem.describe();
        let templates = &item.project.templates;
        if let (Some(files), Some(at)) = (files, &diagnostic.at) {
            let source = templates.tree().read(&at.file);
            let rendered = files.read(&at.file);
            let texts = match (&source, &rendered) {
                (Ok(source), Ok(rendered)) => {
                    (std::str::from_utf8(source), std::str::from_utf8(rendered))
                }
                (Err(_), Ok(rendered)) => (Ok(""), std::str::from_utf8(rendered)),
                _ => (Ok(""), Ok("")),
            };
            if let (Ok(source), Ok(rendered)) = texts
                && !source.is_empty()
            {
                let path = at.file.clone();
                diagnostic = templates.file(&path, source, rendered).complete(diagnostic);
            }
        }
        if diagnostic.at.is_none() {
            let dir = item.dir.as_deref().unwrap_or_default();
            let shown = self.sources[item.project.source].shown(dir);
            diagnostic.at = Some(SourceLocation::file(shown));
        }
        ItemError { item: item.name(), problem, diagnostic: Box::new(diagnostic) }
    }
}

/// Items whose files are all rendered.
pub struct Building {
    rendering: Arc<Rendering>,
    views: Views,
    kustomizations: Vec<Kustomization>,
    remotes: Option<Arc<dyn Remotes>>,
}

/// One item after build.
pub struct BuiltItem {
    item: DesiredItem,
    images: Vec<FixedImageUse>,
}

impl BuiltItem {
    /// The objects, each with the directory of its item.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (ObjectRef, &str)> {
        self.item.objects.iter().map(|object| (object.reference(), self.item.dir.as_str()))
    }
}

impl Building {
    /// Puts the files of all items together; `rendered` has one entry per item, in order.
    pub fn new(rendering: Arc<Rendering>, rendered: Vec<RenderedItem>) -> Self {
        let (files, kustomizations) =
            rendered.into_iter().map(|item| (item.files, item.kustomization)).unzip();
        let views = Views::new(&rendering.items, files);
        Self { rendering, views, kustomizations, remotes: None }
    }

    /// Lets kustomizations name remote resources.
    #[must_use]
    pub fn with_remotes(self, remotes: Option<Arc<dyn Remotes>>) -> Self {
        Self { remotes, ..self }
    }

    /// How many items there are.
    pub fn item_count(&self) -> usize {
        self.rendering.item_count()
    }

    /// The rendered files of each item, for writing them to disk: directory of the render, directory in the source, files.
    /// Items of included repositories are left out of no list; the first part of the directory tells the source.
    pub fn rendered_files(&self) -> Vec<RenderedFiles> {
        let items = self.rendering.items.iter().enumerate();
        let with_dir = items.filter_map(|(index, item)| {
            let (dir, render_dir) = (item.dir.clone()?, item.render_dir()?);
            let files = self.views.own(index);
            Some(RenderedFiles { index, source: item.project.source, render_dir, dir, files })
        });
        with_dir.collect()
    }

    /// Builds an item with kustomize and completes its objects.
    ///
    /// # Errors
    /// The problems of all its objects.
    pub fn build_item(&self, index: usize) -> Result<BuiltItem, Vec<ItemError>> {
        let item = &*self.rendering.items[index];
        let kustomization = &self.kustomizations[index];
        let view = self.views.of(index, item);
        let mut objects = Vec::new();
        if let Some(dir) = item.dir.as_deref()
            && !item.config.only_render
            && !kustomization.is_empty
        {
            objects =
                kustomize::build_with(&view, dir, Options::default(), self.remotes.as_deref())
                    .map_err(|error| vec![self.kustomize_error(item, dir, error, &view)])?;
        }
        let mut images = Vec::new();
        let discriminator = self.rendering.options.discriminator.as_deref();
        let fixed = &self.rendering.images;
        let objects =
            postprocess(item, objects, discriminator, fixed, &mut images).map_err(|errors| {
                let lift = |error: PostprocessError| self.rendering.error(item, error.into(), None);
                errors.into_iter().map(lift).collect::<Vec<_>>()
            })?;
        let inherited = &item.project.inherited;
        let item = DesiredItem {
            dir: item.shown_dir().unwrap_or_default(),
            tags: item.tags.clone(),
            objects: objects.into_iter().map(Arc::new).collect(),
            barrier: item.config.barrier || kustomization.barrier,
            message: item.config.message.clone(),
            wait_readiness: item.config.wait_readiness || kustomization.wait_readiness,
            delete_objects: item.config.delete_objects.clone(),
            wait_readiness_objects: item.config.wait_readiness_objects.clone(),
            conflict_resolution: inherited.conflict_resolution.clone(),
            ignore_for_diff: inherited.ignore_for_diff.clone(),
        };
        Ok(BuiltItem { item, images })
    }

    /// Puts the desired state together; `built` has one entry per item, in order. `scopes` are those of the target cluster;
    /// without, namespaces stay as written.
    pub fn desired(&self, built: Vec<BuiltItem>, scopes: Option<&dyn ScopeLookup>) -> DesiredState {
        let (mut items, images): (Vec<_>, Vec<_>) =
            built.into_iter().map(|built| (built.item, built.images)).unzip();
        if let Some(scopes) = scopes {
            fix_namespaces(&mut items, scopes);
        }
        let mut images: Vec<FixedImageUse> = images.into_iter().flatten().collect();
        images.sort_by(|a, b| a.image.cmp(&b.image));
        let objects_hash = objects_hash(items.iter().flat_map(|item| &item.objects));
        let options = &self.rendering.options;
        let discriminator = options.discriminator.clone().filter(|text| !text.is_empty());
        DesiredState {
            items,
            discriminator,
            inclusion: options.inclusion.clone(),
            objects_hash,
            images,
            warnings: self.rendering.warnings.clone(),
        }
    }

    /// Adds what to do about a base that is in the project, but not rendered by any item.
    fn kustomize_error(
        &self,
        item: &Item,
        dir: &str,
        error: KustomizeError,
        view: &View,
    ) -> ItemError {
        let mut error = self.rendering.error(item, error.into(), Some(view));
        let text = error.diagnostic.to_string();
        if let Some(base) = Self::unrendered_dir(item, dir, view, &text) {
            error.diagnostic.hints.push(format!(
                "directory {base} is in the project, but no item renders it; add an item with `path` and `onlyRender: true`"
            ));
        }
        error
    }

    /// A directory that the message names, that is in the source but not in the view.
    fn unrendered_dir(item: &Item, dir: &str, view: &View, text: &str) -> Option<String> {
        let tree = item.project.templates.tree();
        let words = text.split(|c: char| c.is_whitespace() || "\"'`,;:()".contains(c));
        let candidates = words.filter(|word| !word.is_empty()).flat_map(|word| {
            [crate::tree::join(dir, word), crate::tree::join("", word)].into_iter().flatten()
        });
        let is_unrendered = |path: &String| {
            let is_missing = !view.is_dir(path) && !view.is_file(path);
            !path.is_empty() && is_missing && (tree.is_dir(path) || tree.is_file(path))
        };
        let found = candidates.into_iter().find(is_unrendered)?;
        Some(if tree.is_dir(&found) { found } else { parent(&found).to_owned() })
    }
}

/// The rendered files of one item.
pub struct RenderedFiles {
    /// Position of the item in [`DesiredState::items`].
    pub index: usize,
    /// 0 for the project's own source, then counted up for each included repository.
    pub source: usize,
    /// Directory of the render: that of the item, with a suffix for its further uses.
    pub render_dir: String,
    /// Directory of the item, which leads the paths in `files`.
    pub dir: String,
    /// The files.
    pub files: Arc<MemoryTree>,
}

impl Describe for ItemProblem {
    fn describe(&self) -> Diagnostic {
        match self {
            Self::Render(error) => error.describe(),
            Self::Chart(error) => error.describe(),
            Self::Kustomization(error) => error.describe(),
            Self::Kustomize(error) => error.describe(),
            Self::Postprocess(error) => error.describe(),
        }
    }
}

impl Describe for PostprocessError {
    fn describe(&self) -> Diagnostic {
        let plain = || Diagnostic::new(Class::Project, self.to_string());
        match self {
            Self::Image(ImageError::NotFixed { object, field, .. }) => plain()
                .with_object(object)
                .with_field(field.to_string())
                .with_hint("pin it with --fixed-image, --fixed-images-file, `images` of the target, or the variable `images`"),
            Self::Image(ImageError::Placeholder { object, field }) => {
                plain().with_object(object).with_field(field.to_string())
            }
            Self::Image(_) => plain(),
            Self::Metadata { object, problem } => {
                let mut diagnostic = Diagnostic::new(Class::Project, problem.message.clone())
                    .with_object(object.to_string())
                    .with_field(problem.field.to_string())
                    .with_expected(&problem.expected);
                diagnostic.hints.extend(problem.hint.clone());
                diagnostic
            }
        }
    }
}
