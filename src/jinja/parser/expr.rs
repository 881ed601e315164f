//! Expressions, by descending precedence as in Jinja2.

use std::sync::Arc;

use super::Parser;
use crate::jinja::ast::{BinaryOp, CompareOp, Const, Expr, ExprKind, Pos, UnaryOp};
use crate::jinja::error::Res;
use crate::jinja::lexer::Kind;
use crate::jinja::value::repr::str_repr;

pub(super) fn expr(kind: ExprKind, pos: Pos) -> Expr {
    Expr { pos, kind }
}

fn binary(op: BinaryOp, left: Expr, right: Expr, pos: Pos) -> Expr {
    expr(ExprKind::Binary(op, Box::new((left, right))), pos)
}

/// How a list of comma separated expressions is read.
#[derive(Clone, Copy, Default)]
pub(super) struct TupleMode {
    /// Leave `if` alone: it belongs to the statement.
    pub(super) no_condition: bool,
    /// A keyword that ends the list.
    pub(super) end: Option<&'static str>,
    /// Inside parentheses, where an empty tuple is fine.
    pub(super) parenthesised: bool,
}

impl Parser {
    pub(super) fn parse_expression(&mut self) -> Res<Expr> {
        self.nested(Self::parse_condition)
    }

    fn parse_condition(&mut self) -> Res<Expr> {
        let pos = self.pos();
        let mut value = self.parse_or()?;
        let mut length = 0;
        while self.skip_name("if") {
            length += 1;
            self.check_chain(length)?;
            let test = self.parse_or()?;
            let other = if self.skip_name("else") {
                Some(Box::new(self.nested(Self::parse_condition)?))
            } else {
                None
            };
            value = expr(ExprKind::Cond(Box::new((value, test)), other), pos);
        }
        Ok(value)
    }

    fn parse_or(&mut self) -> Res<Expr> {
        let pos = self.pos();
        let mut left = self.parse_and()?;
        let mut length = 0;
        while self.skip_name("or") {
            length += 1;
            self.check_chain(length)?;
            let right = self.parse_and()?;
            left = expr(ExprKind::Or(Box::new((left, right))), pos);
        }
        Ok(left)
    }

    fn parse_and(&mut self) -> Res<Expr> {
        let pos = self.pos();
        let mut left = self.parse_not()?;
        let mut length = 0;
        while self.skip_name("and") {
            length += 1;
            self.check_chain(length)?;
            let right = self.parse_not()?;
            left = expr(ExprKind::And(Box::new((left, right))), pos);
        }
        Ok(left)
    }

    fn parse_not(&mut self) -> Res<Expr> {
        if self.is_name("not") {
            let pos = self.next().pos;
            let inner = self.nested(Self::parse_not)?;
            return Ok(expr(ExprKind::Unary(UnaryOp::Not, Box::new(inner)), pos));
        }
        self.parse_compare()
    }

    fn parse_compare(&mut self) -> Res<Expr> {
        let pos = self.pos();
        let left = self.parse_sum()?;
        let mut ops = Vec::new();
        loop {
            let op = match self.kind() {
                Kind::Op("==") => CompareOp::Eq,
                Kind::Op("!=") => CompareOp::Ne,
                Kind::Op("<") => CompareOp::Lt,
                Kind::Op("<=") => CompareOp::Le,
                Kind::Op(">") => CompareOp::Gt,
                Kind::Op(">=") => CompareOp::Ge,
                Kind::Name(name) if **name == *"in" => CompareOp::In,
                Kind::Name(name) if **name == *"not" && self.looks_at_name("in") => {
                    self.next();
                    CompareOp::NotIn
                }
                _ => break,
            };
            self.next();
            ops.push((op, self.parse_sum()?));
        }
        if ops.is_empty() {
            return Ok(left);
        }
        Ok(expr(ExprKind::Compare(Box::new(left), ops), pos))
    }

    fn parse_sum(&mut self) -> Res<Expr> {
        let pos = self.pos();
        let mut left = self.parse_concat()?;
        let mut length = 0;
        loop {
            let op = match self.kind() {
                Kind::Op("+") => BinaryOp::Add,
                Kind::Op("-") => BinaryOp::Sub,
                _ => return Ok(left),
            };
            length += 1;
            self.check_chain(length)?;
            self.next();
            left = binary(op, left, self.parse_concat()?, pos);
        }
    }

    fn parse_concat(&mut self) -> Res<Expr> {
        let pos = self.pos();
        let first = self.parse_product()?;
        if !self.is_op("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_op("~") {
            parts.push(self.parse_product()?);
        }
        Ok(expr(ExprKind::Concat(parts), pos))
    }

    fn parse_product(&mut self) -> Res<Expr> {
        let pos = self.pos();
        let mut left = self.parse_power()?;
        let mut length = 0;
        loop {
            let op = match self.kind() {
                Kind::Op("*") => BinaryOp::Mul,
                Kind::Op("/") => BinaryOp::Div,
                Kind::Op("//") => BinaryOp::FloorDiv,
                Kind::Op("%") => BinaryOp::Mod,
                _ => return Ok(left),
            };
            length += 1;
            self.check_chain(length)?;
            self.next();
            left = binary(op, left, self.parse_power()?, pos);
        }
    }

    fn parse_power(&mut self) -> Res<Expr> {
        let pos = self.pos();
        let mut left = self.parse_unary(true)?;
        let mut length = 0;
        while self.skip_op("**") {
            length += 1;
            self.check_chain(length)?;
            left = binary(BinaryOp::Pow, left, self.parse_unary(true)?, pos);
        }
        Ok(left)
    }

    fn parse_unary(&mut self, with_filters: bool) -> Res<Expr> {
        let pos = self.pos();
        let op = match self.kind() {
            Kind::Op("-") => Some(UnaryOp::Neg),
            Kind::Op("+") => Some(UnaryOp::Pos),
            _ => None,
        };
        let mut node = if let Some(op) = op {
            self.next();
            let inner = self.nested(|parser| parser.parse_unary(false))?;
            expr(ExprKind::Unary(op, Box::new(inner)), pos)
        } else {
            self.parse_primary()?
        };
        node = self.parse_postfix(node)?;
        if with_filters { self.parse_filters_and_tests(node) } else { Ok(node) }
    }

    pub(super) fn parse_primary(&mut self) -> Res<Expr> {
        let token = self.current().clone();
        let constant = |value: Const| Ok(expr(ExprKind::Const(value), token.pos));
        match &token.kind {
            Kind::Name(name) => {
                self.next();
                match &**name {
                    "true" | "True" => constant(Const::Bool(true)),
                    "false" | "False" => constant(Const::Bool(false)),
                    "none" | "None" => constant(Const::None),
                    _ => Ok(expr(ExprKind::Name(Arc::clone(name)), token.pos)),
                }
            }
            Kind::Str(text) => {
                self.next();
                let mut text = Arc::clone(text);
                while let Kind::Str(more) = self.kind() {
                    text = format!("{text}{more}").into();
                    self.next();
                }
                constant(Const::Str(text))
            }
            Kind::Integer | Kind::Float => {
                self.next();
                constant(token.number.clone().unwrap_or(Const::None))
            }
            Kind::Op("(") => {
                self.next();
                let mode = TupleMode { parenthesised: true, ..TupleMode::default() };
                let node = self.nested(|parser| parser.parse_tuple(mode))?;
                self.expect_op(")")?;
                Ok(node)
            }
            Kind::Op("[") => self.nested(Self::parse_list),
            Kind::Op("{") => self.nested(Self::parse_dict),
            other => {
                let message = format!("unexpected {}", str_repr(other.describe()));
                self.fail(message, token.pos)
            }
        }
    }

    /// One expression, or several with commas, which make a tuple.
    pub(super) fn parse_tuple(&mut self, mode: TupleMode) -> Res<Expr> {
        let pos = self.pos();
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.is_tuple_end(mode.end) {
                break;
            }
            let item = if mode.no_condition {
                self.nested(Self::parse_or)?
            } else {
                self.parse_expression()?
            };
            items.push(item);
            if self.is_op(",") {
                is_tuple = true;
            } else {
                break;
            }
        }
        if !is_tuple {
            if let Some(only) = items.pop() {
                return Ok(only);
            }
            if !mode.parenthesised {
                let got = str_repr(self.kind().describe());
                let pos = self.pos();
                return self.fail(format!("Expected an expression, got {got}"), pos);
            }
        }
        Ok(expr(ExprKind::Tuple(items), pos))
    }

    pub(super) fn is_tuple_end(&self, end: Option<&str>) -> bool {
        match self.kind() {
            Kind::VariableEnd | Kind::BlockEnd | Kind::Op(")") => true,
            Kind::Name(name) => end.is_some_and(|end| *end == **name),
            _ => false,
        }
    }

    fn parse_list(&mut self) -> Res<Expr> {
        let pos = self.expect_op("[")?.pos;
        let mut items = Vec::new();
        while !self.is_op("]") {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.is_op("]") {
                break;
            }
            items.push(self.parse_expression()?);
        }
        self.expect_op("]")?;
        Ok(expr(ExprKind::List(items), pos))
    }

    fn parse_dict(&mut self) -> Res<Expr> {
        let pos = self.expect_op("{")?.pos;
        let mut items = Vec::new();
        while !self.is_op("}") {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.is_op("}") {
                break;
            }
            let key = self.parse_expression()?;
            self.expect_op(":")?;
            items.push((key, self.parse_expression()?));
        }
        self.expect_op("}")?;
        Ok(expr(ExprKind::Dict(items), pos))
    }
}
