use serde_json::json;

use super::*;

#[test]
fn quotes_and_spellings_are_found_by_field_and_content() {
    let text =
        "a: {k: \"x\", l: x, n: 1.10}\nlist:\n- {v: 'y', n: 0x10}\nblock: |\n  z\nplain: z\n";
    let styles = Styles::new(Some(Source::new(Arc::from(text.as_bytes()), 0)));
    assert!(styles.is_quoted("k", "x"));
    assert!(!styles.is_quoted("l", "x"));
    assert!(styles.is_quoted("v", "y"));
    assert!(styles.is_quoted("block", "z\n"));
    assert!(!styles.is_quoted("plain", "z"));
    assert!(styles.is_quoted("anything", "true"));
    assert_eq!(styles.written("n", &json!(1.1)), "1.10");
    assert_eq!(styles.written("n", &json!(16)), "0x10");
    assert_eq!(styles.written("other", &json!(16)), "16");
}

#[test]
fn without_a_text_only_the_content_counts() {
    let styles = Styles::new(None);
    assert!(styles.is_quoted("a", "1"));
    assert!(!styles.is_quoted("a", "x"));
    assert_eq!(styles.written("a", &json!(1.5)), "1.5");
}
