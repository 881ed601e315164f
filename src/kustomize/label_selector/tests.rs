use super::*;

fn matches(expression: &str) -> bool {
    let labels = [("app", "web"), ("tier", "front"), ("size", "7")];
    let labels = labels.map(|(key, value)| (key, value.to_owned())).into();
    LabelSelector::parse(expression).unwrap().matches(&labels)
}

#[test]
fn expressions_select_as_in_kubernetes() {
    for (expression, expected) in [
        ("", true),
        ("app", true),
        ("!app", false),
        ("!other", true),
        ("app=web", true),
        ("app == web", true),
        ("app!=web", false),
        ("other!=web", true),
        ("app in (web, api)", true),
        ("app notin (web)", false),
        ("other notin (web)", true),
        ("app in (api),tier", false),
        ("app in (web,api),tier=front,!x", true),
        ("size>6", true),
        ("size<7", false),
        ("other=", false),
    ] {
        assert_eq!(matches(expression), expected, "{expression}");
    }
}

#[test]
fn nonsense_is_refused_with_the_part_that_is_wrong() {
    for (expression, part) in
        [("a=b=c", "a=b=c"), ("app of (x)", "app of (x)"), ("a,b in (x", "b in (x"), ("=x", "=x")]
    {
        let message = LabelSelector::parse(expression).unwrap_err();
        assert_eq!(message, format!("\"{part}\" is no selector expression"));
    }
}
