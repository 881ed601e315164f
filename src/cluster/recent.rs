use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sha2::{Digest, Sha256};

use super::{connect::ServiceAccount, kubeconfig::Access};

/// What tells accesses to clusters apart, without holding their secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AccessKey([u8; 32]);

impl AccessKey {
    /// The key of an access as `account`; `None` when nothing made from it must be kept, because credentials from a plugin end
    /// at a time that only the plugin knows.
    pub(crate) fn new(access: &Access, account: Option<&ServiceAccount>) -> Option<Self> {
        let mut hasher = Sha256::new();
        if let Access::Kubeconfig { config, .. } = access {
            let users = config.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
            if users.into_iter().any(|user| user.exec.is_some()) {
                return None;
            }
            hasher.update(serde_json::to_vec(&**config).ok()?);
        }
        hasher.update([0]);
        hasher.update(account.map(ToString::to_string).unwrap_or_default());
        Some(Self(hasher.finalize().into()))
    }
}

/// Keeps what was made for the accesses that were used last.
pub(crate) struct Recent<T> {
    limit: usize,
    kept: Mutex<Kept<T>>,
}

struct Kept<T> {
    values: HashMap<AccessKey, (T, u64)>,
    uses: u64,
}

impl<T: Clone> Recent<T> {
    /// Keeps `limit` values, at least one.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), kept: Mutex::new(Kept { values: HashMap::new(), uses: 0 }) }
    }

    /// The value for an access, which counts as used.
    pub(crate) fn get(&self, key: AccessKey) -> Option<T> {
        let mut kept = self.kept();
        kept.uses += 1;
        let uses = kept.uses;
        let (value, used) = kept.values.get_mut(&key)?;
        *used = uses;
        Some(value.clone())
    }

    /// Keeps a value; the one that was not used for longest makes room.
    pub(crate) fn keep(&self, key: AccessKey, value: T) {
        let mut kept = self.kept();
        kept.uses += 1;
        let uses = kept.uses;
        kept.values.insert(key, (value, uses));
        if kept.values.len() > self.limit {
            let oldest = kept.values.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                kept.values.remove(&oldest);
            }
        }
    }

    /// Number of values kept.
    pub(crate) fn len(&self) -> usize {
        self.kept().values.len()
    }

    fn kept(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> AccessKey {
        let account = ServiceAccount { namespace: "ns".into(), name: name.into() };
        AccessKey::new(&Access::Own, Some(&account)).unwrap()
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let recent = Recent::new(2);
        recent.keep(key("a"), 1);
        recent.keep(key("b"), 2);
        assert_eq!(recent.get(key("a")), Some(1));
        recent.keep(key("c"), 3);
        assert_eq!(recent.len(), 2);
        assert_eq!((recent.get(key("a")), recent.get(key("b"))), (Some(1), None));
        assert_ne!(AccessKey::new(&Access::Own, None), Some(key("a")));
    }
}
