//! Charts that were fetched before.

#![expect(clippy::disallowed_methods, reason = "this module owns the directories of its cache")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{Access, PullError, PulledChart};
use crate::{
    helm::{ChartFiles, Origin},
    tree::DiskTree,
};

/// Charts on disk, by origin, version and whose credentials they were fetched with. Published versions do not change, or
/// should not; after some time a chart is fetched anew nevertheless.
#[derive(Debug, Clone)]
pub struct ChartCache {
    /// Its directory.
    pub dir: PathBuf,
    /// How long a chart is taken for what its origin has.
    pub max_age: Duration,
    /// How many charts are kept.
    pub max_charts: usize,
}

impl ChartCache {
    /// A day, and 100 charts.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, max_age: Duration::from_hours(24), max_charts: 100 }
    }

    /// The name of a chart's directory.
    pub(super) fn key(origin: &Origin, version: &str, access: &Access) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        add(origin.to_string().as_bytes());
        add(version.as_bytes());
        let secrets = [&access.password, &access.token, &access.identity_token];
        add(access.user.as_deref().unwrap_or_default().as_bytes());
        for secret in secrets {
            add(secret.as_ref().map(|s| s.reveal().as_bytes()).unwrap_or_default());
        }
        if let Some(identity) = &access.identity {
            add(&identity.certificate);
            add(identity.key.reveal());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// A chart that was fetched not too long before `now`. Blocking.
    pub(super) fn get(&self, key: &str, now: SystemTime) -> Option<ChartFiles> {
        let dir = self.dir.join(key);
        let fetched = fs::metadata(&dir).ok()?.modified().ok()?;
        let is_fresh = now.duration_since(fetched).is_ok_and(|age| age <= self.max_age);
        if !is_fresh {
            return None;
        }
        ChartFiles::read(&DiskTree::new(&dir).ok()?, "").ok()
    }

    /// Keeps a chart; what was fetched first goes when there are too many. Blocking.
    ///
    /// # Errors
    /// When the chart cannot be read. A disk that is full only costs time later.
    pub(super) fn put(&self, key: &str, chart: &PulledChart) -> Result<ChartFiles, PullError> {
        let files = ChartFiles::read(&chart.tree()?, "")?;
        let dir = self.dir.join(key);
        let kept = fs::create_dir_all(&self.dir).and_then(|()| {
            let _former = fs::remove_dir_all(&dir);
            fs::rename(chart.path(), &dir)?;
            // A directory that is moved keeps its time.
            let now = tempfile::tempfile_in(&self.dir)?.metadata()?.modified()?;
            fs::File::open(&dir)?.set_modified(now)
        });
        if kept.is_ok() {
            self.tidy(&dir);
        }
        Ok(files)
    }

    fn tidy(&self, newest: &Path) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        let mut charts: Vec<_> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path != newest && path.join("Chart.yaml").is_file())
            .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
            .collect();
        charts.sort();
        let surplus = (charts.len() + 1).saturating_sub(self.max_charts.max(1));
        for (_, path) in charts.into_iter().take(surplus) {
            let _removed = fs::remove_dir_all(path);
        }
    }
}
