use kube::CustomResourceExt;
use serde_json::Value;

use super::KluctlDeployment;

/// File name and content of one custom resource definition below `crds/`.
#[derive(Debug, Clone)]
pub struct CrdFile {
    /// File name.
    pub name: String,
    /// YAML text.
    pub text: String,
}

/// All custom resource definitions that the controller serves, as they are written to `crds/`.
///
/// # Errors
/// When a schema cannot be written as YAML, which is a defect.
pub fn crd_files() -> Result<Vec<CrdFile>, Box<dyn std::error::Error + Send + Sync>> {
    let mut crd = serde_json::to_value(KluctlDeployment::crd())?;
    tidy(&mut crd);
    let text =
        format!("# Generated from src/api by `make crds`.\n{}", serde_yaml::to_string(&crd)?);
    Ok(vec![CrdFile { name: "flux.kluctl.io_kluctldeployments.yaml".to_owned(), text }])
}

/// Takes out what Rust's types bring along and the API does not mean.
///
/// `nullable` would let an explicit null through to the object; without it the API server drops nulls and sets the
/// default, as users of Go-made CRDs expect. Number formats other than int32 and int64 are unknown to the API. Defaults
/// that merely repeat a type's zero (null, empty text) say nothing.
fn tidy(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|n| n.fract() == 0.0 && number.is_f64()) {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "bounds in the schema are small"
                )]
                let whole = whole as i64;
                *value = whole.into();
            }
        }
        Value::Object(map) => {
            // A property may itself be called `nullable` or `format`; those are mappings, not scalars.
            map.retain(|key, value| match key.as_str() {
                "nullable" => value.is_object(),
                "format" => {
                    value.as_str().is_none_or(|f| matches!(f, "int32" | "int64" | "date-time"))
                }
                "default" => !value.is_null() && value.as_str() != Some(""),
                _ => true,
            });
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
