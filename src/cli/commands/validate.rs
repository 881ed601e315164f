//! `kluctl validate`

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, Report,
        flags::{DeploymentFlags, OutputFormat, ValidateOutputFlags, duration},
        operation::{Operation, json},
        output, result_text,
    },
    engine,
    results::ValidateResult,
    yaml,
};

/// Checks that all objects of a target are there and ready.
///
/// Objects are compared with the rendered target by name only; annotations `validate-result.kluctl.io/*` of what is deployed
/// are reported. The command fails on errors, and with --warnings-as-errors on warnings.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Validate {
    #[command(flatten)]
    pub(in crate::cli) deployment: DeploymentFlags,
    #[command(flatten)]
    output: ValidateOutputFlags,

    /// Try again until the target is valid, for this long at most
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "0s",
        value_parser = duration,
        help_heading = "Misc arguments"
    )]
    wait: Duration,

    /// Pause between two tries
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5s",
        value_parser = duration,
        help_heading = "Misc arguments"
    )]
    sleep: Duration,

    /// Let warnings fail the command, too
    #[arg(long, help_heading = "Misc arguments")]
    warnings_as_errors: bool,
}

pub(super) async fn run(
    command: Validate,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let deployment = &command.deployment;
    let mut operation = Operation::start(deployment, None, environment, report, &cancel).await?;
    let prepared = operation.prepare().await?;
    let deadline = Instant::now() + command.wait;
    let info = operation.info(false);
    let session = operation.session(&info);
    let result = loop {
        let result = engine::validate(&session, &prepared.desired).await;
        let is_over = command.is_valid(&result) || cancel.is_cancelled();
        if is_over || Instant::now() >= deadline {
            break result;
        }
        output::to_stderr(&retry_text(&result, command.sleep));
        tokio::select! {
            () = cancel.cancelled() => {}
            () = sleep(command.sleep) => {}
        }
    };
    write(&command, &operation, &result)?;
    if command.is_valid(&result) {
        output::to_stderr("Validation succeeded\n");
        Ok(())
    } else {
        output::to_stderr("Validation failed\n");
        Err(Failure::Told)
    }
}

impl Validate {
    fn is_valid(&self, result: &ValidateResult) -> bool {
        let warnings_pass = !self.warnings_as_errors || result.warnings.is_empty();
        result.errors.is_empty() && warnings_pass
    }
}

fn write(
    command: &Validate,
    operation: &Operation<'_>,
    result: &ValidateResult,
) -> Result<(), Failure> {
    for wanted in &command.output.output {
        let text = match wanted.format {
            OutputFormat::Text => {
                result_text::validation(result, operation.style(wanted, false).width)
            }
            OutputFormat::Yaml => yaml::emit(&serde_json::to_value(result).unwrap_or_default()),
            OutputFormat::Json => json(result),
        };
        output::to_files(operation.environment, std::slice::from_ref(&wanted.file), &text)?;
    }
    Ok(())
}

/// What is missing, before the next try.
fn retry_text(result: &ValidateResult, pause: Duration) -> String {
    let problems: Vec<_> = result.errors.iter().chain(&result.warnings).collect();
    let first = problems.first().map(|problem| {
        let about = if problem.reference.kind.is_empty() {
            String::new()
        } else {
            format!("{}: ", problem.reference)
        };
        format!("{about}{}", problem.message)
    });
    let more = match problems.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let first = first.unwrap_or_default();
    format!("not valid yet: {first}{more}; trying again in {} s\n", pause.as_secs_f32())
}
