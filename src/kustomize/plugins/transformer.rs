use std::collections::BTreeMap;

use super::{
    Context,
    configuration::{self, Configuration},
    value_add::ValueAdd,
};
use crate::{
    diagnostic::SourceLocation,
    kustomize::{
        config::{FieldSpec, FieldSpecs},
        decode::{Decode, Fielded, Located, Node, decoded},
        error::{KustomizeError, Result},
        generators::hash,
        kustomization::{Image, Metadata, Patch, PatchOptions, Replica},
        origin::Origin,
        patches::{Patching, patches, patches_json6902, patches_strategic_merge},
        replacements::{self, ReplacementField},
        resmap::ResMap,
        resource::Resource,
        schema::Schema,
        selector::Selector,
        transformers::{
            annotations, images, labels,
            name_affix::{self, Affix},
            namespace::{NamespaceTransformer, Subjects},
            replicas,
        },
    },
};

type Texts = BTreeMap<String, String>;

decoded! {
    pub(crate) struct Annotations {
        annotations: Texts = "annotations",
        specs: Vec<FieldSpec> = "fieldSpecs",
    }
}

decoded! {
    pub(crate) struct Labels {
        labels: Texts = "labels",
        specs: Vec<FieldSpec> = "fieldSpecs",
    }
}

decoded! {
    pub(crate) struct Namespace {
        metadata: Metadata = "metadata",
        specs: Vec<FieldSpec> = "fieldSpecs",
        unset_only: bool = "unsetOnly",
        subjects: Subjects = "setRoleBindingSubjects",
    }
}

decoded! {
    pub(crate) struct Prefix {
        text: String = "prefix",
        specs: Option<Vec<FieldSpec>> = "fieldSpecs",
    }
}

decoded! {
    pub(crate) struct Suffix {
        text: String = "suffix",
        specs: Option<Vec<FieldSpec>> = "fieldSpecs",
    }
}

decoded! {
    pub(crate) struct PrefixSuffix {
        prefix: String = "prefix",
        suffix: String = "suffix",
        specs: Option<Vec<FieldSpec>> = "fieldSpecs",
    }
}

decoded! {
    pub(crate) struct ImageTag {
        image: Option<Located<Image>> = "imageTag",
        specs: Vec<FieldSpec> = "fieldSpecs",
    }
}

decoded! {
    pub(crate) struct ReplicaCount {
        replica: Option<Located<Replica>> = "replica",
        specs: Vec<FieldSpec> = "fieldSpecs",
    }
}

decoded! {
    pub(crate) struct PatchJson6902 {
        target: Option<Located<Selector>> = "target",
        path: Option<Located<String>> = "path",
        operations: Option<Located<String>> = "jsonOp",
    }
}

decoded! {
    pub(crate) struct PatchStrategicMerge {
        paths: Vec<Located<String>> = "paths",
        patches: Option<Located<String>> = "patches",
    }
}

decoded! {
    pub(crate) struct Replacement {
        replacements: Vec<Located<ReplacementField>> = "replacements",
    }
}

impl Decode for Subjects {
    fn decode(node: &Node<'_>) -> Result<Self> {
        match String::decode(node)?.as_str() {
            "" | "defaultOnly" => Ok(Self::NamedDefault),
            "allServiceAccounts" => Ok(Self::ServiceAccounts),
            "none" => Ok(Self::None),
            other => {
                let problem = node.place().problem(format!("unknown mode \"{other}\""));
                Err(KustomizeError::Kustomization(Box::new(
                    problem.with_expected("defaultOnly, allServiceAccounts or none"),
                )))
            }
        }
    }
}

const KINDS: [&str; 14] = [
    "AnnotationsTransformer",
    "HashTransformer",
    "ImageTagTransformer",
    "LabelTransformer",
    "NamespaceTransformer",
    "PatchJson6902Transformer",
    "PatchStrategicMergeTransformer",
    "PatchTransformer",
    "PrefixSuffixTransformer",
    "PrefixTransformer",
    "ReplacementTransformer",
    "ReplicaCountTransformer",
    "SuffixTransformer",
    "ValueAddTransformer",
];

/// A plug-in of `transformers`, read and ready.
pub(crate) struct Plugin {
    at: SourceLocation,
    origin: Option<Origin>,
    action: Action,
}

enum Action {
    Annotations(Annotations),
    Labels(Labels),
    Namespace(Namespace),
    Affixes(Vec<(Affix, String)>, FieldSpecs),
    Image(Located<Image>, FieldSpecs),
    Replicas(Located<Replica>, FieldSpecs),
    Patch(patches::Prepared),
    Json(patches_json6902::Prepared),
    Merge(Vec<Resource>),
    Replace(Vec<Located<ReplacementField>>),
    Hash,
    ValueAdd(ValueAdd),
}

/// Reads the plug-ins of `transformers` or `validators`.
pub(crate) fn transformers(
    context: &Context<'_>,
    entries: &[Located<String>],
) -> Result<Vec<Plugin>> {
    let schema = context.build.schema();
    configuration::read(context, entries)?
        .into_iter()
        .map(|configuration| {
            let action = read(context, &schema, &configuration)?;
            Ok(Plugin { at: configuration.at(), origin: configuration.origin, action })
        })
        .collect()
}

fn patching<'a>(context: &Context<'a>, schema: &'a Schema) -> Patching<'a> {
    Patching { files: context.files, dir: context.dir, schema }
}

fn read(context: &Context<'_>, schema: &Schema, configuration: &Configuration) -> Result<Action> {
    let patching = patching(context, schema);
    let place = configuration.place();
    let missing = |field: &str| place.refuse(format!("`{field}` is needed"));
    Ok(match configuration.kind()? {
        "AnnotationsTransformer" => Action::Annotations(typed(configuration)?),
        "LabelTransformer" => Action::Labels(typed(configuration)?),
        "NamespaceTransformer" => Action::Namespace(typed(configuration)?),
        "PrefixTransformer" => {
            let Prefix { text, specs } = typed(configuration)?;
            let specs = specs.ok_or_else(|| missing("fieldSpecs"))?;
            Action::Affixes(vec![(Affix::Prefix, text)], FieldSpecs(specs))
        }
        "SuffixTransformer" => {
            let Suffix { text, specs } = typed(configuration)?;
            let specs = specs.ok_or_else(|| missing("fieldSpecs"))?;
            Action::Affixes(vec![(Affix::Suffix, text)], FieldSpecs(specs))
        }
        "PrefixSuffixTransformer" => {
            let PrefixSuffix { prefix, suffix, specs } = typed(configuration)?;
            let specs = specs.ok_or_else(|| missing("fieldSpecs"))?;
            let affixes = vec![(Affix::Prefix, prefix), (Affix::Suffix, suffix)];
            Action::Affixes(affixes, FieldSpecs(specs))
        }
        "ImageTagTransformer" => {
            let ImageTag { image, specs } = typed(configuration)?;
            Action::Image(image.ok_or_else(|| missing("imageTag"))?, FieldSpecs(specs))
        }
        "ReplicaCountTransformer" => {
            let ReplicaCount { replica, specs } = typed(configuration)?;
            Action::Replicas(replica.ok_or_else(|| missing("replica"))?, FieldSpecs(specs))
        }
        "PatchTransformer" => {
            let value: Patch = typed(configuration)?;
            Action::Patch(patches::prepare(&patching, &Located { value, place })?)
        }
        "PatchJson6902Transformer" => {
            let PatchJson6902 { target, path, operations } = typed(configuration)?;
            let options = PatchOptions::default();
            let value = Patch { path, inline: operations, target, options };
            Action::Json(patches_json6902::prepare(&patching, &Located { value, place })?)
        }
        "PatchStrategicMergeTransformer" => {
            let PatchStrategicMerge { paths, patches } = typed(configuration)?;
            let mut found = patches_strategic_merge::prepare(&patching, &paths)?;
            if let Some(text) = patches {
                found.extend(patches_strategic_merge::parse(&patching, &text)?);
            }
            if found.is_empty() {
                return Err(place.refuse("`paths` and `patches` hold no patch"));
            }
            Action::Merge(found)
        }
        "ReplacementTransformer" => {
            let Replacement { replacements } = typed(configuration)?;
            let files = context.files;
            Action::Replace(replacements::load(files, context.dir, &replacements)?)
        }
        "HashTransformer" => Action::Hash,
        "ValueAddTransformer" => Action::ValueAdd(ValueAdd::read(context, configuration)?),
        other => return Err(configuration.wrong_kind(other, &KINDS)),
    })
}

/// Reads a configuration. `metadata` is there for identification.
pub(super) fn typed<T: Fielded>(configuration: &Configuration) -> Result<T> {
    let known = [T::FIELDS, &["apiVersion", "kind", "metadata"]].concat();
    T::from_fields(&configuration.node().fields(&known)?)
}

impl Plugin {
    /// Where the plug-in is configured.
    pub(super) fn at(&self) -> &SourceLocation {
        &self.at
    }

    /// Transforms all objects.
    pub(crate) fn apply(&self, context: &Context<'_>, map: &mut ResMap) -> Result<()> {
        let schema = context.build.schema();
        let patching = patching(context, &schema);
        match &self.action {
            Action::Annotations(Annotations { annotations, specs }) => {
                annotations::apply(map, annotations, &FieldSpecs(specs.clone()))
            }
            Action::Labels(Labels { labels, specs }) => {
                labels::apply(map, labels, &FieldSpecs(specs.clone()))
            }
            Action::Namespace(Namespace { metadata, specs, unset_only, subjects }) => {
                NamespaceTransformer {
                    namespace: &metadata.namespace,
                    specs: &FieldSpecs(specs.clone()),
                    unset_only: *unset_only,
                    subjects: *subjects,
                }
                .apply(map)
            }
            Action::Affixes(affixes, specs) => affixes
                .iter()
                .try_for_each(|(affix, text)| name_affix::apply(map, *affix, text, specs)),
            Action::Image(image, specs) => images::apply(map, image, specs),
            Action::Replicas(replica, specs) => replicas::apply(map, replica, specs),
            Action::Patch(patch) => patch.apply(&patching, map),
            Action::Json(patch) => patch.apply(&patching, map),
            Action::Merge(patches) => patches_strategic_merge::apply(&patching, patches, map),
            Action::Replace(list) => replacements::apply(map, list),
            Action::Hash => {
                hash::apply(map);
                Ok(())
            }
            Action::ValueAdd(value_add) => value_add.apply(map),
        }?;
        if let Some(origin) = &self.origin {
            for resource in map.iter_mut() {
                resource.record(origin);
            }
        }
        map.drop_empty();
        Ok(())
    }
}
