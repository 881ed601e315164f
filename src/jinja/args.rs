//! Calling functions: positional and keyword arguments, bound to parameters by Python's rules and with its messages.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::error::{Raise, Res};
use super::eval::Interp;
use super::eval::scope::Scope;
use super::value::Value;

/// Evaluated arguments of a call.
#[derive(Debug, Default, Clone)]
pub(crate) struct Args {
    pub(crate) pos: Vec<Value>,
    pub(crate) kw: Vec<(Arc<str>, Value)>,
}

/// How Python words wrong arguments: functions written in Python have one way, those written in C several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    Python,
    /// Exactly one argument, no keywords.
    One,
    /// Counted before anything else, no keywords.
    Counted,
    /// Parsed, no keywords.
    Parsed,
    /// Parsed, keywords allowed.
    Keywords,
}

/// Parameters of a Python function.
#[derive(Debug)]
pub(crate) struct Signature {
    /// Name in messages.
    pub(crate) name: &'static str,
    pub(crate) params: &'static [&'static str],
    pub(crate) required: usize,
    /// Parameters that Jinja fills in itself; Python counts them.
    pub(crate) hidden: usize,
    pub(crate) words: Words,
}

impl Signature {
    pub(crate) const fn new(
        name: &'static str,
        params: &'static [&'static str],
        required: usize,
    ) -> Self {
        Self { name, params, required, hidden: 0, words: Words::Python }
    }

    /// A function that gets the environment or the context as first argument.
    pub(crate) const fn with_environment(
        name: &'static str,
        params: &'static [&'static str],
        required: usize,
    ) -> Self {
        Self { name, params, required, hidden: 1, words: Words::Python }
    }

    /// A function written in C; `name` is the full one, such as `str.center`.
    pub(crate) const fn native(
        name: &'static str,
        params: &'static [&'static str],
        required: usize,
        words: Words,
    ) -> Self {
        Self { name, params, required, hidden: 0, words }
    }
}

/// What runs when a template calls a function of ours.
pub(crate) type Run = fn(&mut Interp<'_>, &Rc<Scope>, &Bound) -> Res<Value>;

/// A function that templates can call.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Prints as a class.
    pub(crate) is_type: bool,
    /// None: takes anything.
    pub(crate) signature: Option<Signature>,
    pub(crate) run: Run,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Arguments in the order of the parameters; for functions without signature the raw ones.
#[derive(Debug)]
pub(crate) struct Bound {
    values: Vec<Option<Value>>,
    pub(crate) raw: Args,
}

impl Bound {
    /// A required argument.
    pub(crate) fn get(&self, index: usize) -> &Value {
        const NONE: &Value = &Value::None;
        self.values.get(index).and_then(Option::as_ref).unwrap_or(NONE)
    }

    pub(crate) fn given(&self, index: usize) -> Option<&Value> {
        self.values.get(index).and_then(Option::as_ref)
    }

    /// An argument that may be missing or `none`.
    pub(crate) fn optional(&self, index: usize) -> Option<&Value> {
        self.given(index).filter(|value| !matches!(value, Value::None))
    }

    /// A flag; missing means false.
    pub(crate) fn flag(&self, index: usize) -> Res<bool> {
        self.given(index).map_or(Ok(false), Value::is_true)
    }

    /// A whole number.
    pub(crate) fn int(&self, index: usize, default: i64) -> Res<i64> {
        match self.given(index) {
            None => Ok(default),
            Some(value) => value.as_index().ok_or_else(|| {
                if let Err(error) = value.require() {
                    error
                } else {
                    let name = value.type_name();
                    Raise::type_error(format!(
                        "'{name}' object cannot be interpreted as an integer"
                    ))
                }
            }),
        }
    }
}

impl Args {
    pub(crate) fn of(pos: Vec<Value>) -> Self {
        Self { pos, kw: Vec::new() }
    }

    pub(crate) fn raw(self) -> Bound {
        Bound { values: Vec::new(), raw: self }
    }

    pub(crate) fn bind(self, signature: Option<&Signature>) -> Res<Bound> {
        match signature {
            Some(signature) => signature.bind(self),
            None => Ok(self.raw()),
        }
    }
}

impl Signature {
    fn bind(&self, args: Args) -> Res<Bound> {
        let name = self.name;
        let given = args.pos.len();
        self.check_native(&args)?;
        let mut values: Vec<Option<Value>> = args.pos.into_iter().map(Some).collect();
        values.resize(given.max(self.params.len()), None);
        for (key, value) in args.kw {
            match self.params.iter().position(|param| **param == *key) {
                None => {
                    let message = format!("{name}() got an unexpected keyword argument '{key}'");
                    return Err(Raise::type_error(message));
                }
                Some(index) if values[index].is_some() => {
                    let message = format!("{name}() got multiple values for argument '{key}'");
                    return Err(Raise::type_error(message));
                }
                Some(index) => values[index] = Some(value),
            }
        }
        if given > self.params.len() {
            return Err(self.too_many(given));
        }
        let missing: Vec<String> = (0..self.required)
            .filter(|index| values[*index].is_none())
            .map(|index| format!("'{}'", self.params[index]))
            .collect();
        if !missing.is_empty() {
            return Err(self.too_few(&missing));
        }
        Ok(Bound { values, raw: Args::default() })
    }

    /// What functions written in C refuse, in their words.
    fn check_native(&self, args: &Args) -> Res<()> {
        let (full, given) = (self.name, args.pos.len() + args.kw.len());
        let short = full.rsplit('.').next().unwrap_or(full);
        let (low, high) = (self.required, self.params.len());
        let unknown = args.kw.iter().find(|(key, _)| !self.params.contains(&&**key));
        let message = match self.words {
            Words::Python => return Ok(()),
            Words::Keywords => match unknown {
                Some((key, _)) => format!("'{key}' is an invalid keyword argument for {short}()"),
                None => parsed(short, low, high, given),
            },
            // Since Python 3.13.
            _ if short == "replace" && args.kw.iter().all(|(key, _)| **key == *"count") => {
                counted(short, low, high, given)
            }
            _ if !args.kw.is_empty() => format!("{full}() takes no keyword arguments"),
            Words::One if given != 1 => {
                format!("{full}() takes exactly one argument ({given} given)")
            }
            Words::One => String::new(),
            Words::Counted => counted(short, low, high, given),
            Words::Parsed => parsed(short, low, high, given),
        };
        if message.is_empty() { Ok(()) } else { Err(Raise::type_error(message)) }
    }

    fn too_many(&self, given: usize) -> Raise {
        let (low, high) = (self.required + self.hidden, self.params.len() + self.hidden);
        let given = given + self.hidden;
        let takes = match (low == high, high) {
            (true, 1) => "1 positional argument".to_owned(),
            (true, _) => format!("{high} positional arguments"),
            (false, _) => format!("from {low} to {high} positional arguments"),
        };
        let verb = if given == 1 { "was" } else { "were" };
        let name = self.name;
        Raise::type_error(format!("{name}() takes {takes} but {given} {verb} given"))
    }

    fn too_few(&self, missing: &[String]) -> Raise {
        let name = self.name;
        let count = missing.len();
        let plural = if count == 1 { "" } else { "s" };
        let list = match missing {
            [only] => only.clone(),
            [first, second] => format!("{first} and {second}"),
            [most @ .., last] => format!("{}, and {last}", most.join(", ")),
            [] => String::new(),
        };
        Raise::type_error(format!(
            "{name}() missing {count} required positional argument{plural}: {list}"
        ))
    }
}

/// Too few or too many arguments in the words of one of Python's checks; empty when their number is right.
fn counted(name: &str, low: usize, high: usize, given: usize) -> String {
    let (limit, wanted) = match given {
        _ if given < low => ("at least ", low),
        _ if given > high => ("at most ", high),
        _ => return String::new(),
    };
    let limit = if low == high { "" } else { limit };
    let plural = if wanted == 1 { "" } else { "s" };
    format!("{name} expected {limit}{wanted} argument{plural}, got {given}")
}

/// As [`counted`], in the words of another.
fn parsed(name: &str, low: usize, high: usize, given: usize) -> String {
    let (limit, wanted) = match given {
        _ if given < low => ("at least", low),
        _ if given > high => ("at most", high),
        _ => return String::new(),
    };
    let plural = if wanted == 1 { "" } else { "s" };
    format!("{name}() takes {limit} {wanted} argument{plural} ({given} given)")
}
