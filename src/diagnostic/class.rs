/// Who has to act on a problem, which decides exit codes, conditions and retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The user's files or arguments are wrong.
    Project,
    /// The custom resource is wrong; nothing to retry until it changes.
    Spec,
    /// Credentials, RBAC or decryption keys are missing or refused.
    Access,
    /// A source, artifact or dependency is not there yet.
    Waiting,
    /// The API server refused an object.
    Object,
    /// Network, throttling or server errors that outlasted the retries.
    Transient,
    /// The run was interrupted.
    Cancelled,
    /// A defect of this program.
    Internal,
}
