//! The recursion over kustomizations: resources and bases in, generators, components, transformers, out.

use std::{
    cell::{Cell, OnceCell},
    sync::Arc,
};

use super::{
    config::{TransformerConfig, load_configurations, load_crds, merge_shared, refuse},
    decode::Located,
    error::{KustomizeError, Place, Result},
    files::{self, Files, Purpose},
    generators::{self, Generator, config_map_generator, secret_generator},
    kustomization::{self, Kustomization, Loaded},
    origin::{Origin, Origins, Trail},
    patches::{Patching, patches, patches_json6902, patches_strategic_merge},
    plugins,
    remote::{self, Checkout, Repository},
    replacements,
    resmap::ResMap,
    resource::Resource,
    schema::{self, Schema},
    transformers::{
        annotations, images, labels,
        name_affix::{self, Affix},
        namespace::{NamespaceTransformer, Subjects},
        replicas,
    },
    vars::VarSet,
};
use crate::{
    tree::TreeError,
    yaml::{self, Schema as YamlSchema},
};

/// What all kustomizations of a build share.
pub(crate) struct Build<'a> {
    pub files: Files<'a>,
    /// Set by the first kustomization that has an opinion, the root before all others.
    schema: OnceCell<Arc<Schema>>,
    /// Whether the built-in schema was needed before another one was set: then that one comes on top of it.
    needs_builtin: Cell<bool>,
    pub origins: Origins,
}

/// Objects and what belongs to them on the way up.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    pub map: ResMap,
    pub config: Option<Arc<TransformerConfig>>,
    pub vars: VarSet,
}

/// A kustomization at work.
struct Target<'a> {
    build: &'a Build<'a>,
    loaded: &'a Loaded,
    /// The kustomization that refers to this one.
    parent: Option<&'a Target<'a>>,
    /// Where this is, for origins.
    path: Trail,
}

impl<'a> Build<'a> {
    pub(crate) fn new(files: Files<'a>, origins: Origins) -> Self {
        Self { files, schema: OnceCell::new(), needs_builtin: Cell::new(false), origins }
    }

    /// The schema in force.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.schema.get().cloned().unwrap_or_else(Schema::builtin)
    }

    /// Notes that something needed the schema in force.
    fn note_need(&self, is_needed: bool) {
        if is_needed {
            self.needs_builtin.set(true);
        }
    }

    /// Runs the root kustomization, without the steps that come after everything is accumulated.
    pub(crate) fn run(&self, loaded: &Loaded) -> Result<Accumulator> {
        let target = Target { build: self, loaded, parent: None, path: Trail::default() };
        target.read_schema()?;
        let mut accumulator = Accumulator::default();
        target.accumulate(&mut accumulator)?;
        Ok(accumulator)
    }
}

impl Target<'_> {
    fn kustomization(&self) -> &Kustomization {
        &self.loaded.kustomization
    }

    fn dir(&self) -> &str {
        &self.loaded.dir
    }

    /// The repository that this is in, where that is not the one that is built.
    fn checkout(&self) -> Option<&Checkout> {
        self.loaded.checkout.as_ref().or_else(|| self.parent?.checkout())
    }

    fn files(&self) -> Files<'_> {
        let build = self.build.files;
        self.checkout().map_or(build, |checkout| checkout.files(build))
    }

    /// `openapi`: which lists merge by key.
    fn read_schema(&self) -> Result<()> {
        let openapi = &self.kustomization().openapi;
        let place = self.loaded.place().child("openapi");
        let path = openapi.get("path");
        match (path, openapi.get("version")) {
            (Some(_), Some(_)) => Err(place.refuse("`path` and `version` exclude each other")),
            (None, Some(version)) if version != schema::BUILTIN_VERSION => {
                let problem = place.child("version").problem(format!("unknown version {version}"));
                let problem = problem.with_expected(schema::BUILTIN_VERSION);
                Err(KustomizeError::Kustomization(Box::new(problem)))
            }
            (None, Some(_)) => {
                self.build.schema.get_or_init(Schema::builtin);
                Ok(())
            }
            (Some(path), None) => {
                let place = place.child("path");
                let (file, text) = self.files().read(self.dir(), path, &place)?;
                let document = yaml::parse_document(&file, &text, YamlSchema::Config)?;
                let with_builtin = self.build.needs_builtin.get();
                let own = || Arc::new(Schema::from_openapi(&document.value, with_builtin));
                self.build.schema.get_or_init(own);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Adds this kustomization's objects to what is there, then transforms all of it. A component gets its user's
    /// objects, any other kustomization starts from nothing.
    fn accumulate(&self, into: &mut Accumulator) -> Result<()> {
        let kustomization = self.kustomization();
        for resource in &kustomization.resources {
            self.add_resource(into, resource)?;
        }
        let config = self.config()?;
        self.merge_config(into, &config)?;
        if !kustomization.crds.is_empty() {
            let mut of_crds = TransformerConfig::default();
            load_crds(self.files(), self.dir(), &kustomization.crds, &mut of_crds)?;
            self.merge_config(into, &Arc::new(of_crds))?;
        }
        self.generate(into)?;
        for component in &kustomization.components {
            self.add_component(into, component)?;
        }
        let config = into.config.clone().unwrap_or(config);
        self.transform(&mut into.map, &config)?;
        self.build.note_need(!kustomization.validators.is_empty());
        self.with_plugins(|context| {
            plugins::validate(context, &into.map, &kustomization.validators)
        })?;
        into.vars.declare(&kustomization.vars, &mut into.map)
    }

    /// The default field specifications, and what `configurations` add.
    fn config(&self) -> Result<Arc<TransformerConfig>> {
        let configurations = &self.kustomization().configurations;
        let mut config = TransformerConfig::defaults();
        if !configurations.is_empty() {
            let own = Arc::make_mut(&mut config);
            load_configurations(self.files(), self.dir(), configurations, own)?;
        }
        Ok(config)
    }

    fn merge_config(&self, into: &mut Accumulator, config: &Arc<TransformerConfig>) -> Result<()> {
        merge_shared(&mut into.config, config)
            .map_err(|conflict| refuse(&conflict, &self.loaded.place()))
    }

    /// Adds a file of manifests or the objects of a directory.
    fn add_resource(&self, into: &mut Accumulator, entry: &Located<String>) -> Result<()> {
        let Located { value: path, place } = entry;
        let repository = Repository::parse(path);
        if repository.as_ref().is_some_and(|found| found.is_explicit() || !remote::is_http(path)) {
            return self.add_directory(into, entry);
        }
        let schema = self.build.schema();
        let resources = self
            .files()
            .read(self.dir(), path, place)
            .and_then(|(file, text)| files::parse(&file, &text, Purpose::Resources, &schema));
        match resources {
            Ok(resources) => {
                let origin = self.build.origins.file(&self.path, path);
                for mut resource in resources {
                    // Whether an unknown kind lives in namespaces is looked up.
                    self.build.note_need(!Schema::knows(resource.api_version(), resource.kind()));
                    resource.origin.clone_from(&origin);
                    into.map.append(resource)?;
                }
                Ok(())
            }
            Err(KustomizeError::Read { source: TreeError::WrongKind { .. }, .. }) => {
                self.add_directory(into, entry)
            }
            // A web page, or none, where a repository may be.
            Err(KustomizeError::Status { .. } | KustomizeError::Yaml(_))
                if repository.is_some() =>
            {
                self.add_directory(into, entry)
            }
            Err(other) => Err(other),
        }
    }

    /// Adds the objects of a kustomization.
    fn add_directory(&self, into: &mut Accumulator, entry: &Located<String>) -> Result<()> {
        let loaded = self.load(entry)?;
        if loaded.is_component() {
            return Err(wrong_kind(&entry.place, "a component", "`components`"));
        }
        let mut below = Accumulator::default();
        self.target(&loaded, &entry.value).accumulate_below(&mut below)?;
        self.merge(into, below)
    }

    fn add_component(&self, into: &mut Accumulator, entry: &Located<String>) -> Result<()> {
        let loaded = self.load(entry)?;
        if !loaded.is_component() {
            return Err(wrong_kind(&entry.place, "not a component", "`resources`"));
        }
        self.target(&loaded, &entry.value).accumulate_below(into)?;
        // kustomize moves all of it into a new accumulator, where specifications are merged anew.
        match into.config.take() {
            Some(config) => self.merge_config(into, &config),
            None => Ok(()),
        }
    }

    fn accumulate_below(&self, into: &mut Accumulator) -> Result<()> {
        self.read_schema()?;
        self.accumulate(into)
    }

    /// Reads the kustomization of a directory that this one names.
    fn load(&self, entry: &Located<String>) -> Result<Loaded> {
        let Located { value: path, place } = entry;
        if let Some(repository) = Repository::parse(path) {
            let checkout = Checkout::fetch(repository, self.files(), place)?;
            let files = checkout.files(self.build.files);
            let dir = files.resolve_dir("", &checkout.repository.dir, place)?;
            self.refuse_cycle(Some(&checkout), &dir, place)?;
            let loaded = kustomization::load(files, &dir, Some(place))?;
            return Ok(Loaded { checkout: Some(checkout), ..loaded });
        }
        if has_swallowed_entry(path) {
            let problem = place.problem(format!("ambiguous path \"{path}\""));
            return Err(KustomizeError::Kustomization(Box::new(
                problem.with_hint("check the indentation: two entries may have become one"),
            )));
        }
        let dir = self.files().resolve_dir(self.dir(), path, place)?;
        self.refuse_cycle(self.checkout(), &dir, place)?;
        kustomization::load(self.files(), &dir, Some(place))
    }

    /// A kustomization cannot build upon a directory that it, or one that builds upon it, is in.
    fn refuse_cycle(&self, checkout: Option<&Checkout>, dir: &str, place: &Place) -> Result<()> {
        let mut chain = Vec::new();
        let mut visited = Some(self);
        while let Some(target) = visited {
            chain.push(target.loaded.file.as_str());
            let is_same_tree = match (target.checkout(), checkout) {
                (None, None) => true,
                (Some(own), Some(other)) => own.repository.is_same(&other.repository),
                _ => false,
            };
            if is_same_tree && files::is_at_or_below(target.dir(), dir) {
                let shown = match checkout {
                    Some(checkout) => checkout.repository.shown(dir),
                    None if dir.is_empty() => "the root directory".to_owned(),
                    None => dir.to_owned(),
                };
                let problem = place.problem(format!("{shown} contains this kustomization"));
                chain.reverse();
                let hint = format!(
                    "a kustomization cannot build upon itself: {} → {shown}",
                    chain.join(" → ")
                );
                return Err(KustomizeError::Kustomization(Box::new(problem.with_hint(hint))));
            }
            visited = target.parent;
        }
        Ok(())
    }

    fn target<'b>(&'b self, loaded: &'b Loaded, path: &str) -> Target<'b> {
        let path = self.path.join(path);
        Target { build: self.build, loaded, parent: Some(self), path }
    }

    fn merge(&self, into: &mut Accumulator, below: Accumulator) -> Result<()> {
        into.map.append_all(below.map)?;
        if let Some(config) = &below.config {
            self.merge_config(into, config)?;
        }
        into.vars.merge(below.vars)
    }

    fn generate(&self, into: &mut Accumulator) -> Result<()> {
        let kustomization = self.kustomization();
        let schema = self.build.schema();
        let generator = Generator {
            files: self.files(),
            dir: self.dir(),
            options: kustomization.generator_options.as_ref(),
            schema: &schema,
        };
        let origin = |kind: &str| self.origin(kind);
        let mut absorb = |mut resource: Resource, origin: Option<Origin>| {
            resource.origin = resource.origin.take().or(origin);
            generators::absorb(&mut into.map, resource)
        };
        for entry in &kustomization.config_map_generator {
            let made = config_map_generator::generate(&generator, entry)?;
            absorb(made, origin("ConfigMapGenerator"))?;
        }
        for entry in &kustomization.secret_generator {
            let made = secret_generator::generate(&generator, entry)?;
            absorb(made, origin("SecretGenerator"))?;
        }
        // Their configurations are objects of kinds that no schema knows.
        self.build.note_need(!kustomization.generators.is_empty());
        let made =
            self.with_plugins(|context| plugins::generate(context, &kustomization.generators))?;
        for made in made {
            generators::absorb(&mut into.map, made)?;
        }
        Ok(())
    }

    /// The origin of what a field of this kustomization does.
    fn origin(&self, kind: &str) -> Option<Origin> {
        let file = crate::tree::file_name(&self.loaded.file);
        self.build.origins.field(&self.path, file, kind)
    }

    /// Runs something with what plug-ins need.
    fn with_plugins<T>(&self, run: impl FnOnce(&plugins::Context<'_>) -> Result<T>) -> Result<T> {
        let load = |entry: &Located<String>| {
            let loaded = self.load(entry)?;
            let mut below = Accumulator::default();
            self.target(&loaded, &entry.value).accumulate_below(&mut below)?;
            Ok(below.map)
        };
        run(&plugins::Context {
            build: self.build,
            dir: self.dir(),
            path: &self.path,
            files: self.files(),
            file: crate::tree::file_name(&self.loaded.file),
            load: &load,
        })
    }

    /// All transformers, in kustomize's order. Patches are read before anything is changed.
    fn transform(&self, map: &mut ResMap, config: &TransformerConfig) -> Result<()> {
        let kustomization = self.kustomization();
        let schema = self.build.schema();
        let patching = Patching { files: self.files(), dir: self.dir(), schema: &schema };
        let merge_patches =
            patches_strategic_merge::prepare(&patching, &kustomization.patches_strategic_merge)?;
        if let ([], [first, ..]) = (&*merge_patches, &*kustomization.patches_strategic_merge) {
            return Err(first.place.refuse("there is no patch in what is named here"));
        }
        let prepare = |entry| patches::prepare(&patching, entry);
        let prepared = kustomization.patches.iter().map(prepare).collect::<Result<Vec<_>>>()?;
        let prepare = |entry| patches_json6902::prepare(&patching, entry);
        let json_patches =
            kustomization.patches_json6902.iter().map(prepare).collect::<Result<Vec<_>>>()?;
        self.build.note_need(!kustomization.transformers.is_empty());
        let plugins = self
            .with_plugins(|context| plugins::transformers(context, &kustomization.transformers))?;

        if !merge_patches.is_empty() {
            self.build.note_need(true);
            patches_strategic_merge::apply(&patching, &merge_patches, map)?;
            self.record(map, "PatchStrategicMergeTransformer");
        }
        for patch in &prepared {
            self.build.note_need(patch.merges_into(map));
            patch.apply(&patching, map)?;
            self.record(map, "PatchTransformer");
        }
        self.transform_names(map, config)?;
        self.transform_metadata(map, config)?;
        for patch in &json_patches {
            patch.apply(&patching, map)?;
            self.record(map, "PatchJson6902Transformer");
        }
        for replica in &kustomization.replicas {
            replicas::apply(map, replica, &config.replicas)?;
            self.record(map, "ReplicaCountTransformer");
        }
        for image in &kustomization.images {
            images::apply(map, image, &config.images)?;
            self.record(map, "ImageTagTransformer");
        }
        if !kustomization.replacements.is_empty() {
            let list = replacements::load(self.files(), self.dir(), &kustomization.replacements)?;
            replacements::apply(map, &list)?;
            self.record(map, "ReplacementTransformer");
        }
        self.with_plugins(|context| {
            plugins.into_iter().try_for_each(|plugin| plugin.apply(context, map))
        })
    }

    fn transform_names(&self, map: &mut ResMap, config: &TransformerConfig) -> Result<()> {
        let Kustomization { namespace, name_prefix, name_suffix, .. } = self.kustomization();
        if !namespace.is_empty() {
            let specs = &config.namespace;
            let subjects = Subjects::default();
            NamespaceTransformer { namespace, specs, unset_only: false, subjects }.apply(map)?;
            self.record(map, "NamespaceTransformer");
        }
        if !name_prefix.is_empty() {
            name_affix::apply(map, Affix::Prefix, name_prefix, &config.name_prefix)?;
            self.record(map, "PrefixTransformer");
        }
        if !name_suffix.is_empty() {
            name_affix::apply(map, Affix::Suffix, name_suffix, &config.name_suffix)?;
            self.record(map, "SuffixTransformer");
        }
        Ok(())
    }

    fn transform_metadata(&self, map: &mut ResMap, config: &TransformerConfig) -> Result<()> {
        let kustomization = self.kustomization();
        for label in &kustomization.labels {
            let specs = labels::field_specs(label, config)?;
            labels::apply(map, &label.value.pairs, &specs)?;
            self.record(map, "LabelTransformer");
        }
        if !kustomization.common_labels.is_empty() || !kustomization.labels.is_empty() {
            labels::apply(map, &kustomization.common_labels, &config.common_labels)?;
            self.record(map, "LabelTransformer");
        }
        if !kustomization.common_annotations.is_empty() {
            let specs = &config.common_annotations;
            annotations::apply(map, &kustomization.common_annotations, specs)?;
            self.record(map, "AnnotationsTransformer");
        }
        Ok(())
    }

    /// Notes for `buildMetadata` which transformer ran, and drops what it emptied.
    fn record(&self, map: &mut ResMap, kind: &str) {
        if let Some(origin) = self.origin(kind) {
            for resource in map.iter_mut() {
                resource.record(&origin);
            }
        }
        map.drop_empty();
    }
}

fn wrong_kind(place: &Place, is: &str, field: &str) -> KustomizeError {
    let problem = place.problem(format!("this directory is {is}"));
    KustomizeError::Kustomization(Box::new(problem.with_hint(format!("name it under {field}"))))
}

/// Whether a path looks like two list entries that YAML joined: `../a - ../b`.
fn has_swallowed_entry(path: &str) -> bool {
    path.split('/').any(|part| part != ".." && part.contains(".."))
}
