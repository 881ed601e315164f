//! Variables keep their promises: the newer wins, what is there stays, merging twice changes nothing, and an entry that fails
//! leaves no trace.
//!
//! The input is YAML. Its documents are merged in turn, and loaded as entries of `vars`, which may name the input as a file.
#![no_main]

use std::sync::Arc;

use futures::FutureExt;
use libfuzzer_sys::fuzz_target;
use pure::{
    jinja,
    schema::VarsSource,
    tree::MemoryTree,
    vars::{Context, Templates, VarsLoader},
    yaml::{Schema, from_document, parse_documents},
};
use serde_json::Value;

/// Whether every leaf of `part` is in `whole`.
fn covers(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|other| covers(other, value)))
        }
        _ => whole == part,
    }
}

fn load(entry: &VarsSource, templates: &Templates, context: &mut Context) {
    let before = context.values().clone();
    let loader = VarsLoader::default();
    let result = loader
        .load(entry, "deployment.yaml", templates, context)
        .now_or_never()
        .expect("nothing outside is asked");
    if let Err(error) = result {
        assert_eq!(*context.values(), before, "changed in spite of {error}");
    } else if entry.no_override {
        assert!(covers(context.values(), &before), "noOverride changed what was there");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(documents) = parse_documents("vars.yaml", bytes, Schema::Config) else { return };
    let mut tree = MemoryTree::new();
    tree.insert("vars.yaml", bytes);
    let options = jinja::Options {
        fuel: 20_000,
        max_output: 1 << 16,
        ..jinja::Options::new(jiff::Timestamp::UNIX_EPOCH)
    };
    let templates = Templates::new(Arc::new(tree), None, vec![String::new()], &options);
    let (mut merged, mut loaded) = (Context::default(), Context::default());
    for document in documents {
        if let Ok(entry) = from_document::<VarsSource>("deployment.yaml", &document) {
            load(&entry, &templates, &mut loaded);
        }
        let Value::Object(newer) = document.value else { continue };
        let before = merged.values().clone();

        let mut below = merged.clone();
        below.merge_below(newer.clone());
        assert!(covers(below.values(), &before), "defaults changed what was there");

        merged.merge(newer.clone());
        assert!(covers(merged.values(), &Value::Object(newer.clone())), "the newer did not win");
        let once = merged.values().clone();
        merged.merge(newer);
        assert_eq!(*merged.values(), once, "merging twice changes something");
    }
});
