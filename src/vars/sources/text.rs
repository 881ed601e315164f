//! Texts that hold variables and are no files of the project: values of Secrets, HTTP answers, files of a repository.

use serde_json::Value;

use crate::{
    vars::{Context, Templates, VarsError},
    yaml::{self, Schema, YamlError},
};

/// A text with what is needed to speak about it.
pub(in crate::vars) struct Text {
    pub(in crate::vars) content: String,
    /// How messages name it.
    pub(in crate::vars) what: String,
    /// Nothing of the content may be shown: messages tell the line alone.
    pub(in crate::vars) is_sensitive: bool,
}

impl Text {
    /// A text from bytes.
    pub(in crate::vars) fn from_bytes(
        content: Vec<u8>,
        what: String,
        is_sensitive: bool,
    ) -> Result<Self, VarsError> {
        match String::from_utf8(content) {
            Ok(content) => Ok(Self { content, what, is_sensitive }),
            Err(_) => Err(VarsError::Content { what, problem: "is not UTF-8 text".to_owned() }),
        }
    }

    /// The text with its templates rendered. `file` is where relative names in them start; empty for a text that is no file.
    pub(in crate::vars) fn render(
        mut self,
        file: &str,
        templates: &Templates,
        context: &Context,
    ) -> Result<Self, VarsError> {
        self.content = templates.render(file, &self.content, context).map_err(|error| {
            let detail = self.detail(error.position.map(|at| at.line), &error.message);
            self.problem(format!("cannot be rendered ({}){detail}", error.kind))
        })?;
        Ok(self)
    }

    /// The first document, or with `multidoc` the list of all.
    pub(in crate::vars) fn parse(&self, multidoc: bool) -> Result<Value, VarsError> {
        parse(&self.content, multidoc).map_err(|error| self.invalid(&error))
    }

    /// Says what is wrong with the YAML.
    pub(in crate::vars) fn invalid(&self, error: &YamlError) -> VarsError {
        let line = error.position().map(|at| at.line);
        let detail = self.detail(line, &error.problem().to_string());
        self.problem(format!("is not valid YAML{detail}"))
    }

    /// An error about this text.
    pub(in crate::vars) fn problem(&self, problem: impl Into<String>) -> VarsError {
        VarsError::Content { what: self.what.clone(), problem: problem.into() }
    }

    fn detail(&self, line: Option<usize>, message: &str) -> String {
        let line = line.map_or(String::new(), |line| format!(", line {line}"));
        if self.is_sensitive { line } else { format!("{line}: {message}") }
    }
}

fn parse(text: &str, multidoc: bool) -> Result<Value, YamlError> {
    if multidoc {
        let documents = yaml::parse_documents("", text.as_bytes(), Schema::Config)?;
        return Ok(documents.into_iter().map(|document| document.value).collect());
    }
    yaml::parse_document("", text.as_bytes(), Schema::Config).map(|document| document.value)
}
