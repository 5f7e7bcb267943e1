//! File shares of Azure (TR-30 to TR-35). Their classes need no translation.

use alloc::format;
use alloc::string::{String, ToString};

use api::{AccessMode, AzureFile, CsiSource, InTreeSource, PersistentVolume, SecretReference, names};

use crate::inline::named;
use crate::{Error, Losses, Plugin, class};

const ME: Plugin = Plugin::AzureFile;
const SHARE: &str = "sharename";
const SECRET: &str = "secretname";
const SECRET_NAMESPACE: &str = "secretnamespace";
const BEFORE_ACCOUNT: &str = "azure-storage-account-";
const AFTER_ACCOUNT: &str = "-secret";
const DEFAULT_NAMESPACE: &str = "default";
const WANT: &str = "GROUP#ACCOUNT#SHARE, with further parts separated by #";

/// The account a secret is for, if its name says so. TR-31: otherwise the whole name stands for it.
fn account(secret: &str) -> &str {
    let named = secret.split_once(BEFORE_ACCOUNT).and_then(|(_, rest)| rest.rsplit_once(AFTER_ACCOUNT));
    named.map_or(secret, |(account, _)| if account.is_empty() { secret } else { account })
}

fn source(share: &AzureFile, group: &str, volume: &str, namespace: &str) -> CsiSource {
    let account = account(&share.secret_name);
    CsiSource {
        driver: ME.driver().into(),
        volume_handle: format!("{group}#{account}#{}#{volume}#{namespace}", share.share_name),
        read_only: share.read_only,
        volume_attributes: [(SHARE.into(), share.share_name.clone())].into(),
        node_stage_secret_ref: Some(SecretReference { name: share.secret_name.clone(), namespace: namespace.into() }),
        ..CsiSource::default()
    }
}

/// TR-32.
pub(crate) fn to_csi(share: &AzureFile, volume: &PersistentVolume) -> Result<CsiSource, Error> {
    let claim = || volume.spec.claim_ref.as_ref().map(|claim| claim.namespace.as_str());
    let namespace = share.secret_namespace.as_deref().or_else(claim).filter(|namespace| !namespace.is_empty());
    let what = "the namespace of its secret; write it as azureFile.secretNamespace";
    let namespace = namespace.ok_or(Error::Missing { plugin: ME, what })?;
    let group = volume.metadata.annotation(names::AZURE_FILE_RESOURCE_GROUP).unwrap_or("");
    Ok(source(share, group, &volume.metadata.name, namespace))
}

/// TR-33.
pub(crate) fn inline(name: &str, share: &AzureFile, pod_namespace: &str, losses: &mut Losses) -> PersistentVolume {
    losses.note_if(share.secret_namespace.is_some(), "azureFile.secretNamespace");
    let namespace = if pod_namespace.is_empty() { DEFAULT_NAMESPACE } else { pod_namespace };
    let source = source(share, "", name, namespace);
    named(source.volume_handle.clone(), source, AccessMode::ReadWriteMany)
}

/// TR-34.
pub(crate) fn to_in_tree(source: &CsiSource, volume: &mut PersistentVolume) -> Result<InTreeSource, Error> {
    let attribute = |wanted: &str| {
        let mut found = source.volume_attributes.iter().filter(|(key, _)| class::is(key, wanted));
        found.next().map(|(_, value)| value.clone())
    };
    let mut share = AzureFile {
        share_name: attribute(SHARE).unwrap_or_default(),
        secret_name: attribute(SECRET).unwrap_or_default(),
        secret_namespace: attribute(SECRET_NAMESPACE),
        read_only: source.read_only,
        ..AzureFile::default()
    };
    if let Some(secret) = source.node_stage_secret_ref.as_ref().filter(|secret| !secret.name.is_empty()) {
        share.secret_name = secret.name.clone();
        share.secret_namespace = Some(secret.namespace.clone());
    }
    if share.share_name.is_empty() || share.secret_name.is_empty() {
        let group = fill_in(&mut share, &source.volume_handle)?;
        if !group.is_empty() {
            volume.metadata.annotations.insert(names::AZURE_FILE_RESOURCE_GROUP.into(), group);
        }
    }
    share.secret_namespace.get_or_insert_with(|| DEFAULT_NAMESPACE.into());
    Ok(InTreeSource::AzureFile(share))
}

/// What the attributes do not say, the handle does. The resource group is the only thing left over.
fn fill_in(share: &mut AzureFile, handle: &str) -> Result<String, Error> {
    let mut parts = handle.split('#');
    let (Some(group), Some(account), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        let value = handle.to_string();
        return Err(Error::Malformed { plugin: ME, field: "volumeHandle", value, want: WANT });
    };
    if share.share_name.is_empty() {
        share.share_name = name.into();
    }
    if share.secret_name.is_empty() {
        share.secret_name = format!("{BEFORE_ACCOUNT}{account}{AFTER_ACCOUNT}");
    }
    Ok(group.into())
}

/// Attributes that have their place in the in-tree form.
pub(crate) const ATTRIBUTES: [&str; 4] = [SHARE, SECRET, SECRET_NAMESPACE, names::PROVISIONER_IDENTITY];
