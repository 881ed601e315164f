//! Any bytes are read or refused, and what was read survives writing and reading.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pure::{
    schema::{DeploymentFile, ProjectFile},
    yaml::{Schema, emit, from_document, parse_document, parse_documents},
};

fuzz_target!(|bytes: &[u8]| {
    for schema in [Schema::Config, Schema::Manifest] {
        let Ok(documents) = parse_documents("input.yaml", bytes, schema) else { continue };
        for document in documents {
            let text = emit(&document.value);
            match parse_document("output.yaml", text.as_bytes(), schema) {
                Ok(again) => assert_eq!(again.value, document.value, "{text}"),
                Err(error) => panic!("{error}: {text}"),
            }
            from_document::<DeploymentFile>("deployment.yaml", &document).ok();
            from_document::<ProjectFile>(".kluctl.yaml", &document).ok();
        }
    }
});
