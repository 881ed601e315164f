//! `kluctl list-targets`

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, Report,
        environment::now,
        flags::{OutputFlags, ProjectFlags},
        output, session,
    },
    jinja,
    project::Target,
    yaml,
};

/// Lists the targets of a project, rendered, sorted by name. Targets that need arguments from elsewhere are left out.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ListTargets {
    #[command(flatten)]
    pub(in crate::cli) project: ProjectFlags,
    #[command(flatten)]
    output: OutputFlags,

    /// Only the names, one per line
    #[arg(long, help_heading = "Misc arguments")]
    only_names: bool,
}

pub(super) async fn run(
    command: ListTargets,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let source = session::source(&command.project, environment, report)?;
    let list = session::engine().list_targets(source, jinja::Options::new(now()), &cancel).await?;
    for warning in &list.warnings {
        output::to_stderr(&report.warning(&warning.to_string()));
    }
    let text = if command.only_names {
        list.targets.iter().fold(String::new(), |text, target| text + &target.name + "\n")
    } else {
        let targets: Vec<Value> = list.targets.iter().map(Target::to_value).collect();
        yaml::emit(&if targets.is_empty() { Value::Null } else { json!(targets) })
    };
    Ok(output::to_files(environment, &command.output.output, &text)?)
}
