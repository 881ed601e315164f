//! Jinja2's grammar: tokens → syntax tree. Messages are Jinja2's own.

mod analysis;
mod expr;
mod postfix;
mod stmt;

use std::sync::Arc;

use super::ast::{Block, Code, Pos};
use super::error::{Raise, Res};
use super::lexer::{self, Kind, Token, Tokens};
use super::value::repr::str_repr;

/// How deeply expressions and statements may nest.
const MAX_NESTING: usize = 200;
/// How deeply they may nest on the caller's own stack.
const SHALLOW_NESTING: usize = 24;
/// How many operators one chain such as `a + b + c` may have.
const MAX_CHAIN: usize = 500;

/// Compiles a template.
///
/// `name` is for messages; `deep_stack` says that the thread has room for deeply nested input.
pub(crate) fn parse(name: &Arc<str>, text: &str, deep_stack: bool) -> Res<Code> {
    let source: Arc<str> = lexer::normalize(text).into();
    let Tokens { tokens, error } = lexer::tokenize(&source);
    let mut parser = Parser {
        tokens,
        at: 0,
        error,
        tag_stack: Vec::new(),
        end_stack: Vec::new(),
        blocks: Vec::new(),
        nesting: 0,
        max_nesting: if deep_stack { MAX_NESTING } else { SHALLOW_NESTING },
        deep_stack,
    };
    let located = |error: Raise| error.in_template(name, &source, Pos { line: 1, column: 1 });
    let body = parser.subparse(&[]).map_err(located)?;
    analysis::check(&body, &parser.blocks).map_err(located)?;
    Ok(Code { source: Arc::clone(&source), body, blocks: parser.blocks })
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    error: Option<Raise>,
    tag_stack: Vec<Arc<str>>,
    end_stack: Vec<&'static [&'static str]>,
    blocks: Vec<Arc<Block>>,
    nesting: usize,
    max_nesting: usize,
    deep_stack: bool,
}

impl Parser {
    fn current(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn kind(&self) -> &Kind {
        &self.current().kind
    }

    fn pos(&self) -> Pos {
        self.current().pos
    }

    fn look(&self) -> &Kind {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    fn next(&mut self) -> Token {
        let token = self.current().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn is_op(&self, op: &str) -> bool {
        matches!(self.kind(), Kind::Op(current) if *current == op)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.kind(), Kind::Name(current) if **current == *name)
    }

    fn looks_at_name(&self, name: &str) -> bool {
        matches!(self.look(), Kind::Name(next) if **next == *name)
    }

    fn skip_op(&mut self, op: &str) -> bool {
        let found = self.is_op(op);
        if found {
            self.next();
        }
        found
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        if found {
            self.next();
        }
        found
    }

    /// The error for the current token; a place that cannot even be tokenised has its own.
    fn fail<T>(&mut self, message: impl Into<String>, pos: Pos) -> Res<T> {
        if matches!(self.kind(), Kind::Broken)
            && let Some(error) = self.error.take()
        {
            return Err(error);
        }
        Err(Raise::syntax(message, pos))
    }

    fn expected<T>(&mut self, what: &str) -> Res<T> {
        let what = str_repr(what);
        let message = match self.kind() {
            Kind::Eof | Kind::Broken => format!("unexpected end of template, expected {what}."),
            other => format!("expected token {what}, got {}", str_repr(other.describe())),
        };
        let pos = self.pos();
        self.fail(message, pos)
    }

    fn expect_op(&mut self, op: &'static str) -> Res<Token> {
        if self.is_op(op) { Ok(self.next()) } else { self.expected(op) }
    }

    fn expect_name(&mut self) -> Res<(Arc<str>, Pos)> {
        let pos = self.pos();
        if let Kind::Name(name) = self.kind() {
            let name = Arc::clone(name);
            self.next();
            return Ok((name, pos));
        }
        self.expected("name")
    }

    fn expect_keyword(&mut self, name: &str) -> Res<Token> {
        if self.is_name(name) { Ok(self.next()) } else { self.expected(name) }
    }

    fn expect_kind(&mut self, kind: &Kind) -> Res<()> {
        if self.kind() == kind {
            self.next();
            return Ok(());
        }
        self.expected(kind.describe())
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        self.nesting += 1;
        if self.nesting > self.max_nesting {
            return Err(self.too_deep());
        }
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    fn check_chain(&mut self, length: usize) -> Res<()> {
        if !self.deep_stack && length > MAX_CHAIN / 20 || length > MAX_CHAIN {
            return Err(self.too_deep());
        }
        Ok(())
    }

    fn too_deep(&mut self) -> Raise {
        if self.deep_stack {
            let pos = self.pos();
            Raise::recursion("maximum recursion depth exceeded during compilation").at_pos(pos)
        } else {
            Raise::new(super::error::NEEDS_STACK, "")
        }
    }
}
