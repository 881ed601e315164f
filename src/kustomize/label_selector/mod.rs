//! Kubernetes' label selector expressions: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1`.

use std::collections::BTreeMap;

/// Requirements, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Reads an expression; the message of an error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let requirements = split(text).into_iter().map(str::trim).filter(|part| !part.is_empty());
        requirements
            .map(|part| {
                requirement(part).ok_or_else(|| format!("\"{part}\" is no selector expression"))
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, labels: &BTreeMap<&str, String>) -> bool {
        self.0.iter().all(|Requirement { key, test }| {
            let found = labels.get(key.as_str());
            let number = || found.and_then(|text| text.parse::<i64>().ok());
            match test {
                Test::Exists => found.is_some(),
                Test::Absent => found.is_none(),
                Test::In(values) => found.is_some_and(|text| values.contains(text)),
                Test::NotIn(values) => found.is_none_or(|text| !values.contains(text)),
                Test::Greater(limit) => number().is_some_and(|number| number > *limit),
                Test::Less(limit) => number().is_some_and(|number| number < *limit),
            }
        })
    }
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

fn requirement(text: &str) -> Option<Requirement> {
    if let Some(key) = text.strip_prefix('!') {
        return build(key, Test::Absent);
    }
    if let Some((head, list)) = text.split_once('(') {
        let list = list.trim_end().strip_suffix(')')?;
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, word) = head.trim().rsplit_once(char::is_whitespace)?;
        return match word {
            "in" => build(key, Test::In(values)),
            "notin" => build(key, Test::NotIn(values)),
            _ => None,
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return build(key, Test::NotIn(vec![plain(value)?]));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return build(key, Test::In(vec![plain(value)?]));
    }
    if let Some((key, value)) = text.split_once('>') {
        return build(key, Test::Greater(value.trim().parse().ok()?));
    }
    if let Some((key, value)) = text.split_once('<') {
        return build(key, Test::Less(value.trim().parse().ok()?));
    }
    build(text, Test::Exists)
}

fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.contains(|c: char| c.is_whitespace() || "=!<>".contains(c))).then(|| text.to_owned())
}

fn build(key: &str, test: Test) -> Option<Requirement> {
    let key = plain(key).filter(|key| !key.is_empty())?;
    Some(Requirement { key, test })
}

#[cfg(test)]
mod tests;
