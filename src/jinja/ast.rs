//! The syntax tree of a template: what the parser makes and the evaluator walks. Shared between threads.

use std::sync::Arc;

use num_bigint::BigInt;

/// Place in a template, both parts from 1. Column 0: only the line is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pos {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A compiled text with its name.
#[derive(Debug)]
pub(crate) struct Template {
    /// Name for messages.
    pub(crate) name: Arc<str>,
    /// The loader's id, which relative names are resolved against; none for templates made from strings.
    pub(crate) id: Option<Arc<str>>,
    pub(crate) code: Arc<Code>,
}

/// What a text compiles to, whatever it is called.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) source: Arc<str>,
    pub(crate) body: Vec<Stmt>,
    /// All blocks wherever they stand, in order of appearance.
    pub(crate) blocks: Vec<Arc<Block>>,
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) name: Arc<str>,
    pub(crate) scoped: bool,
    pub(crate) required: bool,
    pub(crate) body: Vec<Stmt>,
    pub(crate) pos: Pos,
}

#[derive(Debug)]
pub(crate) struct Stmt {
    pub(crate) pos: Pos,
    pub(crate) kind: StmtKind,
}

#[derive(Debug)]
pub(crate) enum StmtKind {
    Data(Arc<str>),
    Print(Expr),
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    For(Arc<For>),
    Set(Target, Expr),
    SetBlock(Target, Option<Expr>, Vec<Stmt>),
    With(Vec<(Target, Expr)>, Vec<Stmt>),
    Macro(Arc<Macro>),
    Call(Arc<Macro>, Expr),
    Filter(Expr, Vec<Stmt>),
    Block(Arc<Block>),
    Extends(Expr),
    Include(Box<Include>),
    Import(Box<Import>),
    FromImport(Box<FromImport>),
    Autoescape(Expr, Vec<Stmt>),
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct For {
    pub(crate) target: Target,
    pub(crate) iter: Expr,
    pub(crate) test: Option<Expr>,
    pub(crate) recursive: bool,
    /// The body mentions `loop`, so that a loop object is made.
    pub(crate) extended: bool,
    pub(crate) body: Vec<Stmt>,
    pub(crate) else_body: Vec<Stmt>,
    pub(crate) pos: Pos,
}

/// A macro, or the body of a call block (then without a name).
#[derive(Debug)]
pub(crate) struct Macro {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) params: Vec<Arc<str>>,
    /// Default values of the last parameters.
    pub(crate) defaults: Vec<Expr>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) uses_caller: bool,
    pub(crate) uses_kwargs: bool,
    pub(crate) uses_varargs: bool,
    pub(crate) pos: Pos,
}

#[derive(Debug)]
pub(crate) struct Include {
    pub(crate) template: Expr,
    pub(crate) ignore_missing: bool,
    pub(crate) with_context: bool,
}

#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) template: Expr,
    pub(crate) target: Arc<str>,
    pub(crate) with_context: bool,
}

#[derive(Debug)]
pub(crate) struct FromImport {
    pub(crate) template: Expr,
    pub(crate) names: Vec<(Arc<str>, Arc<str>)>,
    pub(crate) with_context: bool,
}

/// Left side of an assignment.
#[derive(Debug)]
pub(crate) enum Target {
    Name(Arc<str>),
    Attribute(Arc<str>, Arc<str>),
    Tuple(Vec<Target>),
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) pos: Pos,
    pub(crate) kind: ExprKind,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Const(Const),
    Name(Arc<str>),
    Concat(Vec<Expr>),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<(Expr, Expr)>),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    Compare(Box<Expr>, Vec<(CompareOp, Expr)>),
    /// value, condition, else
    Cond(Box<(Expr, Expr)>, Option<Box<Expr>>),
    Attr(Box<Expr>, Arc<str>),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<SliceExpr>),
    Call(Box<Expr>, Box<CallArgs>),
    Filter(Option<Box<Expr>>, Arc<str>, Box<CallArgs>),
    Test(Box<Expr>, Arc<str>, Box<CallArgs>),
}

#[derive(Debug)]
pub(crate) struct SliceExpr {
    /// The sliced value; none for a slice inside a tuple subscript.
    pub(crate) value: Option<Expr>,
    pub(crate) start: Option<Expr>,
    pub(crate) stop: Option<Expr>,
    pub(crate) step: Option<Expr>,
}

#[derive(Debug, Default)]
pub(crate) struct CallArgs {
    pub(crate) args: Vec<Expr>,
    pub(crate) kwargs: Vec<(Arc<str>, Expr)>,
    pub(crate) star: Option<Expr>,
    pub(crate) star_star: Option<Expr>,
}

#[derive(Debug, Clone)]
pub(crate) enum Const {
    None,
    Bool(bool),
    Int(i64),
    Big(BigInt),
    Float(f64),
    Str(Arc<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Not,
    Neg,
    Pos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}
