use serde_json::{Map, Value};

use super::{Generator, GeneratorArgs, base64_lines};
use crate::kustomize::{decode::Located, error::Result, resource::Resource};

/// Makes the Secret of an entry of `secretGenerator`; all its data is base64.
pub(crate) fn generate(
    generator: &Generator<'_>,
    args: &Located<GeneratorArgs>,
) -> Result<Resource> {
    let (mut resource, data) = generator.start("Secret", args)?;
    let kind = args.value.secret_type.as_ref().map(|kind| kind.value.as_str());
    resource.value["type"] = kind.filter(|kind| !kind.is_empty()).unwrap_or("Opaque").into();
    let entries: Map<String, Value> =
        data.into_iter().map(|(key, data)| (key, base64_lines(&data).into())).collect();
    resource.value["data"] = entries.into();
    Ok(resource)
}
