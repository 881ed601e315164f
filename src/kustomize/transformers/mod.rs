//! The transformers of a kustomization, one file per field.

pub(crate) mod annotations;
pub(crate) mod images;
pub(crate) mod labels;
pub(crate) mod name_affix;
pub(crate) mod namespace;
pub(crate) mod replicas;
pub(crate) mod sort_options;

#[cfg(test)]
mod tests;
