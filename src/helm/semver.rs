//! Semantic versions and constraints on them as `github.com/Masterminds/semver/v3` reads them, which Helm and Kluctl use. Pure.

use std::{cmp::Ordering, fmt};

/// A version: `1.2.3-rc.1+build`. A leading `v` and missing parts are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SemVer {
    numbers: [u64; 3],
    pre_release: Vec<Identifier>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    // Numbers come before words.
    Number(u64),
    Word(String),
}

impl SemVer {
    /// Reads a version; `None` when the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let Partial { numbers: [major, minor, patch], pre_release } = Partial::parse(text)?;
        // No wildcards: what is not given is 0.
        let is_number = |part: &str| part.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        if !text.trim_start_matches('v').split(['-', '+']).next()?.split('.').all(is_number) {
            return None;
        }
        let numbers = [major?, minor.unwrap_or(0), patch.unwrap_or(0)];
        Some(Self { numbers, pre_release })
    }

    /// Whether it is a pre-release.
    pub fn is_pre_release(&self) -> bool {
        !self.pre_release.is_empty()
    }
}

impl PartialOrd for SemVer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SemVer {
    fn cmp(&self, other: &Self) -> Ordering {
        // A release comes after its pre-releases.
        let by_pre_release = || match (self.is_pre_release(), other.is_pre_release()) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            _ => self.pre_release.cmp(&other.pre_release),
        };
        self.numbers.cmp(&other.numbers).then_with(by_pre_release)
    }
}

/// A version with parts left out, or written as `x` or `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Partial {
    numbers: [Option<u64>; 3],
    pre_release: Vec<Identifier>,
}

impl Partial {
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = match text.split_once('+') {
            Some((text, build)) => is_words(build).then_some(text)?,
            None => text,
        };
        let (numbers, pre_release) = match text.split_once('-') {
            Some((numbers, words)) => (numbers, identifiers(words)?),
            None => (text, Vec::new()),
        };
        let parts: Vec<&str> = numbers.split('.').collect();
        if parts.len() > 3 {
            return None;
        }
        let mut found = [None; 3];
        let mut is_open = false;
        for (slot, part) in found.iter_mut().zip(parts) {
            if matches!(part, "x" | "X" | "*") {
                is_open = true;
            } else if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            } else if !is_open {
                *slot = Some(part.parse().ok()?);
            }
        }
        Some(Self { numbers: found, pre_release })
    }

    /// The version with 0 for what is left out.
    fn floor(&self) -> SemVer {
        let numbers = self.numbers.map(Option::unwrap_or_default);
        SemVer { numbers, pre_release: self.pre_release.clone() }
    }

    /// How many parts are given.
    fn given(&self) -> usize {
        self.numbers.iter().take_while(|number| number.is_some()).count()
    }
}

fn is_words(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    text.split('.').all(is_word)
}

fn identifiers(text: &str) -> Option<Vec<Identifier>> {
    let identifier = |word: &str| match word.parse() {
        Ok(number) if word.bytes().all(|byte| byte.is_ascii_digit()) => Identifier::Number(number),
        _ => Identifier::Word(word.to_owned()),
    };
    is_words(text).then(|| text.split('.').map(identifier).collect())
}

/// A constraint: alternatives (`||`), each a list of comparisons that all have to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint(Vec<Vec<Comparison>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    with: Partial,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Tilde,
    Caret,
}

/// A constraint that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoConstraint {
    part: String,
}

impl fmt::Display for NoConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no constraint on versions", self.part)
    }
}

impl Constraint {
    /// Reads a constraint such as `~1.2 || >=2.0.0, <3`.
    ///
    /// # Errors
    /// Names the part that is none.
    pub fn parse(text: &str) -> Result<Self, NoConstraint> {
        text.split("||").map(comparisons).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a version fulfils it. Pre-releases do only where the comparison names one.
    pub fn allows(&self, version: &SemVer) -> bool {
        self.0.iter().any(|all| all.iter().all(|comparison| comparison.allows(version)))
    }
}

fn comparisons(text: &str) -> Result<Vec<Comparison>, NoConstraint> {
    let refused = |part: &str| NoConstraint { part: part.trim().to_owned() };
    let mut found = Vec::new();
    for part in text.split(',') {
        // An operator may stand apart from its version, and comparisons may be parted by spaces.
        let mut words: Vec<String> = Vec::new();
        let mut operator = String::new();
        for word in part.split_whitespace() {
            if word.bytes().all(|byte| b"<>=!~^".contains(&byte)) {
                operator.push_str(word);
            } else {
                words.push(format!("{}{word}", std::mem::take(&mut operator)));
            }
        }
        if !operator.is_empty() || words.is_empty() {
            return Err(refused(part));
        }
        if let [from, dash, to] = words.as_slice()
            && dash == "-"
        {
            let ends = [(Operator::GreaterEqual, from), (Operator::LessEqual, to)];
            for (operator, text) in ends {
                let with = Partial::parse(text).ok_or_else(|| refused(text))?;
                found.push(Comparison { operator, with });
            }
            continue;
        }
        for word in words {
            found.push(comparison(&word).ok_or_else(|| refused(&word))?);
        }
    }
    Ok(found)
}

fn comparison(word: &str) -> Option<Comparison> {
    let length = word.bytes().take_while(|byte| b"<>=!~^".contains(byte)).count();
    let (operator, version) = word.split_at(length);
    let operator = match operator {
        "" | "=" => Operator::Equal,
        "!=" => Operator::NotEqual,
        ">" => Operator::Greater,
        ">=" | "=>" => Operator::GreaterEqual,
        "<" => Operator::Less,
        "<=" | "=<" => Operator::LessEqual,
        "~" | "~>" => Operator::Tilde,
        "^" => Operator::Caret,
        _ => return None,
    };
    Some(Comparison { operator, with: Partial::parse(version)? })
}

impl Comparison {
    fn allows(&self, version: &SemVer) -> bool {
        if version.is_pre_release() && self.with.pre_release.is_empty() {
            return false;
        }
        let floor = self.with.floor();
        let given = self.with.given();
        // Whether the parts that are given are equal.
        let same = version.numbers[..given] == floor.numbers[..given];
        match self.operator {
            Operator::Equal if given == 3 => *version == floor,
            Operator::Equal => same,
            Operator::NotEqual if given == 3 => *version != floor,
            Operator::NotEqual => !same,
            Operator::Greater if given == 3 => *version > floor,
            Operator::Greater => version.numbers[..given] > floor.numbers[..given],
            Operator::GreaterEqual => *version >= floor,
            Operator::Less => *version < floor,
            Operator::LessEqual if given == 3 => *version <= floor,
            Operator::LessEqual => version.numbers[..given] <= floor.numbers[..given],
            Operator::Tilde => {
                *version >= floor
                    && version.numbers[..given.min(2)] == floor.numbers[..given.min(2)]
            }
            Operator::Caret => {
                // Up to the first part that is not 0, or the last one given.
                let leading = floor.numbers.iter().take_while(|number| **number == 0).count();
                let fixed = (leading + 1).min(given);
                *version >= floor && version.numbers[..fixed] == floor.numbers[..fixed]
            }
        }
    }
}
