use super::{Generator, GeneratorArgs, insert_config, unknown_type};
use crate::kustomize::{decode::Located, error::Result, resource::Resource};

/// Makes the ConfigMap of an entry of `configMapGenerator`.
pub(crate) fn generate(
    generator: &Generator<'_>,
    args: &Located<GeneratorArgs>,
) -> Result<Resource> {
    if let Some(Located { place, .. }) = &args.value.secret_type {
        return Err(unknown_type(place));
    }
    let (mut resource, data) = generator.start("ConfigMap", args)?;
    if let Some(object) = resource.value.as_object_mut() {
        for (key, data) in data {
            insert_config(object, key, data);
        }
    }
    Ok(resource)
}
