use serde_json::json;

use super::*;

#[test]
fn smoke() {
    let doc = parse_document("a.yaml", b"a: 1\nb: [yes, 'x', 1.0]\n", Schema::Config).unwrap();
    assert_eq!(doc.value, json!({"a": 1, "b": [true, "x", 1]}));
    assert_eq!(emit(&doc.value), "a: 1\nb:\n- true\n- x\n- 1\n");
}
