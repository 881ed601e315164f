use kube::CustomResourceExt;
use serde_json::Value;

use super::KluctlDeployment;

/// The page `docs/spec/v1alpha1.md`: every field of the custom resource, from the schema that the API server gets.
///
/// # Errors
/// When the schema cannot be read, which is a defect.
pub fn reference_page() -> Result<String, serde_json::Error> {
    let crd = serde_json::to_value(KluctlDeployment::crd())?;
    let version = &crd["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut page = vec![HEAD.to_owned()];
    for (title, part) in [("Spec", "spec"), ("Status", "status")] {
        let schema = &schema["properties"][part];
        page.push(format!("\n## {title}\n\n{}\n", text(schema)));
        rules(schema, &mut page);
        page.push("\n| Field | Type | Default | Meaning |\n|---|---|---|---|\n".to_owned());
        fields("", schema, &mut page);
    }
    page.push("\n## Columns\n\n`kubectl get kd`; those marked *wide* need `-o wide`.\n\n| Column | Field | Meaning |\n|---|---|---|\n".to_owned());
    for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
        let wide = if column["priority"].as_i64().unwrap_or(0) > 0 { " (wide)" } else { "" };
        let (name, path) = (plain(&column["name"]), plain(&column["jsonPath"]));
        page.push(format!("| {name}{wide} | `{path}` | {} |\n", text(column)));
    }
    page.push(TAIL.to_owned());
    Ok(page.concat())
}

const HEAD: &str = "# KluctlDeployment, flux.kluctl.io/v1alpha1

Generated from `src/api` by `make crds`.

A KluctlDeployment deploys one target of a Kluctl project and keeps it deployed. Short name `kd`.
[Compatibility](../compatibility.md) tells since when a field exists and what works.
";

const TAIL: &str = "
## Conditions

| Type | Meaning |
|---|---|
| Ready | True when the last reconciliation did all that the spec asks for; False with the reason of the first step that failed |
| Reconciling | Present while the controller works (`Progressing`) or will try again (`ProgressingWithRetry`) |
| Stalled | Present when only a change by a person helps; nothing is tried until then |

Each tells in `observedGeneration` which generation of the spec it speaks of.

## Annotations

| Annotation | Effect |
|---|---|
| `reconcile.fluxcd.io/requestedAt` | A new value reconciles now; it is copied to `status.lastHandledReconcileAt` at the end |
| `reconcile.fluxcd.io/forceAt` | With the same new value as `requestedAt`, deploys even if nothing changed |
| `deploy.flux.kluctl.io/requestedAt` | A new value deploys now; it is copied to `status.lastHandledDeployAt` |
| `event.toolkit.fluxcd.io/*` | Copied into the events |

The finalizer is `finalizers.flux.kluctl.io`.
";

/// A table row for each field below `schema`, depth first, parents before children.
fn fields(prefix: &str, schema: &Value, page: &mut Vec<String>) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let mark = if required.contains(&name.as_str()) { " (required)" } else { "" };
        let default = &property["default"];
        let default = if default.is_null() {
            String::new()
        } else {
            format!("`{}`", cell(&default.to_string()))
        };
        let (kind, meaning) = (type_of(property), text(property));
        page.push(format!("| `{path}`{mark} | {kind} | {default} | {meaning} |\n"));
        fields(&path, property, page);
        if property["items"]["properties"].is_object() {
            fields(&format!("{path}[]"), &property["items"], page);
        }
    }
}

/// The rules that no single field has.
fn rules(schema: &Value, page: &mut Vec<String>) {
    let rules: Vec<String> = schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|rule| format!("- {}\n", plain(&rule["message"])))
        .collect();
    if !rules.is_empty() {
        page.push("\nThe API server refuses contradictions:\n\n".to_owned());
        page.extend(rules);
    }
}

fn type_of(schema: &Value) -> String {
    let kind = plain(&schema["type"]);
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values
            .iter()
            .filter(|value| !value.is_null())
            .map(|value| format!("`{}`", plain(value)))
            .collect();
        return values.join(", ");
    }
    match kind.as_str() {
        "array" => format!("list of {}", type_of(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => "map".to_owned(),
        "string" if schema["format"] == "date-time" => "time".to_owned(),
        "string" if schema["pattern"].as_str().is_some_and(|p| p.contains("ms|s|m|h")) => {
            "duration".to_owned()
        }
        _ => kind,
    }
}

/// The description, fit for a table cell.
fn text(schema: &Value) -> String {
    cell(&plain(&schema["description"]))
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// A scalar as text; of a list of types the one that is not null.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(types) => {
            types.iter().find(|kind| *kind != "null").map(plain).unwrap_or_default()
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
