use serde_json::{Map, Value};

use super::{
    Project, ProjectError, Target,
    args::{self, ArgsError},
    target::{to_value, variables},
};
use crate::{
    diagnostic::{Class, Describe, Diagnostic, FieldPath, Segment},
    object::set_at,
    schema::{ArgDeclaration, AwsConfig, FixedImage, TargetConfig, Violations},
    yaml,
};

/// How often a target is rendered at most; its values may refer to each other.
const MAX_PASSES: usize = 10;

/// Renders template texts with the same variables (a mapping); one result for each text, in order. The error is what the
/// template engine describes.
pub type RenderTexts<'a> =
    dyn Fn(&[&str], &Map<String, Value>) -> Vec<Result<String, Box<Diagnostic>>> + 'a;

/// Which target is wanted, and what overrides it.
#[derive(Debug, Clone, Default)]
pub struct TargetRequest {
    /// The target's name; required exactly when the project has targets.
    pub name: Option<String>,
    /// A name to use in place of the target's, once it is rendered.
    pub name_override: Option<String>,
    /// Arguments from outside, a mapping or null; see [`args::external`].
    pub args: Value,
    /// A discriminator to use in place of the target's; no template.
    pub discriminator: Option<String>,
    /// Fixed images that win over the target's; the later the stronger.
    pub images: Vec<FixedImage>,
    /// A kubeconfig context to use in place of the target's.
    pub context: Option<String>,
}

/// The targets of a project that can be used, and why others cannot.
#[derive(Debug, Clone, Default)]
pub struct TargetList {
    /// By name; of several with the same name, the first.
    pub targets: Vec<Target>,
    /// One for each target that was left out, in the order of the file.
    pub warnings: Vec<Diagnostic>,
}

impl Project {
    /// The target of a request, rendered and overridden. Other targets are not looked at.
    ///
    /// # Errors
    /// When there is no such target, none was selected though the project has some, a template in it fails, or a required
    /// argument is missing.
    pub fn resolve(
        &self,
        request: &TargetRequest,
        render: &RenderTexts<'_>,
    ) -> Result<Target, ProjectError> {
        let external = given(&request.args);
        let mut target = match request.name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => self.named(name, &external, render)?,
            None if self.config.targets.is_empty() => {
                let path = FieldPath::root();
                self.render(&TargetConfig::default(), &path, &external, render)?
            }
            None => {
                let known = self.owned_names();
                return Err(ProjectError::NoTargetSelected { known });
            }
        };
        let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(name) = set(&request.name_override) {
            target.name = name;
        }
        if let Some(discriminator) = set(&request.discriminator) {
            target.discriminator = Some(discriminator);
        }
        if let Some(context) = set(&request.context) {
            target.context = Some(context);
        }
        target.images.extend(request.images.iter().cloned());
        Ok(target)
    }

    /// All targets that can be used with these arguments from outside.
    pub fn targets(&self, external: &Value, render: &RenderTexts<'_>) -> TargetList {
        let external = given(external);
        let mut list = TargetList::default();
        for (index, config) in self.config.targets.iter().enumerate() {
            let path = FieldPath::root().child("targets").child(index);
            match self.usable(config, &path, &external, render, &list.targets) {
                Ok(target) => list.targets.push(target),
                Err(warning) => list.warnings.push(*warning),
            }
        }
        list.targets.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    fn usable(
        &self,
        config: &TargetConfig,
        path: &FieldPath,
        external: &Value,
        render: &RenderTexts<'_>,
        others: &[Target],
    ) -> Result<Target, Box<Diagnostic>> {
        let dropped =
            |message: String| Box::new(self.locate(Diagnostic::new(Class::Project, message), path));
        if config.name.is_empty() {
            return Err(dropped("the target has no name and is left out".to_owned()));
        }
        let target = self.render(config, path, external, render).map_err(|error| {
            let mut diagnostic = error.describe();
            diagnostic.message =
                format!("target {} is left out: {}", config.name, diagnostic.message);
            let placed = diagnostic.at.is_some();
            Box::new(if placed { diagnostic } else { self.locate(diagnostic, path) })
        })?;
        if others.iter().any(|other| other.name == target.name) {
            let message =
                format!("target {} is left out: a former one has the same name", target.name);
            return Err(dropped(message));
        }
        Ok(target)
    }

    /// The first target of this name that can be used. Names may be templates, so those are rendered to be compared.
    fn named(
        &self,
        name: &str,
        external: &Value,
        render: &RenderTexts<'_>,
    ) -> Result<Target, ProjectError> {
        let mut failure = None;
        for (index, config) in self.config.targets.iter().enumerate() {
            let candidate = config.name == name || config.name.contains('{');
            if config.name.is_empty() || !candidate {
                continue;
            }
            let path = FieldPath::root().child("targets").child(index);
            match self.render(config, &path, external, render) {
                Ok(target) if target.name == name => return Ok(target),
                Err(error) if config.name == name => {
                    failure.get_or_insert(error);
                }
                Ok(_) | Err(_) => {}
            }
        }
        Err(match failure {
            Some(source) => {
                ProjectError::Target { name: name.to_owned(), source: Box::new(source) }
            }
            None => ProjectError::UnknownTarget {
                name: name.to_owned(),
                known: self.owned_names(),
                file: self.file.clone(),
            },
        })
    }

    /// Fills in what the project provides and renders until nothing changes any more.
    fn render(
        &self,
        config: &TargetConfig,
        path: &FieldPath,
        external: &Value,
        render: &RenderTexts<'_>,
    ) -> Result<Target, ProjectError> {
        let mut target = to_value(&self.with_fallbacks(config));
        let mut failure = None;
        for _ in 0..MAX_PASSES {
            let variables = variables(target.clone(), self.arguments(&target, external)?);
            let pass = render_pass(&mut target, &variables, render);
            failure = pass.failure;
            if failure.is_none() && !pass.changed {
                break;
            }
        }
        if let Some((field, diagnostic)) = failure {
            return Err(ProjectError::Template(Box::new(self.place(*diagnostic, path, &field))));
        }
        let arguments = self.arguments(&target, external)?;
        let own: TargetConfig = yaml::from_value(&target)?;
        self.check_images(&own, path)?;
        Ok(Target::new(own, arguments))
    }

    fn owned_names(&self) -> Vec<String> {
        self.target_names().into_iter().map(str::to_owned).collect()
    }

    fn with_fallbacks(&self, config: &TargetConfig) -> TargetConfig {
        let mut config = config.clone();
        if config.discriminator.as_deref().is_none_or(str::is_empty) {
            config.discriminator.clone_from(&self.config.discriminator);
        }
        let AwsConfig { profile, service_account } = self.config.aws.clone().unwrap_or_default();
        let aws = config.aws.get_or_insert_default();
        aws.profile = aws.profile.take().or(profile);
        aws.service_account = aws.service_account.take().or(service_account);
        config
    }

    /// The arguments while the target is in the state `target`.
    fn arguments(&self, target: &Value, external: &Value) -> Result<Value, ProjectError> {
        let own = target.get("args").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        let given = args::external(own, [external.clone()]);
        args::with_defaults(&self.config.args, given).map_err(|error| {
            let mut diagnostic = error.describe();
            if let ArgsError::Required { names, .. } = &error {
                let missing = |declared: &ArgDeclaration| names.contains(&declared.name);
                let index = self.config.args.iter().position(missing).unwrap_or_default();
                let field = FieldPath::root().child("args").child(index).child("name");
                diagnostic = self.locate(diagnostic, &field);
            }
            ProjectError::Arguments(Box::new(diagnostic))
        })
    }

    fn check_images(&self, own: &TargetConfig, path: &FieldPath) -> Result<(), ProjectError> {
        let mut violations = Violations::default();
        for (index, image) in own.images.iter().enumerate() {
            image.check(&path.child("images").child(index), &mut violations);
        }
        match violations.into_vec().into_iter().next() {
            None => Ok(()),
            Some(violation) => {
                let field = violation.path.clone();
                Err(ProjectError::rule(violation, |diagnostic| self.locate(diagnostic, &field)))
            }
        }
    }

    /// Points a template's error to the field of the configuration file that holds the template: the entry's, or the
    /// project's discriminator when that was filled in.
    fn place(&self, diagnostic: Diagnostic, path: &FieldPath, field: &FieldPath) -> Diagnostic {
        let inherited =
            *field == FieldPath::root().child("discriminator") && !self.has_own_discriminator(path);
        let mut full = if inherited { FieldPath::root() } else { path.clone() };
        full.0.extend(field.0.iter().cloned());
        self.locate(diagnostic, &full)
    }

    fn has_own_discriminator(&self, path: &FieldPath) -> bool {
        let Some(Segment::Index(index)) = path.0.last() else { return false };
        let own = self.config.targets.get(*index).and_then(|own| own.discriminator.as_ref());
        own.is_some_and(|discriminator| !discriminator.is_empty())
    }
}

fn given(args: &Value) -> Value {
    if args.is_object() { args.clone() } else { Value::Object(Map::new()) }
}

struct Pass {
    changed: bool,
    /// The first failure, and the field it is in.
    failure: Option<(FieldPath, Box<Diagnostic>)>,
}

/// A text that may be a template: a value, or a mapping's key.
struct Text {
    path: FieldPath,
    is_key: bool,
    template: String,
}

/// Renders every text of the target once with the same variables; those that fail stay as they are.
fn render_pass(
    target: &mut Value,
    variables: &Map<String, Value>,
    render: &RenderTexts<'_>,
) -> Pass {
    let mut texts = Vec::new();
    collect(target, &FieldPath::root(), &mut texts);
    let mut pass = Pass { changed: false, failure: None };
    if texts.is_empty() {
        return pass;
    }
    let plain: Vec<&str> = texts.iter().map(|text| text.template.as_str()).collect();
    let results = render(&plain, variables);
    for (text, result) in texts.into_iter().zip(results) {
        match result {
            Err(diagnostic) => {
                pass.failure.get_or_insert((text.path, diagnostic));
            }
            Ok(rendered) if rendered == text.template => {}
            Ok(rendered) => {
                pass.changed = true;
                if text.is_key {
                    rename(target, &text.path, &rendered);
                } else {
                    set_at(target, &text.path, Value::String(rendered));
                }
            }
        }
    }
    pass
}

/// Collects the texts with a `{`. Keys come after what is below them, so that paths hold while results are put in.
fn collect(value: &Value, path: &FieldPath, texts: &mut Vec<Text>) {
    match value {
        Value::String(text) if text.contains('{') => {
            texts.push(Text { path: path.clone(), is_key: false, template: text.clone() });
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &path.child(index), texts);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                let path = path.child(key.as_str());
                collect(value, &path, texts);
                if key.contains('{') {
                    texts.push(Text { path, is_key: true, template: key.clone() });
                }
            }
        }
        _ => {}
    }
}

fn rename(target: &mut Value, path: &FieldPath, key: &str) {
    if let Some(value) = crate::object::delete_at(target, path)
        && let Some(parent) = path.parent()
    {
        set_at(target, &parent.child(key), value);
    }
}
