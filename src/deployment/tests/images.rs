use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::{
    super::images::{FixedImageList, resolve},
    *,
};
use crate::{
    object::{Object, ObjectRef},
    schema::FixedImage,
};

fn placeholder(image: &str) -> String {
    let marker = BASE64_STANDARD.encode(json!({"image": image}).to_string());
    format!("XXXXXbegin_get_image_{marker}_end_get_imageXXXXX")
}

fn fixed(value: Value) -> Vec<FixedImage> {
    serde_json::from_value(value).unwrap()
}

/// Resolves the images of a Deployment in namespace `ns` whose container `web` has this image.
fn resolve_image(
    image: &str,
    list: Value,
    variable: &Value,
) -> Result<(String, Vec<FixedImageUse>), ImageError> {
    let mut object = Object::new(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "ns"},
        "spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
    }))
    .unwrap();
    let item = FixedImageUse {
        image: String::new(),
        result_image: String::new(),
        deployed_image: None,
        namespace: String::new(),
        object: ObjectRef::new("v1", "", None, ""),
        deployment: String::new(),
        container: String::new(),
        deploy_tags: vec!["tag".to_owned()],
        deployment_dir: "app".to_owned(),
    };
    let mut uses = Vec::new();
    let list = FixedImageList::new(fixed(list));
    resolve(&mut object, &list, Some(variable), &item, &mut uses)?;
    let image = &object.value()["spec"]["template"]["spec"]["containers"][0]["image"];
    Ok((image.as_str().unwrap().to_owned(), uses))
}

#[test]
fn the_last_matching_entry_wins_and_the_variable_comes_after_the_list() {
    let image = |list: Value, variable: Value| {
        resolve_image(&placeholder("nginx"), list, &variable).map(|(image, _)| image).ok()
    };
    let one = json!([{"image": "nginx", "resultImage": "nginx:1"}]);
    let none = json!(null);
    assert_eq!(image(one.clone(), none.clone()).as_deref(), Some("nginx:1"));
    let several = json!([
        {"image": "nginx", "resultImage": "nginx:1"},
        {"imageRegex": "^ngi", "resultImage": "nginx:2"},
        {"image": "nginx", "namespace": "other", "resultImage": "nginx:3"},
        {"image": "nginx", "deployment": "Deployment/x", "resultImage": "nginx:4"},
        {"image": "nginx", "container": "sidecar", "resultImage": "nginx:5"},
    ]);
    assert_eq!(image(several, none.clone()).as_deref(), Some("nginx:2"));
    let exact = json!([
        {"image": "nginx", "namespace": "ns", "deployment": "Deployment/d", "container": "web", "resultImage": "nginx:6"},
    ]);
    assert_eq!(image(exact, one.clone()).as_deref(), Some("nginx:6"));
    let of_objects = json!([
        {"image": "nginx", "object": {"group": "apps", "version": "v1beta1", "kind": "Deployment", "name": "d"}, "resultImage": "nginx:7"},
        {"image": "nginx", "object": {"kind": "Deployment", "name": "e"}, "resultImage": "nginx:8"},
        {"image": "nginx", "object": {"group": "batch", "kind": "Deployment", "name": "d"}, "resultImage": "nginx:9"},
        {"image": "nginx", "object": {"kind": "Deployment", "name": "d", "namespace": "x"}, "resultImage": "nginx:10"},
    ]);
    assert_eq!(image(of_objects, one.clone()).as_deref(), Some("nginx:7"));
    assert_eq!(image(json!([]), one).as_deref(), Some("nginx:1"));
    assert_eq!(image(json!([{"image": "other", "resultImage": "x"}]), none), None);
}

#[test]
fn placeholders_work_anywhere_in_a_text_and_are_recorded() {
    let text = format!("a {} b {}", placeholder("x"), placeholder("y"));
    let list = json!([{"image": "x", "resultImage": "x:1"}, {"image": "y", "resultImage": "y:2"}]);
    let (image, uses) = resolve_image(&text, list, &json!(null)).unwrap();
    assert_eq!(image, "a x:1 b y:2");
    assert_eq!(uses.len(), 2);
    let shown = serde_json::to_value(&uses[0]).unwrap();
    let expected = json!({
        "image": "x", "resultImage": "x:1", "namespace": "ns", "deployment": "Deployment/d",
        "container": "web", "deployTags": ["tag"], "deploymentDir": "app",
        "object": {"group": "apps", "version": "v1", "kind": "Deployment", "name": "d", "namespace": "ns"},
    });
    assert_eq!(shown, expected);
}

#[test]
fn an_unusable_variable_is_told_only_when_an_image_is_asked_for() {
    let variable = json!([{"image": "x"}]);
    assert!(resolve_image("static:1", json!([]), &variable).is_ok());
    let error = resolve_image(&placeholder("x"), json!([]), &variable).unwrap_err();
    assert!(error.to_string().contains("resultImage"), "{error}");
}
