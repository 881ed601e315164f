use crate::diagnostic::{Class, Diagnostic};

/// Says what is wrong with a discriminator that cannot be the value of the label `kluctl.io/discriminator`; the API server
/// would refuse every object.
pub fn check_discriminator(discriminator: &str) -> Option<Diagnostic> {
    let edge = |c: char| c.is_ascii_alphanumeric();
    let inside = |c: char| edge(c) || matches!(c, '-' | '_' | '.');
    let fits = discriminator.len() <= 63
        && discriminator.starts_with(edge)
        && discriminator.ends_with(edge)
        && discriminator.chars().all(inside);
    (!fits).then(|| {
        Diagnostic::new(
            Class::Project,
            format!("the discriminator {discriminator:?} is not a valid label value"),
        )
        .with_expected(
            "at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
        )
    })
}
