//! `http`: the answer of a server. It is data and is never rendered.

use serde_json::{Map, Value};

use super::text::Text;
use crate::{
    object::{JsonPath, get_at},
    schema::{HttpRequest, VarsSource},
    secret::redact_url,
    vars::{HttpSource, VarsError, load::Loaded},
};

/// Sends the request and reads the answer as YAML, or the text at `jsonPath` in it. 404 counts as missing.
pub(in crate::vars) async fn read(
    request: &HttpRequest,
    entry: &VarsSource,
    http: Option<&dyn HttpSource>,
) -> Result<Loaded, VarsError> {
    let http = http.ok_or(VarsError::NotAvailable { kind: "http" })?;
    let path = request.json_path.as_deref().map(JsonPath::parse).transpose();
    let path =
        path.map_err(|error| VarsError::JsonPath { field: "http.jsonPath", source: error })?;
    let url = redact_url(&request.url);
    let answer = http.send(request).await.map_err(VarsError::outside)?;
    match answer.status {
        200..=299 => {}
        404 if entry.ignore_missing => return Ok(Loaded::mapping(Map::new())),
        status => return Err(VarsError::HttpStatus { url, status }),
    }
    let what = format!("the answer of {url}");
    let is_sensitive = entry.sensitive.unwrap_or_default();
    let text = Text::from_bytes(answer.body, what.clone(), is_sensitive)?;
    let value = text.parse(entry.multidoc)?;
    let (Some(path), Some(shown)) = (path, &request.json_path) else {
        return Ok(Loaded { value, what });
    };
    let found = path.locate(&value).into_iter().next();
    match found.as_ref().and_then(|found| get_at(&value, found)) {
        None => Err(VarsError::FieldNotFound { what: format!("{shown} in {what}") }),
        Some(Value::String(content)) => {
            let what = format!("{shown} in {what}");
            let value = super::mapping(&Text {
                content: content.clone(),
                what: what.clone(),
                is_sensitive,
            })?;
            Ok(Loaded { value, what })
        }
        Some(other) => {
            let found = crate::object::type_name(other);
            Err(text.problem(format!("has {found} at {shown}, expected a text that holds YAML")))
        }
    }
}
