//! `images.get_image()` and the helpers of `version`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::json;
use crate::jinja::args::{Function, Signature};
use crate::jinja::value::repr::{repr, to_str};
use crate::jinja::value::{Dict, Object, Value};

/// Begins the mark of an image in rendered text; what follows is Base64 of JSON, which is resolved after rendering.
pub(crate) const IMAGE_BEGIN: &str = "XXXXXbegin_get_image_";
/// Ends the mark.
pub(crate) const IMAGE_END: &str = "_end_get_imageXXXXX";

fn module(functions: &'static [Function]) -> Value {
    Value::dict(Dict::from_pairs(
        functions
            .iter()
            .map(|function| (function.name.into(), Value::object(Object::Function(function)))),
    ))
}

const fn function(
    name: &'static str,
    params: &'static [&'static str],
    required: usize,
    run: crate::jinja::args::Run,
) -> Function {
    let signature = Some(Signature::new(name, params, required));
    Function { name, is_type: false, signature, run }
}

static IMAGES: [Function; 1] = [function("get_image", &["image"], 1, |it, _, args| {
    args.get(0).require()?;
    let request = Value::dict(Dict::from_pairs([("image".into(), args.get(0).clone())]));
    let request = json::dump(&request, None, false, &it.budget)?;
    Ok(Value::str(format!("{IMAGE_BEGIN}{}{IMAGE_END}", STANDARD.encode(request))))
})];

static VERSION: [Function; 4] = [
    function("semver", &["allow_no_nums"], 0, |it, _, args| {
        let flag = match args.given(0) {
            Some(value) => to_str(value, &it.budget)?,
            None => "False".into(),
        };
        Ok(Value::str(format!("semver(allow_no_nums={flag})")))
    }),
    function("prefix", &["s", "suffix"], 1, |it, _, args| {
        let prefix = to_str(args.get(0), &it.budget)?;
        Ok(Value::str(match args.optional(1) {
            Some(suffix) => {
                let suffix = to_str(suffix, &it.budget)?;
                format!("prefix(\"{prefix}\", suffix=\"{suffix}\")")
            }
            None => format!("prefix(\"{prefix}\")"),
        }))
    }),
    function("number", &[], 0, |_, _, _| Ok(Value::str("number()"))),
    function("regex", &["r"], 1, |it, _, args| {
        let pattern = match args.get(0) {
            Value::Str(text) | Value::Markup(text) => text.to_string(),
            other => repr(other, &it.budget)?,
        };
        Ok(Value::str(format!("regex(\"{pattern}\")")))
    }),
];

/// The global `images`.
pub(crate) fn images() -> Value {
    module(&IMAGES)
}

/// The global `version`.
pub(crate) fn version() -> Value {
    module(&VERSION)
}
