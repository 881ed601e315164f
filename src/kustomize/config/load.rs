use super::{Conflict, FieldSpec, FieldSpecs, NameReference, TransformerConfig};
use crate::{
    kustomize::{
        decode::{Decode, Located, Node, decoded},
        error::{KustomizeError, Place, Result},
        files::Files,
        id::Gvk,
    },
    yaml::{self, Schema as YamlSchema},
};

decoded! {
    /// A file of `configurations`.
    pub(crate) struct Written {
        name_prefix: Vec<FieldSpec> = "namePrefix",
        name_suffix: Vec<FieldSpec> = "nameSuffix",
        namespace: Vec<FieldSpec> = "namespace",
        common_labels: Vec<FieldSpec> = "commonLabels",
        labels: Vec<FieldSpec> = "labels",
        template_labels: Vec<FieldSpec> = "templateLabels",
        volume_claim_template_labels: Vec<FieldSpec> = "volumeClaimTemplateLabels",
        common_annotations: Vec<FieldSpec> = "commonAnnotations",
        name_references: Vec<WrittenReference> = "nameReference",
        var_references: Vec<FieldSpec> = "varReference",
        images: Vec<FieldSpec> = "images",
        replicas: Vec<FieldSpec> = "replicas",
    }
}

decoded! {
    pub(crate) struct WrittenReference {
        group: String = "group",
        version: String = "version",
        kind: String = "kind",
        field_specs: Vec<FieldSpec> = "fieldSpecs",
    }
}

impl From<Written> for TransformerConfig {
    fn from(written: Written) -> Self {
        let reference = |written: WrittenReference| NameReference {
            target: Gvk { group: written.group, version: written.version, kind: written.kind },
            referrers: FieldSpecs(written.field_specs),
        };
        Self {
            name_prefix: FieldSpecs(written.name_prefix),
            name_suffix: FieldSpecs(written.name_suffix),
            namespace: FieldSpecs(written.namespace),
            common_labels: FieldSpecs(written.common_labels),
            labels: FieldSpecs(written.labels),
            template_labels: FieldSpecs(written.template_labels),
            volume_claim_template_labels: FieldSpecs(written.volume_claim_template_labels),
            common_annotations: FieldSpecs(written.common_annotations),
            name_references: written.name_references.into_iter().map(reference).collect(),
            var_references: FieldSpecs(written.var_references),
            images: FieldSpecs(written.images),
            replicas: FieldSpecs(written.replicas),
        }
    }
}

/// Adds the files of `configurations`, named by a kustomization in `dir`, to a configuration.
pub(crate) fn load_configurations(
    files: Files<'_>,
    dir: &str,
    paths: &[Located<String>],
    config: &mut TransformerConfig,
) -> Result<()> {
    for Located { value: path, place } in paths {
        let (file, text) = files.read(dir, path, place)?;
        let document = yaml::parse_document(&file, &text, YamlSchema::Config)?;
        if document.value.is_null() {
            continue;
        }
        let node = Node::root(&file, &document);
        let written = Written::decode(&node)?;
        config.merge(&written.into()).map_err(|conflict| refuse(&conflict, &node.place()))?;
    }
    Ok(())
}

/// The error for specifications that contradict each other.
pub(crate) fn refuse(conflict: &Conflict, place: &Place) -> KustomizeError {
    let problem = place.problem(format!("field `{}` is specified twice", conflict.path));
    KustomizeError::Kustomization(Box::new(
        problem.with_hint("`create` must be the same in all specifications of a field"),
    ))
}
