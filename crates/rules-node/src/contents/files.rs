//! The files of a volume.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{DownwardApiFile, KeyToPath, Kind, Pod, PodVolume};
use control::host::ShownFile;

use super::token::{self, PodToken, ReadTokens};
use super::{PodSource, ReadSources, downward, entries};
use crate::view::ToldOfNode;

type Files = BTreeMap<String, ShownFile>;

/// The mode of files that say none.
const MODE: i32 = 0o644;

/// The files of a volume of config maps, secrets, fields and tokens. The error says what is missing, as kubelet does.
pub fn of(
    pod: &Pod,
    volume: &PodVolume,
    node: &ToldOfNode,
    sources: &ReadSources,
    tokens: &ReadTokens,
) -> Result<Files, String> {
    let mut files = Files::new();
    if let Some(map) = &volume.config_map {
        let part = Part { source: PodSource::config_map(&map.name), items: &map.items, optional: map.optional };
        part.add(&mut files, map.default_mode, sources)?;
    }
    if let Some(secret) = &volume.secret {
        let source = PodSource::secret(&secret.secret_name);
        let part = Part { source, items: &secret.items, optional: secret.optional };
        part.add(&mut files, secret.default_mode, sources)?;
    }
    if let Some(fields) = &volume.downward_api {
        add_fields(&mut files, pod, node, &fields.items, fields.default_mode)?;
    }
    let Some(projected) = &volume.projected else { return Ok(files) };
    let mode = projected.default_mode;
    for projection in &projected.sources {
        if let Some(map) = &projection.config_map {
            let part = Part { source: PodSource::config_map(&map.name), items: &map.items, optional: map.optional };
            part.add(&mut files, mode, sources)?;
        }
        if let Some(secret) = &projection.secret {
            let part =
                Part { source: PodSource::secret(&secret.name), items: &secret.items, optional: secret.optional };
            part.add(&mut files, mode, sources)?;
        }
        if let Some(fields) = &projection.downward_api {
            add_fields(&mut files, pod, node, &fields.items, mode)?;
        }
        if let Some(asked) = &projection.service_account_token {
            let Some(read) = tokens.get(&PodToken::of(asked)) else {
                return Err(format!("the token for {} was not given yet", asked.path));
            };
            files.insert(asked.path.clone(), token::file(pod, read.bytes.clone(), self::mode(None, mode)));
        }
    }
    Ok(files)
}

/// A config map or a secret, and which of its entries are shown: all, or those that are named.
struct Part<'a> {
    source: PodSource,
    items: &'a Vec<KeyToPath>,
    optional: Option<bool>,
}

impl Part<'_> {
    fn add(&self, files: &mut Files, default: Option<i32>, sources: &ReadSources) -> Result<(), String> {
        let Some(entries) = entries(sources, &self.source, self.optional)? else { return Ok(()) };
        if self.items.is_empty() {
            for (key, bytes) in entries {
                files.insert(key.clone(), ShownFile { bytes: bytes.clone(), mode: mode(None, default), user: None });
            }
        }
        for item in self.items {
            let Some(bytes) = entries.get(&item.key) else {
                if self.optional == Some(true) {
                    continue;
                }
                return Err(lacking(&self.source, &item.key));
            };
            let file = ShownFile { bytes: bytes.clone(), mode: mode(item.mode, default), user: None };
            files.insert(item.path.clone(), file);
        }
        Ok(())
    }
}

/// What is said of an entry that is named and not there.
pub(super) fn lacking(source: &PodSource, key: &str) -> String {
    match source.kind {
        Kind::Secret => format!("references non-existent secret key: {key}"),
        _config_map => format!("configmap references non-existent config key: {key}"),
    }
}

fn add_fields(
    files: &mut Files,
    pod: &Pod,
    node: &ToldOfNode,
    items: &[DownwardApiFile],
    default: Option<i32>,
) -> Result<(), String> {
    for item in items {
        let text: String = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => downward::field(pod, node, field)?,
            (None, Some(resource)) => downward::resource(pod, None, node, resource)?,
            (None, None) => return Err(format!("file {} names neither fieldRef nor resourceFieldRef", item.path)),
        };
        let (bytes, mode) = (text.into_bytes().into(), mode(item.mode, default));
        files.insert(item.path.clone(), ShownFile { bytes, mode, user: None });
    }
    Ok(())
}

fn mode(own: Option<i32>, default: Option<i32>) -> u32 {
    u32::try_from(own.or(default).unwrap_or(MODE)).unwrap_or(0o644) & 0o777
}
