//! `to_yaml`: PyYAML's safe dump with kluctl's choices (insertion order, literals for multi-line text).

use std::collections::HashMap;
use std::rc::Rc;

use super::yaml_emit::{Emitter, Wish, analyze};
use super::yaml_scalar::{Kind, resolve};
use crate::jinja::error::{Raise, Res};
use crate::jinja::methods::text::split_lines;
use crate::jinja::value::number::float_repr;
use crate::jinja::value::repr::{repr, to_str};
use crate::jinja::value::{Budget, Object, Value};

/// One document, ending in a line break.
pub(super) fn dump(value: &Value, budget: &Budget) -> Res<String> {
    let mut seen = HashMap::new();
    count(value, &mut seen, &mut 0, budget, 0)?;
    let anchors = seen
        .into_iter()
        .filter_map(|(address, anchor)| Some((address, (anchor?, false))))
        .collect();
    let mut dumper = Dumper { emitter: Emitter::new(), anchors, budget };
    dumper.node(value, Place::Root)?;
    let mut emitter = dumper.emitter;
    emitter.indent = 0;
    emitter.write_indent();
    if emitter.open_ended {
        emitter.indicator("...", true, false, false);
        emitter.write_indent();
    }
    budget.bytes(emitter.out.len())?;
    Ok(emitter.out)
}

/// Where a container is in memory: the same one twice becomes an anchor and an alias.
fn address(value: &Value) -> Option<usize> {
    match value {
        Value::List(list) => Some(Rc::as_ptr(list).cast::<()>() as usize),
        Value::Dict(dict) => Some(Rc::as_ptr(dict).cast::<()>() as usize),
        Value::Tuple(tuple) if !tuple.items.is_empty() => {
            Some(Rc::as_ptr(tuple).cast::<()>() as usize)
        }
        _ => None,
    }
}

/// Finds containers that occur more than once and numbers them.
fn count(
    value: &Value,
    seen: &mut HashMap<usize, Option<usize>>,
    next: &mut usize,
    budget: &Budget,
    depth: usize,
) -> Res<()> {
    budget.spend(1)?;
    if depth > 100 {
        return Err(Raise::recursion("maximum recursion depth exceeded"));
    }
    let Some(address) = address(value) else { return Ok(()) };
    if let Some(anchor) = seen.get_mut(&address) {
        if anchor.is_none() {
            *next += 1;
            *anchor = Some(*next);
        }
        return Ok(());
    }
    seen.insert(address, None);
    match value {
        Value::List(list) => {
            list.to_vec().iter().try_for_each(|item| count(item, seen, next, budget, depth + 1))
        }
        Value::Tuple(tuple) => {
            tuple.items.iter().try_for_each(|item| count(item, seen, next, budget, depth + 1))
        }
        Value::Dict(dict) => dict.pairs().iter().try_for_each(|(key, value)| {
            count(key, seen, next, budget, depth + 1)?;
            count(value, seen, next, budget, depth + 1)
        }),
        _ => Ok(()),
    }
}

/// What a node is part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Item,
    Key,
    Value,
}

struct Dumper<'a> {
    emitter: Emitter,
    /// Number of the anchor, and whether it was written already.
    anchors: HashMap<usize, (usize, bool)>,
    budget: &'a Budget,
}

impl Dumper<'_> {
    /// Writes the anchor or alias of a container. True: an alias, and nothing more.
    fn anchor(&mut self, value: &Value) -> bool {
        let Some(address) = address(value) else { return false };
        let Some((number, written)) = self.anchors.get_mut(&address) else { return false };
        let mark = if *written { '*' } else { '&' };
        let alias = std::mem::replace(written, true);
        let text = format!("{mark}id{number:03}");
        self.emitter.indicator(&text, true, false, false);
        alias
    }

    fn node(&mut self, value: &Value, place: Place) -> Res<()> {
        self.budget.spend(1)?;
        self.budget.size(self.emitter.out.len())?;
        if self.anchor(value) {
            return Ok(());
        }
        match value {
            Value::List(list) => self.sequence(&list.to_vec(), place),
            Value::Tuple(tuple) => self.sequence(&tuple.items, place),
            Value::Dict(dict) => self.mapping(&dict.pairs(), place),
            scalar => {
                let (text, wish) = self.represent(scalar)?;
                let root = place == Place::Root;
                self.emitter.indent += 2;
                self.emitter.scalar(&text, wish, place == Place::Key, root);
                self.emitter.indent -= 2;
                Ok(())
            }
        }
    }

    fn represent(&self, value: &Value) -> Res<(String, Wish)> {
        let plain = |text: &str| Ok((text.to_owned(), Wish::Plain));
        match value {
            Value::None => plain("null"),
            Value::Bool(value) => plain(if *value { "true" } else { "false" }),
            Value::Int(_) | Value::Big(_) => plain(&to_str(value, self.budget)?),
            Value::Float(value) => plain(&float_text(*value)),
            Value::Str(text) => Ok((text.to_string(), text_wish(text))),
            Value::Object(object) => match &**object {
                Object::Date(_) | Object::DateTime(_) => plain(&object.to_text()),
                _ => Err(self.unknown(value)),
            },
            _ => Err(self.unknown(value)),
        }
    }

    fn unknown(&self, value: &Value) -> Raise {
        let shown = repr(value, self.budget).unwrap_or_default();
        let message = format!("('cannot represent an object', {shown})");
        Raise::new("RepresenterError", message)
    }

    fn sequence(&mut self, items: &[Value], place: Place) -> Res<()> {
        if items.is_empty() {
            self.emitter.indicator("[", true, true, false);
            self.emitter.indicator("]", false, false, false);
            return Ok(());
        }
        let before = self.emitter.indent;
        let in_mapping = matches!(place, Place::Key | Place::Value);
        let indentless = in_mapping && !self.emitter.indention;
        if place != Place::Root && !indentless {
            self.emitter.indent += 2;
        }
        for item in items {
            self.emitter.write_indent();
            self.emitter.indicator("-", true, false, true);
            self.node(item, Place::Item)?;
        }
        self.emitter.indent = before;
        Ok(())
    }

    fn mapping(&mut self, pairs: &[(Value, Value)], place: Place) -> Res<()> {
        if pairs.is_empty() {
            self.emitter.indicator("{", true, true, false);
            self.emitter.indicator("}", false, false, false);
            return Ok(());
        }
        let before = self.emitter.indent;
        if place != Place::Root {
            self.emitter.indent += 2;
        }
        for (key, value) in pairs {
            self.emitter.write_indent();
            if self.is_simple_key(key)? {
                self.node(key, Place::Key)?;
                self.emitter.indicator(":", false, false, false);
            } else {
                self.emitter.indicator("?", true, false, true);
                self.node(key, Place::Value)?;
                self.emitter.write_indent();
                self.emitter.indicator(":", true, false, true);
            }
            self.node(value, Place::Value)?;
        }
        self.emitter.indent = before;
        Ok(())
    }

    fn is_simple_key(&self, key: &Value) -> Res<bool> {
        Ok(match key {
            Value::List(list) => list.len() == 0,
            Value::Tuple(tuple) => tuple.items.is_empty(),
            Value::Dict(dict) => dict.len() == 0,
            scalar => {
                let (text, _) = self.represent(scalar)?;
                let length = text.chars().count();
                (1..128).contains(&length) && !analyze(&text).multiline
            }
        })
    }
}

fn text_wish(text: &str) -> Wish {
    if split_lines(text, false).len() > 1 {
        return Wish::Literal;
    }
    let numeric = !text.is_empty() && text.chars().all(char::is_numeric);
    if numeric || resolve(text) != Kind::Str { Wish::Quoted } else { Wish::Plain }
}

fn float_text(value: f64) -> String {
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = float_repr(value);
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0e{exponent}"),
        _ => text,
    }
}
