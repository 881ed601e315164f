use super::{Context, configuration, iam_policy};
use crate::kustomize::{
    decode::{Decode, Fielded, Located, Node},
    error::Result,
    generators::{Generator, GeneratorArgs, config_map_generator, secret_generator},
    kustomization::Metadata,
    resource::Resource,
};

const KINDS: [&str; 3] = ["ConfigMapGenerator", "IAMPolicyGenerator", "SecretGenerator"];

/// Runs the plug-ins of `generators`.
pub(crate) fn generate(
    context: &Context<'_>,
    entries: &[Located<String>],
) -> Result<Vec<Resource>> {
    let schema = context.build.schema();
    let generator =
        Generator { files: context.files, dir: context.dir, options: None, schema: &schema };
    let mut made = Vec::new();
    for configuration in configuration::read(context, entries)? {
        let kind = configuration.kind()?;
        let args = || args(&configuration.node());
        let mut resource = match kind {
            "ConfigMapGenerator" => config_map_generator::generate(&generator, &args()?)?,
            "SecretGenerator" => secret_generator::generate(&generator, &args()?)?,
            "IAMPolicyGenerator" => iam_policy::generate(&configuration, &schema)?,
            other => return Err(configuration.wrong_kind(other, &KINDS)),
        };
        resource.origin = configuration.origin;
        made.push(resource);
    }
    Ok(made)
}

/// The arguments, with name and namespace from `metadata` unless given.
fn args(node: &Node<'_>) -> Result<Located<GeneratorArgs>> {
    let known = [GeneratorArgs::FIELDS, &["apiVersion", "kind", "metadata"]].concat();
    let fields = node.fields(&known)?;
    let mut args = GeneratorArgs::from_fields(&fields)?;
    if let Some(metadata) = fields.get("metadata") {
        let Metadata { name, namespace, .. } = Metadata::decode(&metadata)?;
        for (own, default) in [(&mut args.name, name), (&mut args.namespace, namespace)] {
            if own.is_empty() {
                *own = default;
            }
        }
    }
    Ok(Located { value: args, place: node.place() })
}
