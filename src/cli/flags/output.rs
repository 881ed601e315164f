use std::{path::PathBuf, str::FromStr};

/// Where plain output goes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
pub(in crate::cli) struct OutputFlags {
    /// Write to this file; `-` is standard output; may be given several times
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(in crate::cli) output: Vec<PathBuf>,
}

/// In which formats results are written, and where.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
pub(in crate::cli) struct ResultOutputFlags {
    /// Write the result as `text`, `yaml` or `json`, to standard output or to a file; may be given several times
    ///
    /// `yaml` holds the objects in kluctl's compacted form, `json` holds them as they are.
    #[arg(long, short, value_name = "FORMAT[=FILE]", default_value = "text")]
    pub(in crate::cli) output_format: Vec<ResultOutput>,

    /// Leave the differences of changed objects out of text output
    #[arg(long)]
    pub(in crate::cli) short_output: bool,

    /// Show and store the values of Secrets and of sensitive arguments
    #[arg(long)]
    pub(in crate::cli) no_obfuscate: bool,
}

impl ResultOutputFlags {
    /// Text on standard output.
    pub(in crate::cli) fn text() -> Self {
        let text = ResultOutput { format: OutputFormat::Text, file: PathBuf::from("-") };
        Self { output_format: vec![text], short_output: false, no_obfuscate: false }
    }
}

/// In which formats the result of a validation is written, and where.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
pub(in crate::cli) struct ValidateOutputFlags {
    /// Write the result as `text`, `yaml` or `json`, to standard output or to a file; may be given several times
    #[arg(long, short, value_name = "FORMAT[=FILE]", default_value = "text")]
    pub(in crate::cli) output: Vec<ResultOutput>,
}

/// A format and a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct ResultOutput {
    /// The format.
    pub(in crate::cli) format: OutputFormat,
    /// The file; `-` is standard output.
    pub(in crate::cli) file: PathBuf,
}

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum OutputFormat {
    /// Tables for people.
    Text,
    /// The whole result as YAML, the objects compacted.
    Yaml,
    /// The whole result as JSON.
    Json,
}

impl FromStr for ResultOutput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = text.split_once('=').unwrap_or((text, "-"));
        let format = match format {
            "text" => OutputFormat::Text,
            "yaml" => OutputFormat::Yaml,
            "json" => OutputFormat::Json,
            other => return Err(format!("unknown format `{other}`, expected text, yaml or json")),
        };
        Ok(Self { format, file: PathBuf::from(file) })
    }
}
