use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Violations;
use crate::{diagnostic::FieldPath, object::ObjectRef};

/// An entry of a list of fixed images: which image `images.get_image` resolves to (kluctl 2.28).
///
/// The list comes from a target's `images`, from `--fixed-images-file`, from `--fixed-image`, or from the variable `images`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FixedImage {
    /// The image asked for, compared literally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Instead of `image`: an unanchored regular expression on the image asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_regex: Option<String>,
    /// The image to put in place.
    pub result_image: String,
    /// Written by `list-images`; no filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_image: Option<String>,
    /// Only in objects of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Written by `list-images`; no filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// Only in the object `Kind/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// Only in the container of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Written by `list-images`; no filter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deploy_tags: Vec<String>,
    /// Written by `list-images`; no filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_dir: Option<String>,
}

impl FixedImage {
    /// Checks the rules between fields; `path` leads to this entry.
    pub fn check(&self, path: &FieldPath, violations: &mut Violations) {
        let expected = "exactly one of image and imageRegex";
        match (&self.image, &self.image_regex) {
            (None, None) => violations.add(path.clone(), "names no image", expected),
            (Some(_), Some(_)) => {
                violations.add(path.clone(), "has both image and imageRegex", expected);
            }
            (None, Some(pattern)) => {
                if let Err(error) = regex::Regex::new(pattern) {
                    let message = format!("is no regular expression: {error}");
                    violations.add(path.child("imageRegex"), message, "a regular expression");
                }
            }
            (Some(_), None) => {}
        }
    }
}

/// The file given by `--fixed-images-file`, and the output of `list-images`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FixedImages {
    /// Later entries win.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<FixedImage>,
}

impl FixedImages {
    /// Checks the rules between fields.
    pub fn check(&self, violations: &mut Violations) {
        for (index, image) in self.images.iter().enumerate() {
            image.check(&FieldPath::root().child("images").child(index), violations);
        }
    }
}
