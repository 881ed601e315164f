//! Values that belong to the engine: functions, macros, loops, modules and times.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use super::repr::str_repr;
use super::{Value, compare};
use crate::jinja::args::{Args, Function};
use crate::jinja::ast::{BinaryOp, Template};
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::loops::LoopState;
use crate::jinja::eval::macros::MacroValue;
use crate::jinja::eval::scope::{BlockBody, Context};
use crate::jinja::kluctl::dates::{Date, DateTime};
use crate::jinja::kluctl::time::SimpleTime;

#[derive(Debug)]
pub(crate) enum Object {
    Function(&'static Function),
    /// A method of a Python value, not yet called.
    Method(Value, Arc<str>),
    Macro(MacroValue),
    Loop(LoopState),
    Module(Module),
    /// `self` in templates.
    SelfRef(Rc<Context>),
    Block(BlockRef),
    Cycler(Cycler),
    Joiner(Joiner),
    Time(SimpleTime),
    Date(Date),
    DateTime(DateTime),
}

/// What `import` gives.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) template: Arc<Template>,
    pub(crate) text: Arc<str>,
    pub(crate) exported: Vec<(Arc<str>, Value)>,
}

impl Module {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.exported.iter().find(|(own, _)| **own == *name).map(|(_, value)| value)
    }
}

/// A block that renders when it is called.
#[derive(Debug)]
pub(crate) struct BlockRef {
    pub(crate) name: Arc<str>,
    pub(crate) ctx: Rc<Context>,
    pub(crate) stack: Rc<Vec<BlockBody>>,
    pub(crate) depth: usize,
}

#[derive(Debug)]
pub(crate) struct Cycler {
    pub(crate) items: Vec<Value>,
    pub(crate) at: Cell<usize>,
}

#[derive(Debug)]
pub(crate) struct Joiner {
    pub(crate) separator: Value,
    pub(crate) used: Cell<bool>,
}

impl Object {
    pub(crate) fn is_true(&self) -> Res<bool> {
        match self {
            Object::Loop(state) => Ok(state.length()? > 0),
            _ => Ok(true),
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Object::Function(function) if function.is_type => "type",
            Object::Function(_) => "function",
            Object::Method(..) => "builtin_function_or_method",
            Object::Macro(_) => "Macro",
            Object::Loop(_) => "LoopContext",
            Object::Module(_) => "TemplateModule",
            Object::SelfRef(_) => "TemplateReference",
            Object::Block(_) => "BlockReference",
            Object::Cycler(_) => "Cycler",
            Object::Joiner(_) => "Joiner",
            Object::Time(_) => "SimpleTime",
            Object::Date(_) => "datetime.date",
            Object::DateTime(_) => "datetime.datetime",
        }
    }

    /// Module of the type as messages show it, with its dot.
    pub(crate) fn module(&self) -> &'static str {
        match self {
            // The types of the library name their module themselves.
            Object::Function(_) | Object::Method(..) | Object::Date(_) | Object::DateTime(_) => "",
            Object::Macro(_) | Object::Loop(_) | Object::SelfRef(_) | Object::Block(_) => {
                "jinja2.runtime."
            }
            Object::Module(_) => "jinja2.environment.",
            Object::Cycler(_) | Object::Joiner(_) => "jinja2.utils.",
            Object::Time(_) => "go_jinja2.ext.time_ext.",
        }
    }

    pub(crate) fn len(&self) -> Option<Res<usize>> {
        match self {
            Object::Loop(state) => Some(state.length()),
            _ => None,
        }
    }

    /// Text that identifies the value as a dict key; none: the object itself does.
    pub(crate) fn key_text(&self) -> Option<String> {
        match self {
            Object::Date(_) | Object::DateTime(_) => Some(self.to_text()),
            _ => None,
        }
    }

    /// `str(object)`.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Object::Module(module) => module.text.to_string(),
            Object::Time(time) => time.isoformat(),
            Object::Date(date) => date.isoformat(),
            Object::DateTime(time) => time.text(' '),
            _ => self.to_repr(),
        }
    }

    /// `repr(object)`, without memory addresses.
    pub(crate) fn to_repr(&self) -> String {
        match self {
            Object::Function(function) if function.is_type => {
                format!("<class '{}'>", function.name)
            }
            Object::Function(function) => format!("<function {}>", function.name),
            Object::Method(value, name) => {
                format!("<built-in method {name} of {} object>", value.type_name())
            }
            Object::Macro(value) => match &value.def.name {
                Some(name) => format!("<Macro {}>", str_repr(name)),
                None => "<Macro anonymous>".to_owned(),
            },
            Object::Loop(state) => {
                let length = state.length().unwrap_or(0);
                format!("<LoopContext {}/{length}>", state.index0.get() + 1)
            }
            Object::Module(module) => {
                format!("<TemplateModule {}>", str_repr(&module.template.name))
            }
            Object::SelfRef(ctx) => {
                let name = ctx.template.id.as_ref();
                let name = name.map_or_else(|| "None".to_owned(), |name| str_repr(name));
                format!("<TemplateReference {name}>")
            }
            Object::Date(date) => date.repr(),
            Object::DateTime(time) => time.repr(),
            _ => format!("<{}{} object>", self.module(), self.type_name()),
        }
    }

    /// A member that `value["name"]` finds.
    pub(crate) fn item(&self, name: &str) -> Option<Value> {
        match self {
            Object::SelfRef(ctx) => ctx.block_ref(name, 0),
            _ => None,
        }
    }

    /// `+` and `-` where the object defines them. Kluctl's times change themselves.
    pub(crate) fn arithmetic(&self, op: BinaryOp, right: &Value) -> Option<Res<()>> {
        match (self, op) {
            (Object::Time(time), BinaryOp::Add) => Some(time.shift(right, 1)),
            (Object::Time(time), BinaryOp::Sub) => Some(time.shift(right, -1)),
            _ => None,
        }
    }

    /// Order of two objects; none: they are compared by identity.
    pub(crate) fn compare(&self, other: &Object) -> Option<Res<Ordering>> {
        match (self, other) {
            (Object::Time(a), Object::Time(b)) => Some(a.compare(b)),
            (Object::Date(a), Object::Date(b)) => Some(Ok(a.cmp(b))),
            (Object::DateTime(a), Object::DateTime(b)) => Some(a.compare(b)),
            _ => None,
        }
    }

    /// Kluctl's times fail when compared with anything else.
    pub(crate) fn refuses_comparison(&self) -> bool {
        matches!(self, Object::Time(_))
    }

    /// The value of an attribute that is not a method to be called with arguments.
    pub(crate) fn attribute(self: &Rc<Self>, name: &str) -> Res<Option<Value>> {
        Ok(match &**self {
            Object::Loop(state) => state.attribute(name)?,
            Object::Module(module) => match name {
                "__name__" => Some(Value::Str(Arc::clone(&module.template.name))),
                _ => module.get(name).cloned(),
            },
            Object::Block(block) if name == "super" => Some(block.parent()),
            Object::Macro(value) => value.attribute(name),
            Object::Cycler(cycler) => match name {
                "current" => cycler.items.get(cycler.at.get()).cloned(),
                "items" => Some(Value::tuple(cycler.items.clone())),
                "pos" => Some(Value::len_of(cycler.at.get())),
                _ => None,
            },
            Object::Joiner(joiner) => match name {
                "sep" => Some(joiner.separator.clone()),
                "used" => Some(Value::Bool(joiner.used.get())),
                _ => None,
            },
            Object::Date(date) => date.attribute(name),
            Object::DateTime(time) => time.attribute(name),
            _ => None,
        })
    }

    /// True when `name` can be called as a method.
    pub(crate) fn has_method(&self, name: &str) -> bool {
        match self {
            Object::Loop(_) => matches!(name, "cycle" | "changed"),
            Object::Cycler(_) => matches!(name, "next" | "reset"),
            Object::Time(_) => SimpleTime::METHODS.contains(&name),
            Object::Date(_) => matches!(name, "isoformat" | "strftime" | "weekday" | "isoweekday"),
            Object::DateTime(_) => matches!(
                name,
                "isoformat" | "strftime" | "weekday" | "isoweekday" | "date" | "timestamp"
            ),
            _ => false,
        }
    }

    /// Calls a method of the object.
    pub(crate) fn call_method(
        &self,
        name: &str,
        args: &Args,
        budget: &super::Budget,
    ) -> Res<Value> {
        match (self, name) {
            (Object::Loop(state), "cycle") => state.cycle(&args.pos),
            (Object::Loop(state), _) => state.changed(&args.pos, budget),
            (Object::Cycler(cycler), "next") => Ok(cycler.next()),
            (Object::Cycler(cycler), _) => {
                cycler.at.set(0);
                Ok(Value::None)
            }
            (Object::Time(time), _) => time.call(name, args),
            (Object::Date(date), _) => date.call(name, args),
            (Object::DateTime(time), _) => time.call(name, args),
            _ => Err(Raise::type_error(format!("'{}' object is not callable", self.type_name()))),
        }
    }
}

impl Cycler {
    fn next(&self) -> Value {
        let at = self.at.get();
        self.at.set((at + 1) % self.items.len().max(1));
        self.items.get(at).cloned().unwrap_or(Value::None)
    }
}

impl BlockRef {
    fn parent(&self) -> Value {
        if self.depth + 1 >= self.stack.len() {
            let name = str_repr(&self.name);
            return Value::undefined_hint(format!("there is no parent block called {name}."));
        }
        Value::object(Object::Block(BlockRef {
            name: Arc::clone(&self.name),
            ctx: Rc::clone(&self.ctx),
            stack: Rc::clone(&self.stack),
            depth: self.depth + 1,
        }))
    }
}

/// Compares values seen by `loop.changed`.
pub(crate) fn same_values(
    last: &RefCell<Option<Vec<Value>>>,
    now: &[Value],
    budget: &super::Budget,
) -> Res<bool> {
    let previous = last.borrow().clone();
    let Some(previous) = previous else { return Ok(false) };
    if previous.len() != now.len() {
        return Ok(false);
    }
    for (a, b) in previous.iter().zip(now) {
        if !a.is_same(b) && !compare::equals(a, b, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}
