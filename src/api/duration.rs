use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// What a Go duration looks like, for messages.
const EXPECTED: &str = "a duration such as 30s, 10m or 1h30m";

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration, expected {expected}")]
pub struct DurationError {
    text: String,
    expected: &'static str,
}

/// A span of time as Go writes it: a sequence of decimal numbers, each with a unit, such as `1h30m`, `1.5h` or `300ms`.
///
/// Stored values are read as Go reads them (the units `ns`, `us`, `µs`, `ms`, `s`, `m`, `h`, and a lone `0`); the schema
/// offers the units that Flux documents. Negative durations are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(pub Duration);

impl GoDuration {
    /// A duration of whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text)
            .map(Self)
            .ok_or_else(|| DurationError { text: text.to_owned(), expected: EXPECTED })
    }
}

/// Go's `time.ParseDuration` for non-negative values; `None` when the text is none or does not fit.
fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let whole_len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, tail) = rest.split_at(whole_len);
        let (fraction, tail) = match tail.strip_prefix('.') {
            Some(tail) => tail.split_at(tail.bytes().take_while(u8::is_ascii_digit).count()),
            None => ("", tail),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let unit_len = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_len);
        let nanos: u128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(nanos)?)?;
        let (mut scale, mut part) = (nanos, 0);
        for digit in fraction.bytes() {
            scale /= 10;
            part += u128::from(digit - b'0') * scale;
        }
        total = total.checked_add(part)?;
        rest = tail;
    }
    // Go keeps durations in 63 bits of nanoseconds.
    (total <= i64::MAX as u128)
        .then(|| Duration::from_nanos(u64::try_from(total).unwrap_or(u64::MAX)))
}

impl fmt::Display for GoDuration {
    /// As Go prints durations: `1h30m0s`, `10m0s`, `1.5s`, `300ms`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if nanos < 1_000_000_000 {
            let (divisor, unit) = match nanos {
                1_000_000.. => (1_000_000, "ms"),
                1_000.. => (1_000, "µs"),
                _ => (1, "ns"),
            };
            return write!(f, "{}{unit}", decimal(nanos, divisor));
        }
        let seconds = self.0.as_secs();
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}s", decimal(nanos % 60_000_000_000, 1_000_000_000))
    }
}

/// `value / divisor` in decimal without trailing zeros; `divisor` is a power of ten.
fn decimal(value: u128, divisor: u128) -> String {
    let (whole, part) = (value / divisor, value % divisor);
    if part == 0 {
        return whole.to_string();
    }
    let width = divisor.ilog10() as usize;
    format!("{whole}.{}", format!("{part:0width$}").trim_end_matches('0'))
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for GoDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$" })
    }
}

/// A duration, or `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationOrNever {
    /// Every such span of time.
    Every(Duration),
    /// Not at all.
    Never,
}

impl DurationOrNever {
    /// The span, `None` for `never`.
    pub fn period(self) -> Option<Duration> {
        match self {
            Self::Every(period) => Some(period),
            Self::Never => None,
        }
    }
}

impl FromStr for DurationOrNever {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "never" {
            return Ok(Self::Never);
        }
        parse(text).map(Self::Every).ok_or_else(|| DurationError {
            text: text.to_owned(),
            expected: "a duration such as 30s, 10m or 1h30m, or the word never",
        })
    }
}

impl fmt::Display for DurationOrNever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(period) => GoDuration(*period).fmt(f),
            Self::Never => f.write_str("never"),
        }
    }
}

impl Serialize for DurationOrNever {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DurationOrNever {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for DurationOrNever {
    fn schema_name() -> Cow<'static, str> {
        "DurationOrNever".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // The pattern of all releases. Its anchors bind to one alternative each, so it lets some nonsense through; tightening
        // it would make the API server refuse updates of objects that are stored already.
        json_schema!({ "type": "string", "pattern": r"^(([0-9]+(\.[0-9]+)?(ms|s|m|h))+)|never$" })
    }
}
