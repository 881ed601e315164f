//! What Jinja2's compiler finds out before running: names with a special meaning, and mistakes it refuses.

use std::sync::Arc;

use crate::jinja::ast::{Block, CallArgs, Expr, ExprKind, For, Macro, Pos, Stmt, StmtKind, Target};
use crate::jinja::error::{Raise, Res};
use crate::jinja::value::repr::str_repr;
use crate::jinja::{filters, predicates};

/// The special names of macros that a body reads before it sets them.
#[derive(Default)]
pub(super) struct SpecialNames {
    pub(super) caller: bool,
    pub(super) kwargs: bool,
    pub(super) varargs: bool,
}

pub(super) fn special_names(body: &[Stmt]) -> SpecialNames {
    let mut found = Names { wanted: vec!["caller", "kwargs", "varargs"], found: Vec::new() };
    found.stmts(body);
    let has = |name| found.found.contains(&name);
    SpecialNames { caller: has("caller"), kwargs: has("kwargs"), varargs: has("varargs") }
}

pub(super) fn uses_loop(body: &[Stmt]) -> bool {
    let mut names = Names { wanted: vec!["loop"], found: Vec::new() };
    names.stmts(body);
    !names.found.is_empty() || has_scoped_block(body)
}

fn has_scoped_block(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Block(block) => block.scoped || has_scoped_block(&block.body),
        StmtKind::If(branches, other) => {
            branches.iter().any(|(_, body)| has_scoped_block(body)) || has_scoped_block(other)
        }
        StmtKind::For(node) => has_scoped_block(&node.body) || has_scoped_block(&node.else_body),
        StmtKind::With(_, body)
        | StmtKind::SetBlock(_, _, body)
        | StmtKind::Filter(_, body)
        | StmtKind::Autoescape(_, body) => has_scoped_block(body),
        StmtKind::Macro(node) | StmtKind::Call(node, _) => has_scoped_block(&node.body),
        _ => false,
    })
}

/// Finds names that are read without having been set before, in reading order.
struct Names {
    wanted: Vec<&'static str>,
    found: Vec<&'static str>,
}

impl Names {
    fn stmts(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Data(_) | StmtKind::Break | StmtKind::Continue | StmtKind::Block(_) => {}
            StmtKind::Print(expr) | StmtKind::Extends(expr) => self.expr(expr),
            StmtKind::If(branches, other) => {
                for (test, body) in branches {
                    self.expr(test);
                    self.stmts(body);
                }
                self.stmts(other);
            }
            StmtKind::For(node) => {
                self.target(&node.target);
                self.expr(&node.iter);
                self.stmts(&node.body);
                self.stmts(&node.else_body);
                node.test.iter().for_each(|test| self.expr(test));
            }
            StmtKind::Set(target, value) => {
                self.target(target);
                self.expr(value);
            }
            StmtKind::SetBlock(target, filter, body) => {
                self.target(target);
                if let Some(filter) = filter {
                    self.expr(filter);
                }
                self.stmts(body);
            }
            StmtKind::With(assignments, body) => {
                for (target, _) in assignments {
                    self.target(target);
                }
                for (_, value) in assignments {
                    self.expr(value);
                }
                self.stmts(body);
            }
            StmtKind::Macro(node) => self.body_of(node),
            StmtKind::Call(node, call) => {
                self.expr(call);
                self.body_of(node);
            }
            StmtKind::Filter(expr, body) | StmtKind::Autoescape(expr, body) => {
                self.stmts(body);
                self.expr(expr);
            }
            StmtKind::Include(node) => self.expr(&node.template),
            StmtKind::Import(node) => self.expr(&node.template),
            StmtKind::FromImport(node) => self.expr(&node.template),
        }
    }

    fn body_of(&mut self, node: &Macro) {
        for param in &node.params {
            self.stored(param);
        }
        node.defaults.iter().for_each(|default| self.expr(default));
        self.stmts(&node.body);
    }

    fn stored(&mut self, name: &str) {
        self.wanted.retain(|wanted| *wanted != name);
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Name(name) => self.stored(name),
            Target::Attribute(..) => {}
            Target::Tuple(items) => items.iter().for_each(|item| self.target(item)),
        }
    }

    fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Name(name) = &expr.kind {
            if let Some(index) = self.wanted.iter().position(|wanted| **wanted == **name) {
                self.found.push(self.wanted.swap_remove(index));
            }
            return;
        }
        children(expr, &mut |child| self.expr(child));
    }
}

/// Calls `visit` for each direct part of an expression.
fn children(expr: &Expr, visit: &mut dyn FnMut(&Expr)) {
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Name(_) => {}
        ExprKind::Concat(items) | ExprKind::Tuple(items) | ExprKind::List(items) => {
            items.iter().for_each(visit);
        }
        ExprKind::Dict(items) => {
            for (key, value) in items {
                visit(key);
                visit(value);
            }
        }
        ExprKind::Unary(_, inner) | ExprKind::Attr(inner, _) => visit(inner),
        ExprKind::Binary(_, sides) | ExprKind::And(sides) | ExprKind::Or(sides) => {
            visit(&sides.0);
            visit(&sides.1);
        }
        ExprKind::Compare(left, ops) => {
            visit(left);
            for (_, right) in ops {
                visit(right);
            }
        }
        ExprKind::Cond(parts, other) => {
            visit(&parts.0);
            visit(&parts.1);
            if let Some(other) = other {
                visit(other);
            }
        }
        ExprKind::Item(value, index) => {
            visit(value);
            visit(index);
        }
        ExprKind::Slice(slice) => {
            let parts = [&slice.value, &slice.start, &slice.stop, &slice.step];
            parts.into_iter().flatten().for_each(visit);
        }
        ExprKind::Call(callee, args) => {
            visit(callee);
            arguments(args, visit);
        }
        ExprKind::Filter(value, _, args) => {
            if let Some(value) = value {
                visit(value);
            }
            arguments(args, visit);
        }
        ExprKind::Test(value, _, args) => {
            visit(value);
            arguments(args, visit);
        }
    }
}

fn arguments(args: &CallArgs, visit: &mut dyn FnMut(&Expr)) {
    args.args.iter().for_each(&mut *visit);
    args.kwargs.iter().for_each(|(_, value)| visit(value));
    args.star.iter().for_each(&mut *visit);
    args.star_star.iter().for_each(&mut *visit);
}

/// Refuses what Jinja2 refuses when it compiles.
pub(super) fn check(body: &[Stmt], blocks: &[Arc<Block>]) -> Res<()> {
    for (index, block) in blocks.iter().enumerate() {
        if blocks[..index].iter().any(|other| other.name == block.name) {
            let message = format!("block {} defined twice", str_repr(&block.name));
            return assertion(message, block.pos);
        }
    }
    check_stmts(body, Scope { toplevel: true, soft: false, in_loop: false, has_loop: false })
}

fn assertion<T>(message: String, pos: Pos) -> Res<T> {
    Err(Raise::new("TemplateAssertionError", message).at_pos(pos))
}

#[expect(clippy::struct_excessive_bools, reason = "independent facts about a place")]
#[derive(Clone, Copy)]
struct Scope {
    toplevel: bool,
    /// Unknown filters and tests are only errors when they are reached.
    soft: bool,
    /// `break` and `continue` are allowed.
    in_loop: bool,
    /// Inside of a loop, wherever: `loop` must not be assigned.
    has_loop: bool,
}

impl Scope {
    fn inner(self) -> Self {
        Self { toplevel: false, soft: false, ..self }
    }

    fn function(self) -> Self {
        Self { in_loop: false, ..self.inner() }
    }
}

fn check_stmts(body: &[Stmt], scope: Scope) -> Res<()> {
    body.iter().try_for_each(|stmt| check_stmt(stmt, scope))
}

fn check_stmt(stmt: &Stmt, scope: Scope) -> Res<()> {
    match &stmt.kind {
        StmtKind::Data(_) => Ok(()),
        StmtKind::Break | StmtKind::Continue if scope.in_loop => Ok(()),
        StmtKind::Break => Err(Raise::syntax("'break' outside loop", stmt.pos)),
        StmtKind::Continue => Err(Raise::syntax("'continue' not properly in loop", stmt.pos)),
        StmtKind::Print(expr) => check_expr(expr, scope),
        StmtKind::Extends(expr) if scope.toplevel => check_expr(expr, scope),
        StmtKind::Extends(_) => {
            assertion("cannot use extend from a non top-level scope".into(), stmt.pos)
        }
        StmtKind::Block(block) => check_stmts(&block.body, scope.function()),
        StmtKind::If(branches, other) => {
            let soft = Scope { soft: true, ..scope };
            for (test, body) in branches {
                check_expr(test, soft)?;
                check_stmts(body, soft)?;
            }
            check_stmts(other, soft)
        }
        StmtKind::For(node) => check_for(node, scope),
        StmtKind::Set(target, value) => {
            check_target(target, scope, stmt.pos)?;
            check_expr(value, scope)
        }
        StmtKind::SetBlock(target, filter, body) => {
            check_target(target, scope, stmt.pos)?;
            filter.iter().try_for_each(|filter| check_expr(filter, scope.inner()))?;
            check_stmts(body, scope.inner())
        }
        StmtKind::With(assignments, body) => {
            for (target, value) in assignments {
                check_target(target, scope, stmt.pos)?;
                check_expr(value, scope)?;
            }
            check_stmts(body, scope.inner())
        }
        StmtKind::Macro(node) => check_macro(node, scope),
        StmtKind::Call(node, call) => {
            check_macro(node, scope)?;
            check_expr(call, scope)
        }
        StmtKind::Filter(filter, body) => {
            check_expr(filter, scope.inner())?;
            check_stmts(body, scope.inner())
        }
        StmtKind::Autoescape(value, body) => {
            check_expr(value, scope.inner())?;
            check_stmts(body, scope.inner())
        }
        StmtKind::Include(node) => check_expr(&node.template, scope),
        StmtKind::Import(node) => check_expr(&node.template, scope),
        StmtKind::FromImport(node) => check_expr(&node.template, scope),
    }
}

fn check_for(node: &For, scope: Scope) -> Res<()> {
    let inner = Scope { in_loop: true, has_loop: true, ..scope.inner() };
    check_target(&node.target, inner, node.pos)?;
    check_expr(&node.iter, scope)?;
    node.test.iter().try_for_each(|test| check_expr(test, inner))?;
    check_stmts(&node.body, inner)?;
    let after = Scope { in_loop: scope.in_loop && !node.recursive, ..inner };
    check_stmts(&node.else_body, after)
}

fn check_macro(node: &Macro, scope: Scope) -> Res<()> {
    let inner = scope.function();
    node.defaults.iter().try_for_each(|default| check_expr(default, inner))?;
    check_stmts(&node.body, inner)
}

fn check_expr(expr: &Expr, scope: Scope) -> Res<()> {
    let mut inner = scope;
    match &expr.kind {
        ExprKind::Filter(_, name, _) if !scope.soft && !filters::exists(name) => {
            return assertion(format!("No filter named {}.", str_repr(name)), expr.pos)
                .map_err(|error| error.with_near(name, filters::known()));
        }
        ExprKind::Test(_, name, _) if !scope.soft && !predicates::exists(name) => {
            return assertion(format!("No test named {}.", str_repr(name)), expr.pos)
                .map_err(|error| error.with_near(name, predicates::known()));
        }
        ExprKind::Cond(..) => inner.soft = true,
        _ => {}
    }
    let mut result = Ok(());
    children(expr, &mut |child| {
        if result.is_ok() {
            result = check_expr(child, inner);
        }
    });
    result
}

fn check_target(target: &Target, scope: Scope, pos: Pos) -> Res<()> {
    match target {
        Target::Name(name) if scope.has_loop && **name == *"loop" => {
            assertion("Can't assign to special loop variable in for-loop target".into(), pos)
        }
        Target::Tuple(items) => items.iter().try_for_each(|item| check_target(item, scope, pos)),
        _ => Ok(()),
    }
}
