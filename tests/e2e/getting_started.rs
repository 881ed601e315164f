//! docs/getting-started.md, command by command.

use std::{fs, process::Command};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    support::{Case, Ran, User, root},
    tests,
};

tests![every_command_prints_what_the_page_says];

/// A part of the page.
enum Part {
    /// Lines that are shown and do nothing.
    Text(String),
    /// A file to write: its path, its text.
    File(String, String),
    /// Commands, each with what it prints.
    Commands(Vec<(String, String)>),
}

/// The page in its parts. A line that is nothing but a path in backticks and a colon names the file whose text comes next.
fn parts(page: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut file = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            let named = line.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:"));
            file = named.map(str::to_owned).or(file.filter(|_| line.is_empty()));
            parts.push(Part::Text(line.to_owned()));
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        parts.push(match (kind, file.take()) {
            ("console", _) => Part::Commands(commands(&block)?),
            (_, Some(path)) => {
                let text = block.iter().map(|line| format!("{line}\n")).collect();
                Part::File(path, text)
            }
            _ => bail!("a block is neither a file nor commands: {block:?}"),
        });
    }
    Ok(parts)
}

fn commands(block: &[&str]) -> Result<Vec<(String, String)>> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push((command.to_owned(), String::new()));
        } else {
            let (_, output) = commands.last_mut().context("output without a command")?;
            output.push_str(line);
            output.push('\n');
        }
    }
    Ok(commands)
}

/// `UPDATE_GETTING_STARTED=1` writes what is printed into the page, in place of comparing it.
async fn every_command_prints_what_the_page_says(case: &mut Case) -> Result<()> {
    let path = root().join("docs/getting-started.md");
    let user = User::new(case, &[])?;
    fs::create_dir_all(&user.project)?;
    let kluctl = std::path::Path::new(env!("CARGO_BIN_EXE_kluctl")).parent().context("parent")?;
    let programs = [kluctl, case.suite.programs.as_path()].map(|dir| dir.display().to_string());
    let search = format!("{}:{}", programs.join(":"), std::env::var("PATH")?);
    let updates = std::env::var_os("UPDATE_GETTING_STARTED").is_some();
    let mut page = String::new();
    let mut count = 0;
    for part in parts(&fs::read_to_string(&path)?)? {
        match part {
            Part::Text(line) => page.push_str(&format!("{line}\n")),
            Part::File(path, text) => {
                user.write(&[(&path, &text)])?;
                page.push_str(&format!("```yaml\n{text}```\n"));
            }
            Part::Commands(commands) => {
                page.push_str("```console\n");
                for (command, expected) in commands {
                    let output = Command::new("sh")
                        .args(["-c", &command])
                        .current_dir(&user.project)
                        .env_clear()
                        .env("PATH", &search)
                        .env("HOME", &user.home)
                        .env("KUBECONFIG", &case.kubeconfig)
                        .env("COLUMNS", "100")
                        .output()?;
                    let ran = Ran::of(&output).ok().with_context(|| command.clone())?;
                    let printed: String =
                        ran.stdout.lines().map(|line| format!("{}\n", line.trim_end())).collect();
                    ensure!(
                        updates || printed == expected,
                        "{command}\nprints\n{printed}\nand not\n{expected}"
                    );
                    page.push_str(&format!("$ {command}\n{printed}"));
                    count += 1;
                }
                page.push_str("```\n");
            }
        }
    }
    ensure!(count > 10, "only {count} commands were found");
    if updates {
        fs::write(&path, page)?;
    }
    Ok(())
}
