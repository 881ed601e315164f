//! Expressions.

use std::rc::Rc;
use std::sync::Arc;

use super::Interp;
use super::access::{get_attribute, is_method};
use super::scope::Scope;
use crate::jinja::args::Args;
use crate::jinja::ast::{CallArgs, CompareOp, Expr, ExprKind, SliceExpr};
use crate::jinja::error::{Raise, Res};
use crate::jinja::value::container::{Entries, insert};
use crate::jinja::value::iter::Walk;
use crate::jinja::value::repr::str_repr;
use crate::jinja::value::{Dict, Missing, Undefined, Value, compare, index, ops};
use crate::jinja::{filters, predicates};

impl Interp<'_> {
    pub(crate) fn eval(&mut self, scope: &Rc<Scope>, expr: &Expr) -> Res<Value> {
        match &expr.kind {
            ExprKind::Const(value) => Ok(Value::constant(value)),
            ExprKind::Name(name) => {
                Ok(scope.lookup(name).unwrap_or_else(|| Value::undefined_name(name)))
            }
            _ => self
                .nested(|it| {
                    it.budget.spend(1)?;
                    it.eval_compound(scope, expr)
                })
                .map_err(|error| error.at_pos(expr.pos)),
        }
    }

    fn eval_compound(&mut self, scope: &Rc<Scope>, expr: &Expr) -> Res<Value> {
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::Name(_) => self.eval(scope, expr),
            ExprKind::Concat(parts) => {
                let parts = self.eval_all(scope, parts)?;
                ops::concat(&parts, scope.ctx.autoescape.get(), &self.budget)
            }
            ExprKind::Tuple(items) => self.eval_all(scope, items).map(Value::tuple),
            ExprKind::List(items) => self.eval_all(scope, items).map(Value::list),
            ExprKind::Dict(items) => self.eval_dict(scope, items),
            ExprKind::Unary(op, inner) => {
                let value = self.eval(scope, inner)?;
                ops::unary(*op, &value, &self.budget)
            }
            ExprKind::Binary(op, sides) => {
                let left = self.eval(scope, &sides.0)?;
                let right = self.eval(scope, &sides.1)?;
                ops::binary(*op, &left, &right, &self.budget)
            }
            ExprKind::And(sides) => {
                let left = self.eval(scope, &sides.0)?;
                if left.is_true()? { self.eval(scope, &sides.1) } else { Ok(left) }
            }
            ExprKind::Or(sides) => {
                let left = self.eval(scope, &sides.0)?;
                if left.is_true()? { Ok(left) } else { self.eval(scope, &sides.1) }
            }
            ExprKind::Compare(left, ops) => self.eval_compare(scope, left, ops),
            ExprKind::Cond(parts, other) => {
                if self.eval(scope, &parts.1)?.is_true()? {
                    return self.eval(scope, &parts.0);
                }
                match other {
                    Some(other) => self.eval(scope, other),
                    None => Ok(missing_else(scope, expr)),
                }
            }
            ExprKind::Attr(value, name) => {
                let value = self.eval(scope, value)?;
                get_attribute(&value, name)
            }
            ExprKind::Item(value, subscript) => {
                let value = self.eval(scope, value)?;
                let subscript = self.eval(scope, subscript)?;
                self.get_item(&value, &subscript)
            }
            ExprKind::Slice(slice) => self.eval_slice(scope, slice),
            ExprKind::Call(callee, args) => self.eval_call(scope, callee, args),
            ExprKind::Filter(value, name, args) => {
                self.eval_filter(scope, value.as_deref(), name, args)
            }
            ExprKind::Test(value, name, args) => {
                let value = self.eval(scope, value)?;
                let args = self.eval_args(scope, args)?;
                self.apply_test(scope, name, value, args)
            }
        }
    }

    fn eval_all(&mut self, scope: &Rc<Scope>, items: &[Expr]) -> Res<Vec<Value>> {
        items.iter().map(|item| self.eval(scope, item)).collect()
    }

    fn eval_dict(&mut self, scope: &Rc<Scope>, items: &[(Expr, Expr)]) -> Res<Value> {
        let mut entries = Entries::with_capacity(items.len());
        for (key, value) in items {
            let key_value = self.eval(scope, key)?;
            let value = self.eval(scope, value)?;
            insert(&mut entries, key_value, value).map_err(|error| error.at_pos(key.pos))?;
        }
        Ok(Value::dict(Dict::new(entries)))
    }

    fn eval_compare(
        &mut self,
        scope: &Rc<Scope>,
        left: &Expr,
        ops: &[(CompareOp, Expr)],
    ) -> Res<Value> {
        let mut left = self.eval(scope, left)?;
        for (op, right) in ops {
            let right = self.eval(scope, right)?;
            let holds = match op {
                CompareOp::Eq => compare::equals(&left, &right, &self.budget)?,
                CompareOp::Ne => !compare::equals(&left, &right, &self.budget)?,
                CompareOp::In => ops::contains(&right, &left, &self.budget)?,
                CompareOp::NotIn => !ops::contains(&right, &left, &self.budget)?,
                _ => compare::order(*op, &left, &right, &self.budget)?,
            };
            if !holds {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    fn eval_slice(&mut self, scope: &Rc<Scope>, slice: &SliceExpr) -> Res<Value> {
        let Some(value) = &slice.value else {
            return Err(Raise::type_error("slices are only possible directly inside [ ]"));
        };
        let value = self.eval(scope, value)?;
        let mut bound = |bound: &Option<Expr>| match bound {
            Some(bound) => self.eval(scope, bound),
            None => Ok(Value::None),
        };
        let (start, stop, step) = (bound(&slice.start)?, bound(&slice.stop)?, bound(&slice.step)?);
        index::slice(&value, &start, &stop, &step, &self.budget)
    }

    fn eval_call(&mut self, scope: &Rc<Scope>, callee: &Expr, args: &CallArgs) -> Res<Value> {
        if let ExprKind::Attr(value, name) = &callee.kind {
            let value = self.eval(scope, value)?;
            if is_method(&value, name) {
                let args = self.eval_args(scope, args)?;
                return self
                    .call_method(scope, &value, name, args)
                    .map_err(|error| error.at_pos(callee.pos));
            }
            let callee_value =
                get_attribute(&value, name).map_err(|error| error.at_pos(callee.pos))?;
            let args = self.eval_args(scope, args)?;
            return self.call(scope, &callee_value, args).map_err(|error| error.at_pos(callee.pos));
        }
        let callee = self.eval(scope, callee)?;
        let args = self.eval_args(scope, args)?;
        self.call(scope, &callee, args)
    }

    pub(super) fn eval_args(&mut self, scope: &Rc<Scope>, call: &CallArgs) -> Res<Args> {
        let mut args = Args::of(self.eval_all(scope, &call.args)?);
        for (name, value) in &call.kwargs {
            args.kw.push((Arc::clone(name), self.eval(scope, value)?));
        }
        if let Some(star) = &call.star {
            let value = self.eval(scope, star)?;
            let mut walk = Walk::new(&value).map_err(|error| {
                let name = value.type_name();
                let message = format!("Value after * must be an iterable, not {name}");
                if value.is_undefined() { error } else { Raise::type_error(message) }
            })?;
            while let Some(item) = walk.next()? {
                self.budget.spend(1)?;
                args.pos.push(item);
            }
        }
        if let Some(star_star) = &call.star_star {
            let value = self.eval(scope, star_star)?;
            value.require()?;
            let Value::Dict(dict) = &value else {
                let name = value.type_name();
                let message = format!("argument after ** must be a mapping, not {name}");
                return Err(Raise::type_error(message));
            };
            for (key, value) in dict.pairs() {
                let Some(name) = key.as_str() else {
                    return Err(Raise::type_error("keywords must be strings"));
                };
                args.kw.push((Arc::clone(name), value));
            }
        }
        Ok(args)
    }

    fn eval_filter(
        &mut self,
        scope: &Rc<Scope>,
        value: Option<&Expr>,
        name: &Arc<str>,
        args: &CallArgs,
    ) -> Res<Value> {
        let value = match value {
            Some(value) => self.eval(scope, value)?,
            None => Value::str(""),
        };
        let args = self.eval_args(scope, args)?;
        self.apply_filter(scope, name, value, args)
    }

    pub(crate) fn apply_filter(
        &mut self,
        scope: &Rc<Scope>,
        name: &str,
        value: Value,
        mut args: Args,
    ) -> Res<Value> {
        let Some(filter) = filters::find(name) else {
            return Err(Raise::runtime(format!("No filter named {} found.", str_repr(name))));
        };
        self.budget.spend(1)?;
        args.pos.insert(0, value);
        let bound = args.bind(filter.signature.as_ref())?;
        (filter.run)(self, scope, &bound)
    }

    pub(crate) fn apply_test(
        &mut self,
        scope: &Rc<Scope>,
        name: &str,
        value: Value,
        mut args: Args,
    ) -> Res<Value> {
        let Some(test) = predicates::find(name) else {
            return Err(Raise::runtime(format!("No test named {} found.", str_repr(name))));
        };
        self.budget.spend(1)?;
        args.pos.insert(0, value);
        let bound = args.bind(test.signature.as_ref())?;
        (test.run)(self, scope, &bound)
    }
}

/// The value of `a if b` when `b` is false: undefined, but printing as nothing.
fn missing_else(scope: &Scope, expr: &Expr) -> Value {
    let template = &scope.template;
    let mut place = format!("line {}", expr.pos.line);
    if template.id.is_some() {
        place = format!("{place} in {}", str_repr(&template.name));
    }
    let hint = format!(
        "the inline if-expression on {place} evaluated to false and no else section was defined."
    );
    Value::Undefined(Rc::new(Undefined { what: Missing::Hint(hint), lenient: true }))
}
