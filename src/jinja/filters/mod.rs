//! Filters: Jinja2's own and kluctl's, as one table.

pub(super) mod attribute;
pub(super) mod html;
mod numeric;
mod pprint;
mod select;
mod sequence;
mod sort;
mod text;
mod urlize;
pub(super) mod wrap;

use super::args::{Function, Run, Signature, Words};
use super::kluctl::filters as kluctl;

pub(super) use sequence::collect as elements_of;

/// The filter with this name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    TABLE.iter().find(|(own, _)| *own == name).map(|(_, function)| function)
}

pub(crate) fn exists(name: &str) -> bool {
    find(name).is_some()
}

/// The names of all filters.
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

const fn plain(
    name: &'static str,
    params: &'static [&'static str],
    required: usize,
    run: Run,
) -> Function {
    let signature = Some(Signature::new(name, params, required));
    Function { name, is_type: false, signature, run }
}

const fn with_env(
    name: &'static str,
    params: &'static [&'static str],
    required: usize,
    run: Run,
) -> Function {
    let signature = Some(Signature::with_environment(name, params, required));
    Function { name, is_type: false, signature, run }
}

/// One of Python's built-in functions of one argument.
const fn builtin(name: &'static str, params: &'static [&'static str], run: Run) -> Function {
    let signature = Some(Signature::native(name, params, 1, Words::One));
    Function { name, is_type: false, signature, run }
}

const fn raw(name: &'static str, run: Run) -> Function {
    Function { name, is_type: false, signature: None, run }
}

static TABLE: &[(&str, Function)] = &[
    ("default", plain("do_default", &["value", "default_value", "boolean"], 1, select::default)),
    ("to_yaml", plain("to_yaml", &["obj"], 1, kluctl::to_yaml)),
    ("indent", plain("do_indent", &["s", "width", "first", "blank"], 1, text::indent)),
    ("length", builtin("len", &["obj"], sequence::length)),
    ("join", with_env("sync_do_join", &["value", "d", "attribute"], 1, sequence::join)),
    ("lower", plain("do_lower", &["s"], 1, text::lower)),
    ("upper", plain("do_upper", &["s"], 1, text::upper)),
    ("replace", with_env("do_replace", &["s", "old", "new", "count"], 3, text::replace)),
    ("int", plain("do_int", &["value", "default", "base"], 1, numeric::int)),
    ("string", plain("soft_str", &["s"], 1, text::string)),
    ("list", plain("sync_do_list", &["value"], 1, sequence::list)),
    ("map", raw("sync_do_map", select::map)),
    ("select", raw("sync_do_select", select::select)),
    ("reject", raw("sync_do_reject", select::reject)),
    ("selectattr", raw("sync_do_selectattr", select::selectattr)),
    ("rejectattr", raw("sync_do_rejectattr", select::rejectattr)),
    ("abs", builtin("abs", &["x"], numeric::abs)),
    ("attr", with_env("do_attr", &["obj", "name"], 2, attribute::attr)),
    ("batch", plain("do_batch", &["value", "linecount", "fill_with"], 2, sequence::batch)),
    ("capitalize", plain("do_capitalize", &["s"], 1, text::capitalize)),
    ("center", plain("do_center", &["value", "width"], 1, text::center)),
    ("count", builtin("len", &["obj"], sequence::length)),
    ("d", plain("do_default", &["value", "default_value", "boolean"], 1, select::default)),
    (
        "dictsort",
        plain("do_dictsort", &["value", "case_sensitive", "by", "reverse"], 1, sort::dictsort),
    ),
    ("e", plain("escape", &["s"], 1, html::escape)),
    ("escape", plain("escape", &["s"], 1, html::escape)),
    ("filesizeformat", plain("do_filesizeformat", &["value", "binary"], 1, numeric::filesize)),
    ("first", with_env("sync_do_first", &["seq"], 1, sequence::first)),
    ("float", plain("do_float", &["value", "default"], 1, numeric::float)),
    ("forceescape", plain("do_forceescape", &["value"], 1, html::forceescape)),
    ("format", raw("do_format", text::format)),
    (
        "groupby",
        with_env(
            "sync_do_groupby",
            &["value", "attribute", "default", "case_sensitive"],
            2,
            sort::groupby,
        ),
    ),
    ("items", plain("do_items", &["value"], 1, sequence::items)),
    ("last", with_env("do_last", &["seq"], 1, sequence::last)),
    ("max", with_env("do_max", &["value", "case_sensitive", "attribute"], 1, sort::max)),
    ("min", with_env("do_min", &["value", "case_sensitive", "attribute"], 1, sort::min)),
    ("pprint", plain("do_pprint", &["value"], 1, pprint::pprint)),
    ("random", with_env("do_random", &["seq"], 1, sequence::random)),
    ("reverse", plain("do_reverse", &["value"], 1, sequence::reverse)),
    ("round", plain("do_round", &["value", "precision", "method"], 1, numeric::round)),
    ("safe", plain("do_mark_safe", &["value"], 1, html::safe)),
    ("slice", plain("sync_do_slice", &["value", "slices", "fill_with"], 2, sequence::slice)),
    (
        "sort",
        with_env("do_sort", &["value", "reverse", "case_sensitive", "attribute"], 1, sort::sort),
    ),
    ("striptags", plain("do_striptags", &["value"], 1, html::striptags)),
    ("sum", with_env("sync_do_sum", &["iterable", "attribute", "start"], 1, sequence::sum)),
    ("title", plain("do_title", &["s"], 1, text::title)),
    ("tojson", with_env("do_tojson", &["value", "indent"], 1, html::tojson)),
    ("trim", plain("do_trim", &["value", "chars"], 1, text::trim)),
    (
        "truncate",
        with_env("do_truncate", &["s", "length", "killwords", "end", "leeway"], 1, text::truncate),
    ),
    (
        "unique",
        with_env("sync_do_unique", &["value", "case_sensitive", "attribute"], 1, sort::unique),
    ),
    ("urlencode", plain("do_urlencode", &["value"], 1, html::urlencode)),
    (
        "urlize",
        with_env(
            "do_urlize",
            &["value", "trim_url_limit", "nofollow", "target", "rel", "extra_schemes"],
            1,
            urlize::urlize,
        ),
    ),
    ("wordcount", plain("do_wordcount", &["s"], 1, text::wordcount)),
    (
        "wordwrap",
        with_env(
            "do_wordwrap",
            &["s", "width", "break_long_words", "wrapstring", "break_on_hyphens"],
            1,
            wrap::wordwrap,
        ),
    ),
    ("xmlattr", with_env("do_xmlattr", &["d", "autospace"], 1, html::xmlattr)),
    ("b64encode", plain("b64encode", &["string"], 1, kluctl::b64encode)),
    ("b64decode", plain("b64decode", &["string"], 1, kluctl::b64decode)),
    ("to_json", plain("to_json", &["obj"], 1, kluctl::to_json)),
    ("from_yaml", plain("from_yaml", &["s"], 1, kluctl::from_yaml)),
    ("render", with_env("render", &["string"], 1, kluctl::render)),
    ("sha256", plain("sha256", &["s", "digest_len"], 1, kluctl::sha256)),
    ("slugify", raw("slugify", kluctl::slugify)),
];
