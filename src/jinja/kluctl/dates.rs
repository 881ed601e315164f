//! Python's `date` and `datetime`, as YAML timestamps become them, and ISO 8601 text.

use std::cmp::Ordering;

use jiff::civil;
use jiff::tz::{Offset, TimeZone};

use crate::jinja::args::Args;
use crate::jinja::error::{Raise, Res};
use crate::jinja::value::Value;

/// `2024-02-29`.
pub(super) fn iso_date(date: civil::Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

/// `10:11:12` or `10:11:12.500000`.
pub(super) fn iso_time(time: civil::Time) -> String {
    let micros = time.subsec_nanosecond() / 1000;
    let whole = format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
    if micros == 0 { whole } else { format!("{whole}.{micros:06}") }
}

/// `+02:00`.
pub(super) fn offset_text(seconds: i64) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let total = seconds.abs();
    let (hours, minutes, rest) = (total / 3600, total / 60 % 60, total % 60);
    let text = format!("{sign}{hours:02}:{minutes:02}");
    if rest == 0 { text } else { format!("{text}:{rest:02}") }
}

/// `datetime.fromisoformat`: a date, optionally a time with or without offset.
pub(super) fn parse_iso(text: &str) -> Option<(civil::DateTime, Option<Offset>)> {
    let (date, length) = parse_date(text)?;
    let rest = &text[length..];
    if rest.is_empty() {
        return Some((date.at(0, 0, 0, 0), None));
    }
    let separator = rest.chars().next()?;
    let rest = &rest[separator.len_utf8()..];
    let zone_at = rest.find(['+', '-', 'Z', 'z']);
    let (time, zone) = zone_at.map_or((rest, ""), |at| rest.split_at(at));
    let (hour, minute, second, nanos) = parse_time(time)?;
    let wall =
        civil::DateTime::new(date.year(), date.month(), date.day(), hour, minute, second, nanos);
    Some((wall.ok()?, parse_zone(zone)?))
}

fn number<T: std::str::FromStr>(text: &str, digits: usize) -> Option<T> {
    let valid = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

fn parse_date(text: &str) -> Option<(civil::Date, usize)> {
    let year = number(text.get(..4)?, 4)?;
    let (month, day, length) = if text.get(4..5)? == "-" {
        if text.get(7..8)? != "-" {
            return None;
        }
        (number(text.get(5..7)?, 2)?, number(text.get(8..10)?, 2)?, 10)
    } else {
        (number(text.get(4..6)?, 2)?, number(text.get(6..8)?, 2)?, 8)
    };
    Some((civil::Date::new(year, month, day).ok()?, length))
}

fn parse_time(text: &str) -> Option<(i8, i8, i8, i32)> {
    let (whole, fraction) = match text.find(['.', ',']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits: String = if whole.contains(':') {
        let parts: Vec<&str> = whole.split(':').collect();
        if parts.len() > 3 || parts.iter().any(|part| part.len() != 2) {
            return None;
        }
        parts.concat()
    } else {
        whole.to_owned()
    };
    let part = |at: usize| match digits.get(at..at + 2) {
        Some(text) => number(text, 2),
        None if digits.len() == at || digits.len() < at => Some(0),
        None => None,
    };
    if digits.is_empty() || digits.len() > 6 || !digits.len().is_multiple_of(2) {
        return None;
    }
    let nanos = match fraction {
        None => 0,
        Some(fraction) => {
            let valid = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
            if !valid || digits.len() != 6 {
                return None;
            }
            let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
            micros.parse::<i32>().ok()? * 1000
        }
    };
    Some((part(0)?, part(2)?, part(4)?, nanos))
}

#[expect(clippy::option_option, reason = "wrong text, no zone, and a zone are three things")]
fn parse_zone(text: &str) -> Option<Option<Offset>> {
    match text {
        "" => return Some(None),
        "Z" | "z" => return Some(Some(Offset::UTC)),
        _ => {}
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hour, minute, second, _) = parse_time(&text[1..])?;
    let seconds = i32::from(hour) * 3600 + i32::from(minute) * 60 + i32::from(second);
    Offset::from_seconds(sign * seconds).ok().map(Some)
}

/// `strftime` with the usual directives.
fn strftime(wall: civil::DateTime, args: &Args) -> Res<Value> {
    let Some(format) = args.pos.first().and_then(Value::as_str) else {
        return Err(Raise::type_error("strftime() argument 1 must be str"));
    };
    jiff::fmt::strtime::format(&**format, wall)
        .map(Value::str)
        .map_err(|error| Raise::value_error(error.to_string()))
}

fn weekday(date: civil::Date, name: &str) -> Value {
    let monday_zero = i64::from(date.weekday().to_monday_zero_offset());
    Value::Int(if name == "isoweekday" { monday_zero + 1 } else { monday_zero })
}

/// `datetime.date`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date(pub(super) civil::Date);

impl Date {
    pub(crate) fn isoformat(self) -> String {
        iso_date(self.0)
    }

    pub(crate) fn repr(self) -> String {
        format!("datetime.date({}, {}, {})", self.0.year(), self.0.month(), self.0.day())
    }

    pub(crate) fn attribute(self, name: &str) -> Option<Value> {
        Some(Value::Int(match name {
            "year" => i64::from(self.0.year()),
            "month" => i64::from(self.0.month()),
            "day" => i64::from(self.0.day()),
            _ => return None,
        }))
    }

    pub(crate) fn call(self, name: &str, args: &Args) -> Res<Value> {
        match name {
            "isoformat" => Ok(Value::str(self.isoformat())),
            "strftime" => strftime(self.0.at(0, 0, 0, 0), args),
            _ => Ok(weekday(self.0, name)),
        }
    }
}

/// `datetime.datetime`, naive or with a fixed offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DateTime {
    pub(super) wall: civil::DateTime,
    pub(super) offset: Option<Offset>,
}

impl DateTime {
    /// ISO 8601 with the given character between date and time.
    pub(crate) fn text(self, separator: char) -> String {
        let zone = self.offset.map(|offset| offset_text(i64::from(offset.seconds())));
        let (date, time) = (iso_date(self.wall.date()), iso_time(self.wall.time()));
        format!("{date}{separator}{time}{}", zone.unwrap_or_default())
    }

    pub(crate) fn repr(self) -> String {
        let wall = self.wall;
        let mut parts = vec![
            wall.year().to_string(),
            wall.month().to_string(),
            wall.day().to_string(),
            wall.hour().to_string(),
            wall.minute().to_string(),
        ];
        let micros = wall.subsec_nanosecond() / 1000;
        if wall.second() != 0 || micros != 0 {
            parts.push(wall.second().to_string());
        }
        if micros != 0 {
            parts.push(micros.to_string());
        }
        match self.offset.map(Offset::seconds) {
            None => {}
            Some(0) => parts.push("tzinfo=datetime.timezone.utc".to_owned()),
            Some(seconds) => {
                let delta = if seconds < 0 {
                    format!("days=-1, seconds={}", seconds + 86400)
                } else {
                    format!("seconds={seconds}")
                };
                parts.push(format!("tzinfo=datetime.timezone(datetime.timedelta({delta}))"));
            }
        }
        format!("datetime.datetime({})", parts.join(", "))
    }

    fn seconds(self) -> (i64, i32) {
        let utc = TimeZone::UTC.to_ambiguous_zoned(self.wall).compatible();
        let offset = self.offset.map_or(0, |offset| i64::from(offset.seconds()));
        utc.map_or((0, 0), |utc| {
            (utc.timestamp().as_second() - offset, utc.timestamp().subsec_nanosecond())
        })
    }

    pub(crate) fn compare(self, other: &DateTime) -> Res<Ordering> {
        if self.offset.is_some() != other.offset.is_some() {
            let message = "can't compare offset-naive and offset-aware datetimes";
            return Err(Raise::type_error(message));
        }
        Ok(self.seconds().cmp(&other.seconds()))
    }

    pub(crate) fn attribute(self, name: &str) -> Option<Value> {
        Some(Value::Int(match name {
            "hour" => i64::from(self.wall.hour()),
            "minute" => i64::from(self.wall.minute()),
            "second" => i64::from(self.wall.second()),
            "microsecond" => i64::from(self.wall.subsec_nanosecond() / 1000),
            _ => return Date(self.wall.date()).attribute(name),
        }))
    }

    pub(crate) fn call(self, name: &str, args: &Args) -> Res<Value> {
        match name {
            "isoformat" => {
                let separator = args.pos.first().and_then(Value::as_str);
                let separator = separator.and_then(|text| text.chars().next()).unwrap_or('T');
                Ok(Value::str(self.text(separator)))
            }
            "strftime" => strftime(self.wall, args),
            "date" => Ok(Value::object(crate::jinja::value::Object::Date(Date(self.wall.date())))),
            "timestamp" => {
                let (seconds, nanos) = self.seconds();
                #[expect(clippy::cast_precision_loss, reason = "a float is what Python gives")]
                let seconds = seconds as f64 + f64::from(nanos) / 1e9;
                Ok(Value::Float(seconds))
            }
            _ => Ok(weekday(self.wall.date(), name)),
        }
    }
}
