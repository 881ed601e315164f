//! Logs of this program: JSON lines as Flux's controllers write them, or text for people. Always on standard error.

use std::{
    fmt,
    io::{self, Write as _},
    str::FromStr,
};

use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{
    EnvFilter, Layer,
    layer::{Context, SubscriberExt},
    registry::{LookupSpan, Scope},
    util::{SubscriberInitExt, TryInitError},
};

use crate::secret::redact_text;

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// One JSON object per line, with `level`, `ts`, `msg` and the fields of the spans around it.
    #[default]
    Json,
    /// Text for people.
    Text,
}

impl FromStr for Encoding {
    type Err = String;

    /// `json`, `text`, or Flux's word for the latter, `console`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "json" => Ok(Self::Json),
            "text" | "console" => Ok(Self::Text),
            other => Err(format!("unknown log encoding {other:?}, expected json or text")),
        }
    }
}

/// Which log lines are written: `trace`, `debug`, `info`, `warn` or `error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verbosity(Level);

impl Default for Verbosity {
    fn default() -> Self {
        Self(Level::INFO)
    }
}

impl FromStr for Verbosity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| {
            format!("unknown log level {text:?}, expected trace, debug, info, warn or error")
        })
    }
}

impl Verbosity {
    /// Libraries speak up only when something is wrong, unless everything is asked for.
    fn filter(self) -> EnvFilter {
        let own = env!("CARGO_CRATE_NAME");
        let level = self.0.to_string().to_lowercase();
        let others = if self.0 == Level::TRACE { "debug" } else { "warn" };
        EnvFilter::new(format!("{others},{own}={level},kluctl={level}"))
    }
}

/// Installs the subscriber of the process. To be called once, before anything is logged.
///
/// # Errors
/// When a subscriber is installed already.
pub fn install(encoding: Encoding, verbosity: Verbosity) -> Result<(), TryInitError> {
    let registry = tracing_subscriber::registry().with(verbosity.filter());
    match encoding {
        Encoding::Json => registry.with(JsonLines { write: write_line }).try_init(),
        Encoding::Text => registry.with(text_layer()).try_init(),
    }
}

fn text_layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false)
}

fn write_line(line: &str) {
    let mut out = io::stderr().lock();
    // There is nowhere to report that standard error is closed.
    let _written = out.write_all(line.as_bytes());
}

/// Writes one JSON object per event.
struct JsonLines<W> {
    write: W,
}

/// The fields of a span, kept with it.
struct SpanFields(Map<String, Value>);

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Fn(&str) + 'static,
{
    fn on_new_span(
        &self,
        attributes: &span::Attributes<'_>,
        id: &span::Id,
        context: Context<'_, S>,
    ) {
        let mut fields = Map::new();
        attributes.record(&mut Fields(&mut fields));
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(SpanFields(fields));
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<SpanFields>() {
            values.record(&mut Fields(&mut fields.0));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Map::new();
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(fields) = span.extensions().get::<SpanFields>() {
                line.extend(fields.0.clone());
            }
        }
        event.record(&mut Fields(&mut line));
        let message = line.remove("message").unwrap_or_default();
        line.insert("msg".to_owned(), message);
        line.insert("level".to_owned(), event.metadata().level().as_str().to_lowercase().into());
        line.insert("ts".to_owned(), timestamp().into());
        line.insert("logger".to_owned(), event.metadata().target().into());
        (self.write)(&format!("{}\n", Value::Object(line)));
    }
}

#[expect(clippy::disallowed_methods, reason = "log lines tell the time")]
fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// Collects fields; URLs in texts lose what they may hold in secret.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), redact_text(value).into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn lines_have_fluxs_fields_and_no_credentials() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = lines.clone();
        let write = move |line: &str| sink.lock().unwrap().push(line.to_owned());
        let subscriber = tracing_subscriber::registry().with(JsonLines { write });
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!(
                "reconcile",
                controllerKind = "KluctlDeployment",
                name = "shop",
                namespace = "apps",
                reconcileID = "r1",
                revision = tracing::field::Empty,
            );
            let _guard = span.enter();
            span.record("revision", "main@sha1:aa");
            tracing::warn!(
                attempt = 2,
                ok = true,
                "clone of https://user:pw@git.example.com/x refused"
            );
        });
        let line: Value = serde_json::from_str(&lines.lock().unwrap()[0]).unwrap();
        for (key, expected) in [
            ("level", Value::from("warn")),
            ("msg", "clone of https://***@git.example.com/x refused".into()),
            ("name", "shop".into()),
            ("namespace", "apps".into()),
            ("controllerKind", "KluctlDeployment".into()),
            ("reconcileID", "r1".into()),
            ("revision", "main@sha1:aa".into()),
            ("attempt", 2.into()),
            ("ok", true.into()),
        ] {
            assert_eq!(line[key], expected, "{key} in {line}");
        }
        assert!(line["ts"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    }

    #[test]
    fn levels_and_encodings_are_spelled_as_in_flux() {
        assert_eq!("console".parse(), Ok(Encoding::Text));
        assert_eq!("json".parse(), Ok(Encoding::Json));
        assert!("xml".parse::<Encoding>().is_err());
        for level in ["trace", "debug", "info", "warn", "error"] {
            assert!(level.parse::<Verbosity>().is_ok());
        }
        assert!("loud".parse::<Verbosity>().is_err());
    }
}
