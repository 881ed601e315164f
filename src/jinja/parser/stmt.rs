//! Statements and the text between them.

use std::sync::Arc;

use super::Parser;
use super::analysis;
use super::expr::TupleMode;
use crate::jinja::ast::{
    Block, Expr, ExprKind, For, FromImport, Import, Include, Macro, Pos, Stmt, StmtKind, Target,
};
use crate::jinja::error::{Raise, Res};
use crate::jinja::lexer::Kind;
use crate::jinja::value::repr::str_repr;

type EndTags = &'static [&'static str];

impl Parser {
    /// Statements up to one of the end tags, which stays current; all of them without end tags.
    pub(super) fn subparse(&mut self, ends: EndTags) -> Res<Vec<Stmt>> {
        if !ends.is_empty() {
            self.end_stack.push(ends);
        }
        let result = self.nested(|parser| parser.parse_body(ends));
        if !ends.is_empty() {
            self.end_stack.pop();
        }
        result
    }

    fn parse_body(&mut self, ends: EndTags) -> Res<Vec<Stmt>> {
        let mut body = Vec::new();
        loop {
            let pos = self.pos();
            match self.kind() {
                Kind::Eof => return Ok(body),
                Kind::Broken => return self.fail("unexpected end of template", pos),
                Kind::Data(text) => {
                    let text = Arc::clone(text);
                    self.next();
                    body.push(Stmt { pos, kind: StmtKind::Data(text) });
                }
                Kind::VariableBegin => {
                    self.next();
                    let value = self.parse_tuple(TupleMode::default())?;
                    self.expect_kind(&Kind::VariableEnd)?;
                    body.push(Stmt { pos: value.pos, kind: StmtKind::Print(value) });
                }
                _ => {
                    self.next();
                    if let Kind::Name(name) = self.kind()
                        && ends.contains(&&**name)
                    {
                        return Ok(body);
                    }
                    self.parse_statement(&mut body)?;
                    self.expect_kind(&Kind::BlockEnd)?;
                }
            }
        }
    }

    fn parse_statement(&mut self, body: &mut Vec<Stmt>) -> Res<()> {
        let pos = self.pos();
        let Kind::Name(tag) = self.kind() else {
            return self.fail("tag name expected", pos);
        };
        let tag = Arc::clone(tag);
        self.tag_stack.push(Arc::clone(&tag));
        let kind = match &*tag {
            "for" => self.parse_for(pos),
            "if" => self.parse_if(),
            "block" => self.parse_block(pos),
            "extends" => self.tag_expression().map(StmtKind::Extends),
            "print" => return self.parse_print(body),
            "macro" => self.parse_macro(pos),
            "include" => self.parse_include(),
            "from" => self.parse_from(),
            "import" => self.parse_import(),
            "set" => self.parse_set(),
            "with" => self.parse_with(),
            "autoescape" => self.parse_autoescape(),
            "call" => self.parse_call_block(pos),
            "filter" => self.parse_filter_block(),
            "break" => {
                self.next();
                Ok(StmtKind::Break)
            }
            "continue" => {
                self.next();
                Ok(StmtKind::Continue)
            }
            _ => {
                self.tag_stack.pop();
                self.fail_unknown_tag(&tag, pos)
            }
        }?;
        self.tag_stack.pop();
        body.push(Stmt { pos, kind });
        Ok(())
    }

    fn fail_unknown_tag<T>(&mut self, name: &str, pos: Pos) -> Res<T> {
        let mut message = format!("Encountered unknown tag {}.", str_repr(name));
        let nested = self.end_stack.iter().any(|ends| ends.contains(&name));
        self.describe_ends(&mut message, self.end_stack.last().copied(), nested);
        self.fail(message, pos)
    }

    fn fail_eof<T>(&mut self, ends: EndTags) -> Res<T> {
        let mut message = "Unexpected end of template.".to_owned();
        self.describe_ends(&mut message, Some(ends), false);
        let pos = self.pos();
        self.fail(message, pos)
    }

    fn describe_ends(&self, message: &mut String, ends: Option<EndTags>, nested: bool) {
        if let Some(ends) = ends {
            let looking: Vec<String> = ends.iter().map(|end| str_repr(end)).collect();
            let looking = looking.join(" or ");
            let text = if nested {
                format!(
                    " You probably made a nesting mistake. Jinja is expecting this tag, but \
                     currently looking for {looking}."
                )
            } else {
                format!(" Jinja was looking for the following tags: {looking}.")
            };
            message.push_str(&text);
        }
        if let Some(tag) = self.tag_stack.last() {
            let tag = str_repr(tag);
            {
                let text = format!(" The innermost block that needs to be closed is {tag}.");
                message.push_str(&text);
            };
        }
    }

    /// The body of a statement, up to one of its end tags. The end tag's name is consumed and returned.
    fn parse_statements(&mut self, ends: EndTags) -> Res<(Vec<Stmt>, Arc<str>)> {
        self.skip_op(":");
        self.expect_kind(&Kind::BlockEnd)?;
        let body = self.subparse(ends)?;
        if *self.kind() == Kind::Eof {
            return self.fail_eof(ends);
        }
        let (end, _) = self.expect_name()?;
        Ok((body, end))
    }

    fn tag_expression(&mut self) -> Res<Expr> {
        self.next();
        self.parse_expression()
    }

    fn parse_print(&mut self, body: &mut Vec<Stmt>) -> Res<()> {
        self.next();
        let mut first = true;
        while *self.kind() != Kind::BlockEnd {
            if !first {
                self.expect_op(",")?;
            }
            first = false;
            let value = self.parse_expression()?;
            body.push(Stmt { pos: value.pos, kind: StmtKind::Print(value) });
        }
        self.tag_stack.pop();
        Ok(())
    }

    fn parse_set(&mut self) -> Res<StmtKind> {
        self.next();
        let target = self.parse_target(None, true)?;
        if self.skip_op("=") {
            return Ok(StmtKind::Set(target, self.parse_tuple(TupleMode::default())?));
        }
        let mut filter = None;
        while self.is_op("|") {
            filter = Some(self.parse_filter(filter)?);
        }
        let (body, _) = self.parse_statements(&["endset"])?;
        Ok(StmtKind::SetBlock(target, filter, body))
    }

    fn parse_for(&mut self, pos: Pos) -> Res<StmtKind> {
        self.expect_keyword("for")?;
        let target = self.parse_target(Some("in"), false)?;
        self.expect_keyword("in")?;
        let mode = TupleMode { no_condition: true, end: Some("recursive"), parenthesised: false };
        let iter = self.parse_tuple(mode)?;
        let test = if self.skip_name("if") { Some(self.parse_expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        let (body, end) = self.parse_statements(&["endfor", "else"])?;
        let else_body =
            if *end == *"endfor" { Vec::new() } else { self.parse_statements(&["endfor"])?.0 };
        let extended = recursive || analysis::uses_loop(&body);
        Ok(StmtKind::For(Arc::new(For {
            target,
            iter,
            test,
            recursive,
            extended,
            body,
            else_body,
            pos,
        })))
    }

    fn parse_if(&mut self) -> Res<StmtKind> {
        const ENDS: EndTags = &["elif", "else", "endif"];
        let mut branches = Vec::new();
        let mode = TupleMode { no_condition: true, ..TupleMode::default() };
        loop {
            self.next();
            let test = self.parse_tuple(mode)?;
            self.skip_op(":");
            self.expect_kind(&Kind::BlockEnd)?;
            let body = self.subparse(ENDS)?;
            branches.push((test, body));
            if *self.kind() == Kind::Eof {
                return self.fail_eof(ENDS);
            }
            if self.is_name("elif") {
                continue;
            }
            let (end, _) = self.expect_name()?;
            let else_body =
                if *end == *"else" { self.parse_statements(&["endif"])?.0 } else { Vec::new() };
            return Ok(StmtKind::If(branches, else_body));
        }
    }

    fn parse_with(&mut self) -> Res<StmtKind> {
        self.next();
        let mut assignments = Vec::new();
        while *self.kind() != Kind::BlockEnd {
            if !assignments.is_empty() {
                self.expect_op(",")?;
            }
            let target = self.parse_target(None, false)?;
            self.expect_op("=")?;
            assignments.push((target, self.parse_expression()?));
        }
        let (body, _) = self.parse_statements(&["endwith"])?;
        Ok(StmtKind::With(assignments, body))
    }

    fn parse_autoescape(&mut self) -> Res<StmtKind> {
        let value = self.tag_expression()?;
        let (body, _) = self.parse_statements(&["endautoescape"])?;
        Ok(StmtKind::Autoescape(value, body))
    }

    fn parse_block(&mut self, pos: Pos) -> Res<StmtKind> {
        self.next();
        let (name, _) = self.expect_name()?;
        let scoped = self.skip_name("scoped");
        let required = self.skip_name("required");
        if self.is_op("-") {
            let pos = self.pos();
            return self.fail(
                "Block names in Jinja have to be valid Python identifiers and may not contain \
                 hyphens, use an underscore instead.",
                pos,
            );
        }
        let (body, _) = self.parse_statements(&["endblock"])?;
        let is_blank = |stmt: &Stmt| match &stmt.kind {
            StmtKind::Data(text) => text.trim().is_empty(),
            _ => false,
        };
        if required && !body.iter().all(is_blank) {
            let pos = self.pos();
            return self.fail("Required blocks can only contain comments or whitespace", pos);
        }
        self.skip_name(&name);
        let block = Arc::new(Block { name, scoped, required, body, pos });
        self.blocks.push(Arc::clone(&block));
        Ok(StmtKind::Block(block))
    }

    /// `with context` or `without context`, when it is there.
    fn parse_context(&mut self) -> Option<bool> {
        let with = self.is_name("with");
        if (with || self.is_name("without")) && self.looks_at_name("context") {
            self.next();
            self.next();
            return Some(with);
        }
        None
    }

    fn parse_include(&mut self) -> Res<StmtKind> {
        let template = self.tag_expression()?;
        let ignore_missing = self.is_name("ignore") && self.looks_at_name("missing");
        if ignore_missing {
            self.next();
            self.next();
        }
        let with_context = self.parse_context().unwrap_or(true);
        Ok(StmtKind::Include(Box::new(Include { template, ignore_missing, with_context })))
    }

    fn parse_import(&mut self) -> Res<StmtKind> {
        let template = self.tag_expression()?;
        self.expect_keyword("as")?;
        let (target, _) = self.expect_name()?;
        let with_context = self.parse_context().unwrap_or(false);
        Ok(StmtKind::Import(Box::new(Import { template, target, with_context })))
    }

    fn parse_from(&mut self) -> Res<StmtKind> {
        let template = self.tag_expression()?;
        self.expect_keyword("import")?;
        let mut names = Vec::new();
        let with_context = loop {
            if !names.is_empty() {
                self.expect_op(",")?;
            }
            if let Some(with) = self.parse_context() {
                break with;
            }
            let (name, pos) = self.expect_name()?;
            if name.starts_with('_') {
                let message = "names starting with an underline can not be imported";
                return Err(Raise::new("TemplateAssertionError", message).at_pos(pos));
            }
            let alias =
                if self.skip_name("as") { self.expect_name()?.0 } else { Arc::clone(&name) };
            names.push((name, alias));
            match self.parse_context() {
                Some(with) => break with,
                None if !self.is_op(",") => break false,
                None => {}
            }
        };
        Ok(StmtKind::FromImport(Box::new(FromImport { template, names, with_context })))
    }

    fn parse_signature(&mut self) -> Res<(Vec<Arc<str>>, Vec<Expr>)> {
        let (mut params, mut defaults) = (Vec::new(), Vec::new());
        self.expect_op("(")?;
        while !self.is_op(")") {
            if !params.is_empty() {
                self.expect_op(",")?;
            }
            let pos = self.pos();
            let (name, _) = self.expect_name()?;
            if params.contains(&name) {
                let message = format!("duplicate argument '{name}' in function definition");
                return Err(Raise::new("SyntaxError", message).at_pos(pos));
            }
            if self.skip_op("=") {
                defaults.push(self.parse_expression()?);
            } else if !defaults.is_empty() {
                let pos = self.pos();
                return self.fail("non-default argument follows default argument", pos);
            }
            params.push(name);
        }
        self.expect_op(")")?;
        Ok((params, defaults))
    }

    fn make_macro(
        name: Option<Arc<str>>,
        (params, defaults): (Vec<Arc<str>>, Vec<Expr>),
        body: Vec<Stmt>,
        pos: Pos,
    ) -> Res<Arc<Macro>> {
        let has = |name: &str| params.iter().any(|param| **param == *name);
        let explicit_caller = params.iter().position(|param| **param == *"caller");
        let uses = analysis::special_names(&body);
        if let (true, Some(index)) = (uses.caller, explicit_caller)
            && index + defaults.len() < params.len()
        {
            let message = "When defining macros or call blocks the special \"caller\" argument must \
                           be omitted or be given a default.";
            return Err(Raise::new("TemplateAssertionError", message).at_pos(pos));
        }
        Ok(Arc::new(Macro {
            uses_caller: uses.caller,
            uses_kwargs: uses.kwargs && !has("kwargs"),
            uses_varargs: uses.varargs && !has("varargs"),
            name,
            params,
            defaults,
            body,
            pos,
        }))
    }

    fn parse_macro(&mut self, pos: Pos) -> Res<StmtKind> {
        self.next();
        let (name, _) = self.expect_name()?;
        let signature = self.parse_signature()?;
        let (body, _) = self.parse_statements(&["endmacro"])?;
        Ok(StmtKind::Macro(Self::make_macro(Some(name), signature, body, pos)?))
    }

    fn parse_call_block(&mut self, pos: Pos) -> Res<StmtKind> {
        self.next();
        let signature =
            if self.is_op("(") { self.parse_signature()? } else { (Vec::new(), Vec::new()) };
        let call = self.parse_expression()?;
        if !matches!(call.kind, ExprKind::Call(..)) {
            return self.fail("expected call", pos);
        }
        let (body, _) = self.parse_statements(&["endcall"])?;
        Ok(StmtKind::Call(Self::make_macro(None, signature, body, pos)?, call))
    }

    fn parse_filter_block(&mut self) -> Res<StmtKind> {
        self.next();
        let mut filter = self.parse_filter_name(None)?;
        while self.is_op("|") {
            filter = self.parse_filter(Some(filter))?;
        }
        let (body, _) = self.parse_statements(&["endfilter"])?;
        Ok(StmtKind::Filter(filter, body))
    }

    /// What can stand left of `=`: names, tuples of them, and with `namespaces` also `name.attribute`.
    fn parse_target(&mut self, end: Option<&'static str>, namespaces: bool) -> Res<Target> {
        let pos = self.pos();
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.is_tuple_end(end) {
                break;
            }
            items.push(self.nested(|parser| parser.parse_target_item(namespaces))?);
            if !self.is_op(",") {
                break;
            }
            is_tuple = true;
        }
        if is_tuple {
            return Ok(Target::Tuple(items));
        }
        if let Some(item) = items.pop() {
            Ok(item)
        } else {
            let got = str_repr(self.kind().describe());
            self.fail(format!("Expected an expression, got {got}"), pos)
        }
    }

    fn parse_target_item(&mut self, namespaces: bool) -> Res<Target> {
        if let Kind::Name(name) = self.kind().clone()
            && namespaces
            && *self.look() == Kind::Op(".")
            && !is_constant(&name)
        {
            self.next();
            self.next();
            let (attribute, _) = self.expect_name()?;
            return Ok(Target::Attribute(name, attribute));
        }
        let node = self.parse_primary()?;
        to_target(node)
            .or_else(|(kind, pos)| self.fail(format!("can't assign to {}", str_repr(kind)), pos))
    }
}

fn is_constant(name: &str) -> bool {
    matches!(name, "true" | "True" | "false" | "False" | "none" | "None")
}

fn to_target(node: Expr) -> Result<Target, (&'static str, Pos)> {
    let kind = match node.kind {
        ExprKind::Name(name) => return Ok(Target::Name(name)),
        ExprKind::Tuple(items) => {
            let items: Result<Vec<Target>, _> = items.into_iter().map(to_target).collect();
            return items.map(Target::Tuple).map_err(|_| ("tuple", node.pos));
        }
        ExprKind::Const(_) => "const",
        ExprKind::List(_) => "list",
        ExprKind::Dict(_) => "dict",
        ExprKind::Compare(..) => "compare",
        ExprKind::Call(..) => "call",
        ExprKind::Filter(..) => "filter",
        ExprKind::Attr(..) => "getattr",
        ExprKind::Item(..) => "getitem",
        _ => "expression",
    };
    Err((kind, node.pos))
}
