//! `kluctl schema`

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::{
    cli::{
        Environment, Failure,
        environment::{create_dir, write_file},
        output,
    },
    schema::{FileSchema, json_schemas},
};

/// Prints JSON Schemas of the files of a project, for editors.
///
/// Without a name, all of them as one mapping from file name to schema. An editor finds the schema of a file by a line such as
/// `# yaml-language-server: $schema=deployment.schema.json` at its top.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Schema {
    /// Which file the schema is for
    #[arg(value_parser = ["project", "deployment", "helm-chart", "library"])]
    name: Option<String>,

    /// Write <name>.schema.json files to this directory, instead of printing
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

pub(super) fn run(command: &Schema, environment: &Environment) -> Result<(), Failure> {
    let is_wanted =
        |file: &FileSchema| command.name.as_deref().is_none_or(|name| name == file.name);
    let files: Vec<FileSchema> = json_schemas().into_iter().filter(is_wanted).collect();
    if let Some(dir) = &command.output_dir {
        let dir = environment.path(dir);
        create_dir(&dir)?;
        for file in &files {
            write_file(&dir.join(file.file_name()), file.text().as_bytes())?;
        }
        return Ok(());
    }
    let text = match files.as_slice() {
        [one] => one.text(),
        all => {
            let all = all.iter().map(|file| (file.file.to_owned(), file.schema.clone()));
            format!("{:#}\n", Value::Object(all.collect::<Map<_, _>>()))
        }
    };
    Ok(output::to_stdout(&text)?)
}
