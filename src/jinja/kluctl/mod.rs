//! What kluctl adds to Jinja2: YAML and JSON filters, file functions, variables by path, times and image markers.

pub(super) mod dates;
pub(super) mod filters;
pub(super) mod functions;
pub(super) mod images;
pub(super) mod json;
mod jsonpath;
mod slugify;
pub(super) mod time;
mod yaml_dump;
mod yaml_emit;
mod yaml_load;
mod yaml_scalar;
