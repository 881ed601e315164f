//! `awsSecretsManager`, `gcpSecretManager`, `azureKeyVault` and `vault`: the text of a secret, rendered and read as YAML.

use serde_json::Map;

use super::text::Text;
use crate::{
    schema::VarsSource,
    vars::{Context, SecretStore, SecretStores, Templates, VarsError, load::Loaded},
};

/// Reads the secret of whichever store the entry names; `None` when it names none of them.
pub(in crate::vars) async fn read(
    entry: &VarsSource,
    stores: &SecretStores,
    templates: &Templates,
    context: &Context,
) -> Option<Result<Loaded, VarsError>> {
    let place = Place { entry, templates, context };
    if let Some(name) = &entry.aws_secrets_manager {
        let shown = format!("secret {} of AWS Secrets Manager", name.secret_name);
        return Some(place.read("awsSecretsManager", stores.aws.as_deref(), name, shown).await);
    }
    if let Some(name) = &entry.gcp_secret_manager {
        let shown = format!("secret {} of Google Secret Manager", name.secret_name);
        return Some(place.read("gcpSecretManager", stores.gcp.as_deref(), name, shown).await);
    }
    if let Some(name) = &entry.azure_key_vault {
        let shown = format!("secret {} of {}", name.secret_name, name.vault_uri);
        return Some(place.read("azureKeyVault", stores.azure.as_deref(), name, shown).await);
    }
    let name = entry.vault.as_ref()?;
    let shown = format!("secret {} of {}", name.path, name.address);
    Some(place.read("vault", stores.vault.as_deref(), name, shown).await)
}

struct Place<'a> {
    entry: &'a VarsSource,
    templates: &'a Templates,
    context: &'a Context,
}

impl Place<'_> {
    async fn read<Name>(
        &self,
        kind: &'static str,
        store: Option<&dyn SecretStore<Name>>,
        name: &Name,
        what: String,
    ) -> Result<Loaded, VarsError> {
        let store = store.ok_or(VarsError::NotAvailable { kind })?;
        let Some(secret) = store.read(name).await.map_err(VarsError::outside)? else {
            if self.entry.ignore_missing {
                return Ok(Loaded::mapping(Map::new()));
            }
            return Err(VarsError::SecretNotFound { what });
        };
        let is_sensitive = self.entry.sensitive.unwrap_or(true);
        let text = Text { content: secret.reveal().clone(), what, is_sensitive };
        let text = text.render("", self.templates, self.context)?;
        Ok(Loaded { value: text.parse(self.entry.multidoc)?, what: text.what })
    }
}
