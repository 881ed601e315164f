//! Where names are looked up: scopes of loops, macros and blocks, the context of a template, and the variables of the
//! whole render.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::jinja::ast::{Block, Template};
use crate::jinja::error::Res;
use crate::jinja::globals;
use crate::jinja::value::frozen::FrozenMap;
use crate::jinja::value::object::BlockRef;
use crate::jinja::value::ops::deep_copy;
use crate::jinja::value::{Budget, Object, Value};

/// Variables by name, few enough for a linear search.
#[derive(Debug, Default, Clone)]
pub(crate) struct Names(Vec<(Arc<str>, Value)>);

impl Names {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(own, _)| **own == *name).map(|(_, value)| value)
    }

    pub(crate) fn set(&mut self, name: &Arc<str>, value: Value) {
        match self.0.iter_mut().find(|(own, _)| own == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((Arc::clone(name), value)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Arc<str>, Value)> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The variables every template of a render sees: kluctl's functions, the user's variables, Jinja's functions.
#[derive(Debug)]
pub(crate) struct Globals {
    vars: Arc<FrozenMap>,
    thawed: RefCell<HashMap<Arc<str>, Value>>,
}

impl Globals {
    pub(crate) fn new(vars: Arc<FrozenMap>) -> Rc<Self> {
        Rc::new(Self { vars, thawed: RefCell::new(HashMap::new()) })
    }

    fn get(&self, name: &Arc<str>) -> Option<Value> {
        if let Some(value) = self.thawed.borrow().get(name) {
            return Some(value.clone());
        }
        let value = globals::kluctl(name)
            .or_else(|| self.vars.get(name).map(crate::jinja::value::Frozen::thaw))
            .or_else(|| globals::builtin(name))?;
        self.thawed.borrow_mut().insert(Arc::clone(name), value.clone());
        Some(value)
    }

    fn names(&self, out: &mut Vec<Arc<str>>) {
        let builtin = globals::BUILTIN_NAMES.iter().map(|name| Arc::from(*name));
        let user = self.vars.entries.iter().map(|(name, _)| Arc::clone(name));
        let kluctl = globals::KLUCTL_NAMES.iter().map(|name| Arc::from(*name));
        for name in builtin.chain(user).chain(kluctl) {
            if !out.contains(&name) {
                out.push(name);
            }
        }
    }

    /// A deep copy of what was touched; everything else is as it came.
    fn copy(&self, budget: &Budget) -> Res<Rc<Self>> {
        let mut thawed = HashMap::new();
        for (name, value) in self.thawed.borrow().iter() {
            thawed.insert(Arc::clone(name), deep_copy(value, budget, 0)?);
        }
        Ok(Rc::new(Self { vars: Arc::clone(&self.vars), thawed: RefCell::new(thawed) }))
    }
}

/// An immutable set of variables on top of others.
#[derive(Debug)]
pub(crate) enum Layer {
    Globals(Rc<Globals>),
    Names(Names, Rc<Layer>),
}

impl Layer {
    pub(crate) fn get(&self, name: &Arc<str>) -> Option<Value> {
        let mut layer = self;
        loop {
            match layer {
                Layer::Globals(globals) => return globals.get(name),
                Layer::Names(names, below) => match names.get(name) {
                    Some(value) => return Some(value.clone()),
                    None => layer = below,
                },
            }
        }
    }

    /// All names, lowest layer first.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        let mut out = Vec::new();
        self.collect_names(&mut out);
        out
    }

    fn collect_names(&self, out: &mut Vec<Arc<str>>) {
        match self {
            Layer::Globals(globals) => globals.names(out),
            Layer::Names(names, below) => {
                below.collect_names(out);
                for (name, _) in names.iter() {
                    if !out.contains(name) {
                        out.push(Arc::clone(name));
                    }
                }
            }
        }
    }

    /// The globals alone, as imports without context see them.
    pub(crate) fn globals(self: &Rc<Self>) -> Rc<Layer> {
        let mut layer = self;
        while let Layer::Names(_, below) = &**layer {
            layer = below;
        }
        Rc::clone(layer)
    }

    pub(crate) fn copy(&self, budget: &Budget) -> Res<Rc<Layer>> {
        Ok(Rc::new(match self {
            Layer::Globals(globals) => Layer::Globals(globals.copy(budget)?),
            Layer::Names(names, below) => {
                let mut copied = Names::default();
                for (name, value) in names.iter() {
                    copied.set(name, deep_copy(value, budget, 0)?);
                }
                Layer::Names(copied, below.copy(budget)?)
            }
        }))
    }
}

/// A block and the template it comes from.
#[derive(Debug, Clone)]
pub(crate) struct BlockBody {
    pub(crate) template: Arc<Template>,
    pub(crate) block: Arc<Block>,
}

/// What a running template knows: variables from outside, its own top-level variables, and its blocks.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) template: Arc<Template>,
    pub(crate) parent: Rc<Layer>,
    pub(crate) vars: RefCell<Names>,
    pub(crate) exported: RefCell<Vec<Arc<str>>>,
    pub(crate) blocks: RefCell<HashMap<Arc<str>, Rc<Vec<BlockBody>>>>,
    pub(crate) autoescape: Cell<bool>,
}

impl Context {
    pub(crate) fn new(template: &Arc<Template>, parent: Rc<Layer>) -> Rc<Self> {
        let body = |block: &Arc<Block>| {
            let body = BlockBody { template: Arc::clone(template), block: Arc::clone(block) };
            (Arc::clone(&block.name), Rc::new(vec![body]))
        };
        Rc::new(Self {
            template: Arc::clone(template),
            parent,
            vars: RefCell::default(),
            exported: RefCell::default(),
            blocks: RefCell::new(template.code.blocks.iter().map(body).collect()),
            autoescape: Cell::new(false),
        })
    }

    pub(crate) fn resolve(&self, name: &Arc<str>) -> Option<Value> {
        if let Some(value) = self.vars.borrow().get(name) {
            return Some(value.clone());
        }
        self.parent.get(name)
    }

    /// Everything this context sees, plus `locals` on top, frozen as it is now.
    pub(crate) fn snapshot(&self, locals: Names) -> Rc<Layer> {
        let vars = self.vars.borrow();
        let mut layer = Rc::clone(&self.parent);
        if !vars.is_empty() {
            layer = Rc::new(Layer::Names(vars.clone(), layer));
        }
        if !locals.is_empty() {
            layer = Rc::new(Layer::Names(locals, layer));
        }
        layer
    }

    /// An independent context of the same template, for scoped blocks.
    pub(crate) fn derived(&self, locals: Names) -> Rc<Self> {
        Rc::new(Self {
            template: Arc::clone(&self.template),
            parent: self.snapshot(locals),
            vars: RefCell::default(),
            exported: RefCell::default(),
            blocks: RefCell::new(self.blocks.borrow().clone()),
            autoescape: Cell::new(self.autoescape.get()),
        })
    }

    /// The block `name`, `depth` levels above the most specific one.
    pub(crate) fn block_ref(self: &Rc<Self>, name: &str, depth: usize) -> Option<Value> {
        let blocks = self.blocks.borrow();
        let (name, stack) = blocks.get_key_value(name)?;
        if depth >= stack.len() {
            return None;
        }
        Some(Value::object(Object::Block(BlockRef {
            name: Arc::clone(name),
            ctx: Rc::clone(self),
            stack: Rc::clone(stack),
            depth,
        })))
    }
}

/// What a scope is the scope of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    Root,
    /// Name of the block and which of its definitions runs.
    Block(Arc<str>, usize),
    Loop,
    Other,
}

/// Local variables.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) kind: ScopeKind,
    pub(crate) ctx: Rc<Context>,
    pub(crate) template: Arc<Template>,
    pub(crate) parent: Option<Rc<Scope>>,
    vars: RefCell<Names>,
    /// Names set by statements of a loop or block body, which functions that take the context see, too.
    sets: RefCell<Vec<Arc<str>>>,
    /// Set when an `extends` ran: text outside of blocks is dropped from then on. None: never dropped.
    pub(crate) extended: Option<Rc<Cell<bool>>>,
}

impl Scope {
    pub(crate) fn root(ctx: &Rc<Context>, template: &Arc<Template>) -> Rc<Self> {
        let extended = Some(Rc::new(Cell::new(false)));
        Self::base(ScopeKind::Root, ctx, template, extended)
    }

    pub(crate) fn block(ctx: &Rc<Context>, body: &BlockBody, depth: usize) -> Rc<Self> {
        let kind = ScopeKind::Block(Arc::clone(&body.block.name), depth);
        Self::base(kind, ctx, &body.template, None)
    }

    fn base(
        kind: ScopeKind,
        ctx: &Rc<Context>,
        template: &Arc<Template>,
        extended: Option<Rc<Cell<bool>>>,
    ) -> Rc<Self> {
        Rc::new(Self {
            kind,
            ctx: Rc::clone(ctx),
            template: Arc::clone(template),
            parent: None,
            vars: RefCell::default(),
            sets: RefCell::default(),
            extended,
        })
    }

    pub(crate) fn inner(self: &Rc<Self>, kind: ScopeKind) -> Rc<Self> {
        Rc::new(Self {
            kind,
            ctx: Rc::clone(&self.ctx),
            template: Arc::clone(&self.template),
            parent: Some(Rc::clone(self)),
            vars: RefCell::default(),
            sets: RefCell::default(),
            extended: self.extended.clone(),
        })
    }

    /// A scope whose text is kept whatever the template extends: macros and captured blocks.
    pub(crate) fn captured(self: &Rc<Self>) -> Rc<Self> {
        Rc::new(Self {
            kind: ScopeKind::Other,
            ctx: Rc::clone(&self.ctx),
            template: Arc::clone(&self.template),
            parent: Some(Rc::clone(self)),
            vars: RefCell::default(),
            sets: RefCell::default(),
            extended: None,
        })
    }

    /// True when text is dropped because the template extends another one.
    pub(crate) fn is_silent(&self) -> bool {
        self.extended.as_ref().is_some_and(|extended| extended.get())
    }

    pub(crate) fn clear(&self) {
        let _old = self.vars.take();
        self.sets.borrow_mut().clear();
    }

    pub(crate) fn lookup(&self, name: &Arc<str>) -> Option<Value> {
        let mut scope = self;
        loop {
            if let Some(value) = scope.vars.borrow().get(name) {
                return Some(value.clone());
            }
            match &scope.parent {
                Some(parent) => scope = parent,
                None => return scope.lookup_base(name),
            }
        }
    }

    fn lookup_base(&self, name: &Arc<str>) -> Option<Value> {
        match (&**name, &self.kind) {
            ("self", _) if self.ctx.vars.borrow().get(name).is_none() => {
                Some(Value::object(Object::SelfRef(Rc::clone(&self.ctx))))
            }
            ("super", ScopeKind::Block(block, depth)) => {
                Some(self.ctx.block_ref(block, depth + 1).unwrap_or_else(|| {
                    let block = crate::jinja::value::repr::str_repr(block);
                    Value::undefined_hint(format!("there is no parent block called {block}."))
                }))
            }
            _ => self.ctx.resolve(name),
        }
    }

    /// Binds a name in this scope only: loop targets, parameters.
    pub(crate) fn bind(&self, name: &Arc<str>, value: Value) {
        self.vars.borrow_mut().set(name, value);
    }

    /// What `{% set %}` does.
    pub(crate) fn assign(&self, name: &Arc<str>, value: Value) {
        match self.kind {
            ScopeKind::Root => {
                self.ctx.vars.borrow_mut().set(name, value);
                self.export(name);
            }
            ScopeKind::Loop | ScopeKind::Block(..) => {
                self.bind(name, value);
                let mut sets = self.sets.borrow_mut();
                if !sets.contains(name) {
                    sets.push(Arc::clone(name));
                }
            }
            ScopeKind::Other => self.bind(name, value),
        }
    }

    /// What `{% macro %}` and imports do: the name is not visible to functions that take the context.
    pub(crate) fn define(&self, name: &Arc<str>, value: Value, exported: bool) {
        if self.kind != ScopeKind::Root {
            return self.bind(name, value);
        }
        self.ctx.vars.borrow_mut().set(name, value);
        if exported {
            self.export(name);
        } else {
            self.ctx.exported.borrow_mut().retain(|own| own != name);
        }
    }

    fn export(&self, name: &Arc<str>) {
        let mut exported = self.ctx.exported.borrow_mut();
        if !name.starts_with('_') && !exported.contains(name) {
            exported.push(Arc::clone(name));
        }
    }

    /// All local variables, as an included template gets them.
    pub(crate) fn locals(&self) -> Names {
        let mut out = Names::default();
        let mut scope = Some(self);
        while let Some(current) = scope {
            for (name, value) in current.vars.borrow().iter() {
                if out.get(name).is_none() {
                    out.set(name, value.clone());
                }
            }
            scope = current.parent.as_deref();
        }
        out
    }

    /// All names that are defined here, innermost first.
    pub(crate) fn known_names(&self) -> Vec<Arc<str>> {
        let mut names = self.ctx.snapshot(self.locals()).names();
        names.retain(|name| !name.starts_with('_'));
        names.reverse();
        names
    }

    /// Everything a function that takes the context sees: no loop targets, but what a loop or block body has set.
    pub(crate) fn visible_to_functions(&self) -> Rc<Layer> {
        let mut locals = Names::default();
        for name in self.sets.borrow().iter() {
            if let Some(value) = self.vars.borrow().get(name) {
                locals.set(name, value.clone());
            }
        }
        self.ctx.snapshot(locals)
    }
}
