use regex::Regex;

/// A pattern on paths as kluctl's `gitFiles` has them: `*` and `?` stay within a part of the path, `**` does not; `[a-z]`, `[!a]` and
/// `{a,b}` are alternatives, and `\` takes the next character literally (kluctl 2.28).
pub(super) struct Glob(Regex);

impl Glob {
    /// Compiles a pattern, which has to match the whole path.
    ///
    /// # Errors
    /// What is wrong with it, for the user.
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let expression = expression(pattern)?;
        Regex::new(&expression).map(Self).map_err(|error| error.to_string())
    }

    pub(super) fn is_match(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// The regular expression that matches the same paths.
fn expression(pattern: &str) -> Result<String, String> {
    let mut expression = String::from("(?s)^");
    let mut depth = 0_usize;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '*' if chars.next_if_eq(&'*').is_some() => {
                while chars.next_if_eq(&'*').is_some() {}
                expression.push_str(".*");
            }
            '*' => expression.push_str("[^/]*"),
            '?' => expression.push_str("[^/]"),
            '[' => class(&mut chars, &mut expression)?,
            '{' => {
                depth += 1;
                expression.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth -= 1;
                expression.push(')');
            }
            ',' if depth > 0 => expression.push('|'),
            '\\' => {
                let literal = chars.next().ok_or("ends with a backslash")?;
                expression.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
            }
            c => expression.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    if depth > 0 {
        return Err("has a `{` without `}`".to_owned());
    }
    expression.push('$');
    Ok(expression)
}

/// A list or range of characters, behind its `[`.
fn class(chars: &mut impl Iterator<Item = char>, expression: &mut String) -> Result<(), String> {
    let mut content: Vec<char> = Vec::new();
    loop {
        match chars.next() {
            Some(']') if !content.is_empty() => break,
            Some(c) => content.push(c),
            None => return Err("has a `[` without `]`".to_owned()),
        }
    }
    expression.push('[');
    let mut rest = content.as_slice();
    if let [first, tail @ ..] = rest
        && *first == '!'
        && !tail.is_empty()
    {
        expression.push('^');
        rest = tail;
    }
    for c in rest {
        if *c == '-' {
            expression.push('-');
        } else {
            expression.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
        }
    }
    expression.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn stars_stay_within_a_part_unless_doubled() {
        let cases = [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "dir/a.yaml", false),
            ("**.yaml", "dir/a.yaml", true),
            ("**/a.yaml", "x/y/a.yaml", true),
            ("**/a.yaml", "a.yaml", false),
            ("dir/*/a", "dir/x/a", true),
            ("dir/*/a", "dir/x/y/a", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[ab].txt", "b.txt", true),
            ("[!ab].txt", "b.txt", false),
            ("[a-c]x", "bx", true),
            ("{one,two/*}.yaml", "two/x.yaml", true),
            ("{one,two}.yaml", "three.yaml", false),
            ("a\\*b", "a*b", true),
            ("a.b", "axb", false),
        ];
        for (pattern, path, expected) in cases {
            let glob = Glob::parse(pattern).unwrap();
            assert_eq!(glob.is_match(path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn broken_patterns_are_explained() {
        for pattern in ["{a,b", "[ab", "a\\"] {
            assert!(Glob::parse(pattern).is_err(), "{pattern}");
        }
    }
}
