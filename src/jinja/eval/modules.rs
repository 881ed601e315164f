//! Templates that use other templates: include, import, extends and blocks.

use std::rc::Rc;
use std::sync::Arc;

use super::Interp;
use super::scope::{BlockBody, Context, Layer, Names, Scope, ScopeKind};
use crate::jinja::ast::{Block, FromImport, Import, Include, Pos, Template};
use crate::jinja::error::{Raise, Res};
use crate::jinja::value::iter::Walk;
use crate::jinja::value::object::{BlockRef, Module};
use crate::jinja::value::repr::{str_repr, to_str};
use crate::jinja::value::{Object, Value};

impl Interp<'_> {
    /// Runs a template's root and, when it extends another one, that one's with the same context.
    pub(super) fn run_root(
        &mut self,
        template: &Arc<Template>,
        ctx: &Rc<Context>,
        out: &mut String,
    ) -> Res<()> {
        let start = Pos { line: 1, column: 0 };
        let mut template = Arc::clone(template);
        let mut extended = Vec::new();
        while extended.len() < MAX_EXTENDS {
            let scope = Scope::root(ctx, &template);
            let result = self.nested(|it| it.exec(&scope, &template.code.body, out));
            Self::leave(result, &template, start)?;
            let name: Arc<str> = PARENT.into();
            match ctx.vars.borrow().get(&name) {
                Some(Value::Object(object)) if scope.is_silent() => match &**object {
                    Object::Module(module) => {
                        extended
                            .push(std::mem::replace(&mut template, Arc::clone(&module.template)));
                    }
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
        let message = "maximum recursion depth exceeded; look for a template that extends itself";
        let error = extended.iter().rev().fold(Raise::recursion(message), |error, template| {
            error.in_template(&template.name, &template.code.source, start)
        });
        Err(error)
    }

    pub(super) fn exec_extends(
        &mut self,
        scope: &Rc<Scope>,
        parent: &crate::jinja::ast::Expr,
    ) -> Res<()> {
        if scope.is_silent() {
            return Err(Raise::runtime("extended multiple times"));
        }
        let name = self.eval(scope, parent)?;
        let template = self.template_of(scope, &name)?;
        {
            let mut blocks = scope.ctx.blocks.borrow_mut();
            for block in &template.code.blocks {
                let body = BlockBody { template: Arc::clone(&template), block: Arc::clone(block) };
                let stack = blocks.entry(Arc::clone(&block.name)).or_default();
                Rc::make_mut(stack).push(body);
            }
        }
        let marker = Module { template, text: "".into(), exported: Vec::new() };
        let marker = Value::Object(Self::module_value(marker));
        scope.ctx.vars.borrow_mut().set(&PARENT.into(), marker);
        if let Some(extended) = &scope.extended {
            extended.set(true);
        }
        Ok(())
    }

    pub(super) fn exec_block(
        &mut self,
        scope: &Rc<Scope>,
        block: &Arc<Block>,
        out: &mut String,
    ) -> Res<()> {
        if scope.kind == ScopeKind::Root && scope.is_silent() {
            return Ok(());
        }
        let stack = scope.ctx.blocks.borrow().get(&block.name).cloned().unwrap_or_default();
        if block.required && stack.len() <= 1 {
            let name = str_repr(&block.name);
            return Err(Raise::runtime(format!("Required block {name} not found")));
        }
        let ctx = if block.scoped {
            let derived = scope.ctx.derived(scope.locals());
            self.contexts.push(Rc::clone(&derived));
            derived
        } else {
            Rc::clone(&scope.ctx)
        };
        let Some(body) = stack.first() else { return Ok(()) };
        self.run_block(&ctx, body, 0, out)
    }

    fn run_block(
        &mut self,
        ctx: &Rc<Context>,
        body: &BlockBody,
        depth: usize,
        out: &mut String,
    ) -> Res<()> {
        let scope = Scope::block(ctx, body, depth);
        let result = self.nested(|it| it.exec(&scope, &body.block.body, out));
        Self::leave(result, &body.template, body.block.pos).map(|_| ())
    }

    /// `super()` and `self.name()`.
    pub(super) fn call_block(&mut self, block: &BlockRef) -> Res<String> {
        let mut out = String::new();
        if let Some(body) = block.stack.get(block.depth) {
            self.run_block(&block.ctx, body, block.depth, &mut out)?;
        }
        Ok(out)
    }

    /// The template a name stands for, as seen from the running template.
    pub(crate) fn template_named(
        &mut self,
        name: &str,
        parent: Option<&str>,
    ) -> Res<Arc<Template>> {
        let resolved = self
            .env
            .loader()
            .resolve(name, parent)
            .map_err(|message| Raise::new("TemplateLoadError", message))?;
        match resolved {
            Some(id) => self.env.load(&id, self.has_deep_stack()),
            None => Err(Raise::new("TemplateNotFound", format!("template {name} not found"))),
        }
    }

    fn template_of(&mut self, scope: &Scope, name: &Value) -> Res<Arc<Template>> {
        name.require()?;
        let Some(text) = name.as_str() else {
            return Err(Raise::type_error(format!(
                "a template name must be a string, not '{}'",
                name.type_name()
            )));
        };
        let parent = scope.template.id.clone();
        self.template_named(text, parent.as_deref())
    }

    /// One name, or the first of several that exists.
    fn select_template(&mut self, scope: &Scope, names: &Value) -> Res<Arc<Template>> {
        if names.as_str().is_some() || names.is_undefined() {
            return self.template_of(scope, names);
        }
        if !names.is_true()? {
            let message = "Tried to select from an empty list of templates.";
            return Err(Raise::new("TemplatesNotFound", message));
        }
        let mut walk = Walk::new(names)?;
        let mut tried = Vec::new();
        while let Some(name) = walk.next()? {
            match self.template_of(scope, &name) {
                Err(error) if is_missing(&error) => tried.push(name),
                other => return other,
            }
        }
        let mut parts = Vec::new();
        for name in &tried {
            parts.push(match name {
                Value::Undefined(undefined) => undefined.message(),
                other => to_str(other, &self.budget)?.to_string(),
            });
        }
        let message = format!("none of the templates given were found: {}", parts.join(", "));
        Err(Raise::new("TemplatesNotFound", message))
    }

    pub(super) fn exec_include(
        &mut self,
        scope: &Rc<Scope>,
        node: &Include,
        out: &mut String,
    ) -> Res<()> {
        let name = self.eval(scope, &node.template)?;
        let template = match self.select_template(scope, &name) {
            Err(error) if node.ignore_missing && is_not_found(&error) => return Ok(()),
            other => other.map_err(|error| error.at_pos(node.template.pos))?,
        };
        if node.with_context {
            let ctx = self.context(&template, scope.ctx.snapshot(scope.locals()));
            ctx.autoescape.set(scope.ctx.autoescape.get());
            return self.run_root(&template, &ctx, out);
        }
        let module = self.default_module(scope, &template)?;
        if let Object::Module(module) = &*module {
            let text = Arc::clone(&module.text);
            self.write(out, &text)?;
        }
        Ok(())
    }

    /// The module of a template run without context: once per render.
    fn default_module(&mut self, scope: &Rc<Scope>, template: &Arc<Template>) -> Res<Rc<Object>> {
        if let Some(id) = &template.id
            && let Some(module) = self.modules.get(id)
        {
            return Ok(Rc::clone(module));
        }
        let module = self.make_module(template, scope.ctx.parent.globals())?;
        if let Some(id) = &template.id {
            self.modules.insert(Arc::clone(id), Rc::clone(&module));
        }
        Ok(module)
    }

    fn make_module(&mut self, template: &Arc<Template>, layer: Rc<Layer>) -> Res<Rc<Object>> {
        let ctx = self.context(template, layer);
        let mut text = String::new();
        self.run_root(template, &ctx, &mut text)?;
        let vars = ctx.vars.borrow();
        let exported = ctx.exported.borrow();
        let exported = exported
            .iter()
            .filter_map(|name| Some((Arc::clone(name), vars.get(name)?.clone())))
            .collect();
        let module = Module { template: Arc::clone(template), text: text.into(), exported };
        Ok(Self::module_value(module))
    }

    fn imported(
        &mut self,
        scope: &Rc<Scope>,
        name: &crate::jinja::ast::Expr,
        with_context: bool,
    ) -> Res<Rc<Object>> {
        let value = self.eval(scope, name)?;
        let template = self.template_of(scope, &value).map_err(|error| error.at_pos(name.pos))?;
        if with_context {
            let layer = scope.ctx.snapshot(scope.locals());
            return self.make_module(&template, layer);
        }
        self.default_module(scope, &template)
    }

    pub(super) fn exec_import(&mut self, scope: &Rc<Scope>, node: &Import) -> Res<()> {
        let module = self.imported(scope, &node.template, node.with_context)?;
        scope.define(&node.target, Value::Object(module), false);
        Ok(())
    }

    pub(super) fn exec_from_import(
        &mut self,
        scope: &Rc<Scope>,
        node: &FromImport,
        pos: Pos,
    ) -> Res<()> {
        let object = self.imported(scope, &node.template, node.with_context)?;
        let Object::Module(module) = &*object else { return Ok(()) };
        for (name, alias) in &node.names {
            let value = module.get(name).cloned().unwrap_or_else(|| {
                let (line, own) = (pos.line, &scope.template);
                let place = match own.id {
                    Some(_) => format!("line {line} in {}", str_repr(&own.name)),
                    None => format!("line {line}"),
                };
                Value::undefined_hint(format!(
                    "the template {} (imported on {place}) does not export the requested name {}",
                    str_repr(&module.template.name),
                    str_repr(name)
                ))
            });
            scope.define(alias, value, false);
        }
        Ok(())
    }

    /// Renders another template with everything a function sees, plus `extra`.
    pub(crate) fn render_with(
        &mut self,
        template: &Arc<Template>,
        layer: Rc<Layer>,
        extra: Names,
    ) -> Res<String> {
        let layer = if extra.is_empty() { layer } else { Rc::new(Layer::Names(extra, layer)) };
        self.nested(|it| it.render(template, &layer))
    }
}

/// How many templates may extend one another in a row.
const MAX_EXTENDS: usize = 200;

/// Where the context keeps the template that it extends; no template can name it.
const PARENT: &str = "\0parent";

fn is_not_found(error: &Raise) -> bool {
    matches!(error.kind(), "TemplateNotFound" | "TemplatesNotFound")
}

fn is_missing(error: &Raise) -> bool {
    is_not_found(error) || error.kind() == "UndefinedError"
}
