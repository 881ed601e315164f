//! What follows an operand: attributes, subscripts, calls, filters and tests.

use std::sync::Arc;

use super::Parser;
use super::expr::expr;
use crate::jinja::ast::{CallArgs, Const, Expr, ExprKind, Pos, SliceExpr, UnaryOp};
use crate::jinja::error::Res;
use crate::jinja::lexer::Kind;

impl Parser {
    pub(super) fn parse_postfix(&mut self, mut node: Expr) -> Res<Expr> {
        let mut length = 0;
        loop {
            node = match self.kind() {
                Kind::Op("." | "[") => self.parse_subscript(node)?,
                Kind::Op("(") => self.parse_call(node)?,
                _ => return Ok(node),
            };
            length += 1;
            self.check_chain(length)?;
        }
    }

    pub(super) fn parse_filters_and_tests(&mut self, mut node: Expr) -> Res<Expr> {
        let mut length = 0;
        loop {
            node = match self.kind() {
                Kind::Op("|") => self.parse_filter(Some(node))?,
                Kind::Name(name) if **name == *"is" => self.parse_test(node)?,
                Kind::Op("(") => self.parse_call(node)?,
                _ => return Ok(node),
            };
            length += 1;
            self.check_chain(length)?;
        }
    }

    fn parse_subscript(&mut self, node: Expr) -> Res<Expr> {
        let token = self.next();
        if token.kind == Kind::Op(".") {
            let attribute = self.current().clone();
            self.next();
            return match attribute.kind {
                Kind::Name(name) => Ok(expr(ExprKind::Attr(Box::new(node), name), attribute.pos)),
                Kind::Integer => {
                    let index = attribute.number.unwrap_or(Const::None);
                    let index = expr(ExprKind::Const(index), attribute.pos);
                    Ok(expr(ExprKind::Item(Box::new(node), Box::new(index)), attribute.pos))
                }
                _ => self.fail("expected name or number", attribute.pos),
            };
        }
        let mut args = Vec::new();
        while !self.is_op("]") {
            if !args.is_empty() {
                self.expect_op(",")?;
            }
            args.push(self.nested(Self::parse_subscribed)?);
        }
        self.expect_op("]")?;
        let arg = match args.pop() {
            Some(only) if args.is_empty() => only,
            Some(last) => {
                args.push(last);
                expr(ExprKind::Tuple(args), token.pos)
            }
            None => expr(ExprKind::Tuple(args), token.pos),
        };
        if let ExprKind::Slice(mut slice) = arg.kind {
            slice.value = Some(node);
            return Ok(expr(ExprKind::Slice(slice), token.pos));
        }
        Ok(expr(ExprKind::Item(Box::new(node), Box::new(arg)), token.pos))
    }

    fn parse_subscribed(&mut self) -> Res<Expr> {
        let pos = self.pos();
        let start = if self.is_op(":") {
            None
        } else {
            let node = self.parse_expression()?;
            if !self.is_op(":") {
                return Ok(node);
            }
            Some(node)
        };
        self.expect_op(":")?;
        let at_end = |parser: &Self| parser.is_op("]") || parser.is_op(",");
        let stop =
            if self.is_op(":") || at_end(self) { None } else { Some(self.parse_expression()?) };
        let mut step = None;
        if self.skip_op(":") && !at_end(self) {
            step = Some(self.parse_expression()?);
        }
        Ok(expr(ExprKind::Slice(Box::new(SliceExpr { value: None, start, stop, step })), pos))
    }

    pub(super) fn parse_call_args(&mut self) -> Res<CallArgs> {
        let pos = self.expect_op("(")?.pos;
        let mut call = CallArgs::default();
        let mut needs_comma = false;
        while !self.is_op(")") {
            if needs_comma {
                self.expect_op(",")?;
                if self.is_op(")") {
                    break;
                }
            }
            let star_free = call.star.is_none() && call.star_star.is_none();
            let valid = if self.is_op("*") {
                self.next();
                call.star = Some(self.parse_expression()?);
                star_free
            } else if self.is_op("**") {
                self.next();
                let valid = call.star_star.is_none();
                call.star_star = Some(self.parse_expression()?);
                valid
            } else if matches!(self.kind(), Kind::Name(_)) && *self.look() == Kind::Op("=") {
                let valid = call.star_star.is_none();
                let (key, _) = self.expect_name()?;
                self.next();
                call.kwargs.push((key, self.parse_expression()?));
                valid
            } else {
                let valid = star_free && call.kwargs.is_empty();
                if valid {
                    call.args.push(self.parse_expression()?);
                }
                valid
            };
            if !valid {
                return self.fail("invalid syntax for function call expression", pos);
            }
            needs_comma = true;
        }
        self.expect_op(")")?;
        Ok(call)
    }

    fn parse_call(&mut self, node: Expr) -> Res<Expr> {
        let pos = node.pos;
        let args = self.nested(Self::parse_call_args)?;
        Ok(expr(ExprKind::Call(Box::new(node), Box::new(args)), pos))
    }

    fn dotted_name(&mut self) -> Res<(Arc<str>, Pos)> {
        let (mut name, pos) = self.expect_name()?;
        while self.skip_op(".") {
            let (part, _) = self.expect_name()?;
            name = format!("{name}.{part}").into();
        }
        Ok((name, pos))
    }

    /// `|name(args)`; without a value for filter blocks.
    pub(super) fn parse_filter(&mut self, node: Option<Expr>) -> Res<Expr> {
        self.expect_op("|")?;
        self.parse_filter_name(node)
    }

    pub(super) fn parse_filter_name(&mut self, node: Option<Expr>) -> Res<Expr> {
        let (name, pos) = self.dotted_name()?;
        let args =
            if self.is_op("(") { self.nested(Self::parse_call_args)? } else { CallArgs::default() };
        Ok(expr(ExprKind::Filter(node.map(Box::new), name, Box::new(args)), pos))
    }

    fn parse_test(&mut self, node: Expr) -> Res<Expr> {
        self.next();
        let pos = self.pos();
        let negated = self.skip_name("not");
        let (name, name_pos) = self.dotted_name()?;
        let mut args = CallArgs::default();
        let takes_argument = match self.kind() {
            Kind::Op("(") => {
                args = self.nested(Self::parse_call_args)?;
                false
            }
            Kind::Name(name) if **name == *"is" => {
                let pos = self.pos();
                return self.fail("You cannot chain multiple tests with is", pos);
            }
            Kind::Name(name) => !matches!(&**name, "else" | "or" | "and"),
            Kind::Str(_) | Kind::Integer | Kind::Float | Kind::Op("[" | "{") => true,
            _ => false,
        };
        if takes_argument {
            let argument = self.nested(|parser| {
                let primary = parser.parse_primary()?;
                parser.parse_postfix(primary)
            })?;
            args.args.push(argument);
        }
        let test = expr(ExprKind::Test(Box::new(node), name, Box::new(args)), name_pos);
        if negated {
            return Ok(expr(ExprKind::Unary(UnaryOp::Not, Box::new(test)), pos));
        }
        Ok(test)
    }
}
