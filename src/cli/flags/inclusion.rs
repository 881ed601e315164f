use crate::{
    deployment::Inclusion,
    diagnostic::{Class, Diagnostic},
};

/// Which part of the project is meant.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Inclusion/Exclusion arguments")]
pub(in crate::cli) struct InclusionFlags {
    /// Only items with one of these tags
    #[arg(long, short = 'I', value_name = "TAG")]
    pub(in crate::cli) include_tag: Vec<String>,

    /// No items with one of these tags; wins over inclusion
    #[arg(long, short = 'E', value_name = "TAG")]
    pub(in crate::cli) exclude_tag: Vec<String>,

    /// Only items in these directories, relative to the root of the project's source
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) include_deployment_dir: Vec<String>,

    /// No items in these directories; wins over inclusion
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) exclude_deployment_dir: Vec<String>,
}

impl InclusionFlags {
    /// The filters.
    pub(in crate::cli) fn inclusion(&self) -> Result<Inclusion, Diagnostic> {
        let dirs = [
            ("include-deployment-dir", &self.include_deployment_dir),
            ("exclude-deployment-dir", &self.exclude_deployment_dir),
        ];
        for (flag, dirs) in dirs {
            if let Some(dir) = dirs.iter().find(|dir| dir.starts_with('/')) {
                return Err(Diagnostic::new(Class::Project, format!("--{flag} {dir} is absolute"))
                    .with_expected("a path relative to the root of the project's source"));
            }
        }
        Ok(Inclusion {
            include_tags: self.include_tag.clone(),
            exclude_tags: self.exclude_tag.clone(),
            include_dirs: self.include_deployment_dir.clone(),
            exclude_dirs: self.exclude_deployment_dir.clone(),
        })
    }
}
