//! The kustomization file as typed values. What each field means: <https://kubectl.docs.kubernetes.io/references/kustomize/>.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    config::FieldSpec,
    decode::{Decode, Fielded, Located, Node, decoded},
    error::{KustomizeError, Place, Result},
    files::Files,
    generators::{GeneratorArgs, GeneratorOptions},
    remote::Checkout,
    replacements::ReplacementField,
    selector::Selector,
    vars::Var,
};
use crate::{
    diagnostic::SourceLocation,
    tree::{TreeError, join},
    yaml::{self, Schema as YamlSchema},
};

/// The file names of a kustomization, as kustomize recognises them.
pub(crate) const FILE_NAMES: [&str; 3] =
    ["kustomization.yaml", "kustomization.yml", "Kustomization"];

const KIND: &str = "Kustomization";
const COMPONENT: &str = "Component";

type Texts = BTreeMap<String, String>;

decoded! {
    /// A kustomization or component.
    pub(crate) struct Kustomization {
        api_version: String = "apiVersion",
        kind: String = "kind",
        #[expect(dead_code, reason = "checked, without effect")]
        metadata: Option<Metadata> = "metadata",
        openapi: Texts = "openapi",
        name_prefix: String = "namePrefix",
        name_suffix: String = "nameSuffix",
        namespace: String = "namespace",
        common_labels: Texts = "commonLabels",
        labels: Vec<Located<Label>> = "labels",
        common_annotations: Texts = "commonAnnotations",
        patches_strategic_merge: Vec<Located<String>> = "patchesStrategicMerge",
        patches_json6902: Vec<Located<Patch>> = "patchesJson6902",
        patches: Vec<Located<Patch>> = "patches",
        images: Vec<Located<Image>> = "images",
        image_tags: Vec<Located<Image>> = "imageTags",
        replacements: Vec<Located<ReplacementField>> = "replacements",
        replicas: Vec<Located<Replica>> = "replicas",
        vars: Vec<Located<Var>> = "vars",
        sort_options: Option<Located<SortOptions>> = "sortOptions",
        resources: Vec<Located<String>> = "resources",
        components: Vec<Located<String>> = "components",
        crds: Vec<Located<String>> = "crds",
        bases: Vec<Located<String>> = "bases",
        config_map_generator: Vec<Located<GeneratorArgs>> = "configMapGenerator",
        secret_generator: Vec<Located<GeneratorArgs>> = "secretGenerator",
        #[expect(dead_code, reason = "checked, without effect")]
        helm_globals: Option<Located<Raw>> = "helmGlobals",
        helm_charts: Option<Located<Raw>> = "helmCharts",
        helm_chart_inflation: Option<Located<Raw>> = "helmChartInflationGenerator",
        generator_options: Option<GeneratorOptions> = "generatorOptions",
        configurations: Vec<Located<String>> = "configurations",
        generators: Vec<Located<String>> = "generators",
        transformers: Vec<Located<String>> = "transformers",
        validators: Vec<Located<String>> = "validators",
        build_metadata: Vec<Located<String>> = "buildMetadata",
    }
}

decoded! {
    /// `metadata` of a kustomization; it has no effect on the build.
    #[expect(dead_code, reason = "read for its errors")]
    pub(crate) struct Metadata {
        name: String = "name",
        namespace: String = "namespace",
        labels: Texts = "labels",
        annotations: Texts = "annotations",
    }
}

decoded! {
    /// An entry of `labels`.
    pub(crate) struct Label {
        pairs: Texts = "pairs",
        include_selectors: bool = "includeSelectors",
        include_templates: bool = "includeTemplates",
        include_volume_claim_templates: bool = "includeVolumeClaimTemplates",
        fields: Vec<FieldSpec> = "fields",
    }
}

decoded! {
    /// An entry of `images`.
    pub(crate) struct Image {
        name: String = "name",
        new_name: String = "newName",
        tag_suffix: String = "tagSuffix",
        new_tag: String = "newTag",
        digest: String = "digest",
    }
}

decoded! {
    /// An entry of `replicas`.
    pub(crate) struct Replica {
        name: String = "name",
        count: i64 = "count",
    }
}

decoded! {
    /// An entry of `patches` or `patchesJson6902`.
    pub(crate) struct Patch {
        path: Option<Located<String>> = "path",
        inline: Option<Located<String>> = "patch",
        target: Option<Located<Selector>> = "target",
        options: PatchOptions = "options",
    }
}

decoded! {
    /// What a strategic merge patch may change besides.
    pub(crate) struct PatchOptions {
        allow_name_change: bool = "allowNameChange",
        allow_kind_change: bool = "allowKindChange",
    }
}

decoded! {
    /// `sortOptions`.
    pub(crate) struct SortOptions {
        order: String = "order",
        legacy: Option<LegacySortOptions> = "legacySortOptions",
    }
}

decoded! {
    /// `sortOptions.legacySortOptions`: kinds.
    pub(crate) struct LegacySortOptions {
        first: Vec<String> = "orderFirst",
        last: Vec<String> = "orderLast",
    }
}

/// A field that is only looked at for being there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Raw(pub Value);

impl Decode for Raw {
    fn decode(node: &Node<'_>) -> Result<Self> {
        Ok(Self(node.value.clone()))
    }
}

/// A kustomization with the place it was read from.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub kustomization: Kustomization,
    /// Directory in the tree.
    pub dir: String,
    /// The file, as it is called in messages.
    pub file: String,
    /// The repository, where one is built upon here.
    pub checkout: Option<Checkout>,
}

impl Loaded {
    pub(crate) fn is_component(&self) -> bool {
        self.kustomization.kind == COMPONENT
    }

    /// The file as a whole.
    pub(crate) fn place(&self) -> Place {
        Place { at: SourceLocation::file(self.file.clone()), field: String::new() }
    }

    /// Whether `buildMetadata` names the option.
    pub(crate) fn records(&self, option: &str) -> bool {
        self.kustomization.build_metadata.iter().any(|entry| entry.value == option)
    }
}

/// Reads the kustomization of a directory. `referrer` is where the directory is named, for messages.
pub(crate) fn load(files: Files<'_>, dir: &str, referrer: Option<&Place>) -> Result<Loaded> {
    let mut found = Vec::new();
    for name in FILE_NAMES {
        let path = join(dir, name).map_err(|source| read_error(referrer, dir, source))?;
        match files.tree.read(&path) {
            Ok(text) => found.push((name, path, text)),
            Err(TreeError::NotFound { .. } | TreeError::WrongKind { .. }) => {}
            Err(source) => return Err(read_error(referrer, dir, source)),
        }
    }
    if found.len() > 1 {
        let dir = files.shown(dir.to_owned());
        let files = found.iter().map(|(name, ..)| *name).collect();
        return Err(KustomizeError::SeveralKustomizations { dir, files });
    }
    let Some((_, file, text)) = found.pop() else {
        let referrer = referrer.map(|place| Box::new(place.clone()));
        let dir = files.shown(dir.to_owned());
        return Err(KustomizeError::NoKustomization { dir, referrer });
    };
    let file = files.shown(file);
    let document = yaml::parse_document(&file, &text, YamlSchema::Config)?;
    let node = Node::root(&file, &document);
    if document.value.is_null() {
        return Err(empty(&node));
    }
    let kustomization = Kustomization::decode(&node)?;
    check(&kustomization, &node)?;
    let kustomization = normalise(kustomization);
    Ok(Loaded { kustomization, dir: dir.to_owned(), file, checkout: None })
}

fn read_error(referrer: Option<&Place>, dir: &str, source: TreeError) -> KustomizeError {
    let place = referrer.cloned().unwrap_or_else(|| Place {
        at: SourceLocation::file(dir.to_owned()),
        field: String::new(),
    });
    KustomizeError::Read { place: Box::new(place), source }
}

fn empty(node: &Node<'_>) -> KustomizeError {
    let problem = node.place().problem("the kustomization is empty");
    let problem = problem.with_hint("write `resources: []` if that is meant");
    KustomizeError::Kustomization(Box::new(problem))
}

fn check(kustomization: &Kustomization, node: &Node<'_>) -> Result<()> {
    let fields = node.fields(Kustomization::FIELDS)?;
    let meaningful = node.value.as_object().into_iter().flatten().any(|(key, value)| {
        let is_type = key.eq_ignore_ascii_case("kind") || key.eq_ignore_ascii_case("apiVersion");
        !is_type && !value.is_null() && value.as_str() != Some("")
    });
    if !meaningful {
        return Err(empty(node));
    }
    let place = |name: &str| fields.get(name).map_or_else(|| node.place(), |node| node.place());
    let version = match kustomization.kind.as_str() {
        "" | KIND => "kustomize.config.k8s.io/v1beta1",
        COMPONENT => "kustomize.config.k8s.io/v1alpha1",
        other => {
            let problem = place("kind").problem(format!("unknown kind \"{other}\""));
            let problem = problem.with_expected(format!("{KIND} or {COMPONENT}"));
            return Err(KustomizeError::Kustomization(Box::new(problem)));
        }
    };
    let found = kustomization.api_version.as_str();
    if !found.is_empty() && found != version {
        let problem = place("apiVersion").problem(format!("unknown version \"{found}\""));
        return Err(KustomizeError::Kustomization(Box::new(problem.with_expected(version))));
    }
    for (field, name) in [
        (&kustomization.helm_charts, "helmCharts"),
        (&kustomization.helm_chart_inflation, "helmChartInflationGenerator"),
    ] {
        if let Some(field) = field.as_ref().filter(|field| field.value.0 != Value::Array(vec![])) {
            let problem = field.place.problem(format!("{name} is not supported"));
            return Err(KustomizeError::Kustomization(Box::new(problem.with_hint(
                "put a helm-chart.yaml into the directory of a deployment item instead",
            ))));
        }
    }
    Ok(())
}

/// Moves the content of deprecated fields to their successors.
fn normalise(mut kustomization: Kustomization) -> Kustomization {
    kustomization.resources.append(&mut kustomization.bases);
    kustomization.images.append(&mut kustomization.image_tags);
    kustomization
}
