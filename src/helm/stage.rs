//! Charts on disk for the time that Helm reads them.

#![expect(clippy::disallowed_methods, reason = "this module owns the temporary directories")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::{ChartFiles, HelmError};

/// A temporary directory with an empty home and a chart. Both go with it.
pub(super) struct Stage {
    dir: TempDir,
}

impl Stage {
    /// An empty home below `parent`. Blocking.
    pub(super) fn empty(parent: &Path) -> Result<Self, HelmError> {
        let make = || {
            fs::create_dir_all(parent)?;
            let dir = tempfile::Builder::new().prefix("helm-").tempdir_in(parent)?;
            fs::create_dir(dir.path().join("home"))?;
            Ok(dir)
        };
        let dir = make().map_err(|error| failed(parent, &error))?;
        Ok(Self { dir })
    }

    /// An empty home and the chart. Blocking.
    pub(super) fn of(chart: &ChartFiles, parent: &Path) -> Result<Self, HelmError> {
        let stage = Self::empty(parent)?;
        stage.write(chart).map_err(|error| failed(&stage.chart(), &error))?;
        Ok(stage)
    }

    fn write(&self, chart: &ChartFiles) -> std::io::Result<()> {
        let root = self.chart();
        let mut made = BTreeSet::new();
        for (path, content) in chart.files.iter() {
            let file = root.join(path);
            if let Some(parent) = file.parent()
                && made.insert(parent.to_owned())
            {
                fs::create_dir_all(parent)?;
            }
            fs::write(&file, content)?;
        }
        Ok(())
    }

    pub(super) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The chart's directory.
    pub(super) fn chart(&self) -> PathBuf {
        self.dir.path().join("chart")
    }
}

fn failed(path: &Path, error: &std::io::Error) -> HelmError {
    HelmError::Program {
        program: "helm".to_owned(),
        message: format!("{} cannot be written: {error}", path.display()),
    }
}
