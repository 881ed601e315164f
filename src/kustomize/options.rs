/// What a build does beyond what its kustomizations say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Order of the objects where the kustomization has no `sortOptions`.
    pub reorder: Reorder,
    /// Which files a kustomization may name.
    pub load_restrictor: LoadRestrictor,
    /// Whether files may be named by absolute paths, for a tree that is the whole file system.
    pub absolute_paths: bool,
    /// Whether all objects are labelled as managed by kustomize, even if the kustomization does not ask for it.
    pub managed_by_label: bool,
}

/// Order of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reorder {
    /// Order of accumulation.
    #[default]
    None,
    /// By kind, namespaces first and webhooks last; then by namespace and name.
    Legacy,
}

/// Which files a kustomization may name. Directories with kustomizations may be anywhere in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadRestrictor {
    /// All files of the tree.
    #[default]
    None,
    /// Those in or below the kustomization's own directory, links followed.
    RootOnly,
}
