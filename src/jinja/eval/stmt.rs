//! Statements.

use std::rc::Rc;
use std::sync::Arc;

use super::scope::{Scope, ScopeKind};
use super::{Flow, Interp, captured_value};
use crate::jinja::ast::{Expr, ExprKind, Stmt, StmtKind, Target};
use crate::jinja::error::{Raise, Res};
use crate::jinja::filters::html::escape_value;
use crate::jinja::value::iter::Walk;
use crate::jinja::value::repr::to_str;
use crate::jinja::value::{Object, Value};

impl Interp<'_> {
    pub(crate) fn exec(&mut self, scope: &Rc<Scope>, body: &[Stmt], out: &mut String) -> Res<Flow> {
        self.nested(|it| {
            for stmt in body {
                it.budget.spend(1)?;
                let flow = it.exec_one(scope, stmt, out).map_err(|error| {
                    error.at_pos(stmt.pos).with_near_names(|| scope.known_names())
                })?;
                if flow != Flow::Next {
                    return Ok(flow);
                }
            }
            Ok(Flow::Next)
        })
    }

    fn exec_one(&mut self, scope: &Rc<Scope>, stmt: &Stmt, out: &mut String) -> Res<Flow> {
        match &stmt.kind {
            StmtKind::Data(text) => {
                if !scope.is_silent() {
                    self.write(out, text)?;
                }
            }
            StmtKind::Print(expr) => self.print(scope, expr, out)?,
            StmtKind::If(branches, other) => return self.exec_if(scope, branches, other, out),
            StmtKind::For(node) => self.exec_for(scope, node, out)?,
            StmtKind::Set(target, value) => self.exec_set(scope, target, value)?,
            StmtKind::SetBlock(target, filter, body) => {
                let inner = scope.captured();
                let text = self.capture(&inner, body)?;
                let mut value = captured_value(text, scope.ctx.autoescape.get());
                if let Some(filter) = filter {
                    value = self.filter_text(&inner, filter, value)?;
                }
                check_namespaces(scope, target)?;
                self.unpack(scope, target, value, true)?;
            }
            StmtKind::With(assignments, body) => {
                let inner = scope.inner(ScopeKind::Other);
                for (target, value) in assignments {
                    let value = self.eval(scope, value)?;
                    self.unpack(&inner, target, value, false)?;
                }
                return self.exec(&inner, body, out);
            }
            StmtKind::Macro(node) => {
                let value = self.make_macro(scope, node);
                if let Some(name) = &node.name {
                    let public = !name.starts_with('_');
                    scope.define(name, value, public);
                }
            }
            StmtKind::Call(node, call) => self.exec_call_block(scope, node, call, out)?,
            StmtKind::Filter(filter, body) => {
                let inner = scope.inner(ScopeKind::Other);
                let text = self.capture(&inner, body)?;
                let text = captured_value(text, scope.ctx.autoescape.get());
                let value = self.filter_text(&inner, filter, text)?;
                if value.as_str().is_none() {
                    let name = value.type_name();
                    let message = format!(
                        "the filters of a filter block must give text: expected str instance, {name} found"
                    );
                    return Err(Raise::type_error(message).at_pos(filter.pos));
                }
                self.print_value(scope, &value, out)?;
            }
            StmtKind::Block(block) => self.exec_block(scope, block, out)?,
            StmtKind::Extends(parent) => self.exec_extends(scope, parent)?,
            StmtKind::Include(node) => self.exec_include(scope, node, out)?,
            StmtKind::Import(node) => self.exec_import(scope, node)?,
            StmtKind::FromImport(node) => self.exec_from_import(scope, node, stmt.pos)?,
            StmtKind::Autoescape(value, body) => {
                let on = self.eval(scope, value)?.is_true()?;
                let before = scope.ctx.autoescape.replace(on);
                let result = self.exec(&scope.inner(ScopeKind::Other), body, out);
                scope.ctx.autoescape.set(before);
                return result;
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, scope: &Rc<Scope>, expr: &Expr, out: &mut String) -> Res<()> {
        if scope.is_silent() {
            return Ok(());
        }
        let value = self.eval(scope, expr)?;
        self.print_value(scope, &value, out).map_err(|error| error.at_pos(expr.pos))
    }

    pub(super) fn print_value(
        &mut self,
        scope: &Rc<Scope>,
        value: &Value,
        out: &mut String,
    ) -> Res<()> {
        let text = if scope.ctx.autoescape.get() {
            escape_value(value, &self.budget)?
        } else {
            to_str(value, &self.budget)?
        };
        self.write(out, &text)
    }

    fn exec_if(
        &mut self,
        scope: &Rc<Scope>,
        branches: &[(Expr, Vec<Stmt>)],
        other: &[Stmt],
        out: &mut String,
    ) -> Res<Flow> {
        for (test, body) in branches {
            let value = self.eval(scope, test)?;
            if value.is_true().map_err(|error| error.at_pos(test.pos))? {
                return self.exec(scope, body, out);
            }
        }
        if other.is_empty() { Ok(Flow::Next) } else { self.exec(scope, other, out) }
    }

    /// Runs statements into a text of their own. A loop control that leaves them is lost, as there is no text then.
    pub(super) fn capture(&mut self, scope: &Rc<Scope>, body: &[Stmt]) -> Res<String> {
        let mut text = String::new();
        self.exec(scope, body, &mut text)?;
        Ok(text)
    }

    /// Applies the filters of a filter block or a set block to its text.
    fn filter_text(&mut self, scope: &Rc<Scope>, filter: &Expr, text: Value) -> Res<Value> {
        let ExprKind::Filter(inner, name, args) = &filter.kind else {
            return Ok(text);
        };
        let text = match inner {
            Some(inner) => self.filter_text(scope, inner, text)?,
            None => text,
        };
        let args = self.eval_args(scope, args)?;
        self.apply_filter(scope, name, text, args).map_err(|error| error.at_pos(filter.pos))
    }

    fn exec_set(&mut self, scope: &Rc<Scope>, target: &Target, value: &Expr) -> Res<()> {
        check_namespaces(scope, target)?;
        let value = self.eval(scope, value)?;
        self.unpack(scope, target, value, true)
    }

    /// Assigns a value to a target, taking it apart for tuples. `set`: by a statement, which exports the name.
    pub(super) fn unpack(
        &mut self,
        scope: &Rc<Scope>,
        target: &Target,
        value: Value,
        set: bool,
    ) -> Res<()> {
        match target {
            Target::Name(name) if set => scope.assign(name, value),
            Target::Name(name) => scope.bind(name, value),
            Target::Attribute(name, attribute) => {
                if let Some(Value::Namespace(dict)) = scope.lookup(name) {
                    self.budget.dict_changed(&dict);
                    dict.insert_str(attribute, value);
                }
            }
            Target::Tuple(targets) => {
                let items = unpack_values(&value, targets.len())?;
                for (target, item) in targets.iter().zip(items) {
                    self.unpack(scope, target, item, set)?;
                }
            }
        }
        Ok(())
    }

    fn exec_call_block(
        &mut self,
        scope: &Rc<Scope>,
        node: &Arc<crate::jinja::ast::Macro>,
        call: &Expr,
        out: &mut String,
    ) -> Res<()> {
        let ExprKind::Call(callee, args) = &call.kind else { return Ok(()) };
        let caller = self.make_macro(scope, node);
        debug_assert!(
            matches!(&caller, Value::Object(object) if matches!(**object, Object::Macro(_)))
        );
        let mut args = self.eval_args(scope, args)?;
        args.kw.push(("caller".into(), caller));
        let callee = self.eval(scope, callee)?;
        let value = self.call(scope, &callee, args).map_err(|error| error.at_pos(call.pos))?;
        self.print_value(scope, &value, out)
    }
}

fn check_namespaces(scope: &Rc<Scope>, target: &Target) -> Res<()> {
    match target {
        Target::Name(_) => Ok(()),
        Target::Tuple(items) => items.iter().try_for_each(|item| check_namespaces(scope, item)),
        Target::Attribute(name, _) => match scope.lookup(name) {
            Some(Value::Namespace(_)) => Ok(()),
            _ => Err(Raise::runtime("cannot assign attribute on non-namespace object")),
        },
    }
}

fn unpack_values(value: &Value, wanted: usize) -> Res<Vec<Value>> {
    value.require()?;
    let mut walk = Walk::new(value).map_err(|_| {
        let name = value.type_name();
        Raise::type_error(format!("cannot unpack non-iterable {name} object"))
    })?;
    let mut items = Vec::with_capacity(wanted);
    while let Some(item) = walk.next()? {
        if items.len() == wanted {
            let message = format!("too many values to unpack (expected {wanted})");
            return Err(Raise::value_error(message));
        }
        items.push(item);
    }
    if items.len() < wanted {
        let got = items.len();
        let message = format!("not enough values to unpack (expected {wanted}, got {got})");
        return Err(Raise::value_error(message));
    }
    Ok(items)
}
