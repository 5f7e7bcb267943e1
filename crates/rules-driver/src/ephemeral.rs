//! Volumes that live and die with a pod: made by publishing, gone with unpublishing.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use csi::Status;

use crate::check::{self, Range, Use, invalid};
use crate::config::Config;
use crate::create::{fits, make};
use crate::delete::finish_deleting;
use crate::facts::Facts;
use crate::feature::Feature;
use crate::record::{Bytes, Kind, State, Volume};
use crate::run::{Run, Step};

/// What the caller says when the volume is for one pod.
const EPHEMERAL: &str = "csi.storage.k8s.io/ephemeral";

/// The caller wants the volume made for this one publishing.
pub fn is_asked_for(context: &BTreeMap<String, String>) -> bool {
    context.get(EPHEMERAL).is_some_and(|value| value == "true")
}

/// The volume, made if it is not there; or the next step to it.
pub fn ensure(
    run: &Run,
    config: &Config,
    facts: &mut Facts,
    given: &str,
    wanted: &Use,
    context: &BTreeMap<String, String>,
) -> Result<Result<Volume, Step>, Status> {
    if !config.offers(Feature::Ephemeral) {
        return Err(invalid("volumes for a pod alone are not offered; use a claim"));
    }
    // Somebody's real volume is never taken for a pod's.
    if facts.volumes().contains_key(given) {
        return Err(invalid("the volume exists and is not one for a pod alone"));
    }
    let wish = check::parameters(config, context, true)?;
    let id = check::ephemeral_id(given);
    if let Some(step) = finish_deleting(run, config, facts, &id) {
        return Ok(Err(step));
    }
    let volume = match facts.volumes().get(&id).cloned() {
        Some(volume) => volume,
        None => {
            let smallest = match (wish.kind, wanted.block) {
                (Kind::Directory, _) | (_, true) => 1,
                (Kind::Image, false) => {
                    check::smallest(wanted.filesystem.or(wish.filesystem).unwrap_or(&config.filesystem))
                }
            };
            let size = Range { least: wish.size.unwrap_or(0), most: 0 }.choose(smallest, None)?;
            fits(config, facts, size, 0)?;
            Volume {
                kind: wish.kind,
                filesystem: wish.filesystem.map(String::from),
                ephemeral: true,
                bytes: Bytes::None,
                ..Volume::creating(id.clone(), given.chars().take(128).collect(), size)
            }
        }
    };
    if let Some(step) = make(run, config, facts, volume)? {
        return Ok(Err(step));
    }
    let ready = facts.volumes().get(&id).filter(|volume| volume.state == State::Ready).cloned();
    ready.map(Ok).ok_or_else(|| invalid("the volume is gone; call again".to_string()))
}
