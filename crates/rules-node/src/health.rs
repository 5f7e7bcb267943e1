//! What drivers say of the health of mounted volumes (KL-105): asked for every minute of drivers that tell it, told in
//! events of the pods when it changes, and counted.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::ObjectKey;
use control::{Attempt, Cache, Effect, Lane, News, Outcome, Reply};
use csi::v1::VolumeHealthErrorType as Kind;
use csi::{Call, Response, v1};

use crate::action::There;
use crate::local::Local;

/// What is wrong with a volume, and the driver's words for it, by kind and the driver's reason; empty if nothing is.
pub type VolumeAilments = BTreeMap<(String, String), String>;

/// One question about a volume's health.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AskHealth {
    /// Where the volume is published, and whom to ask.
    pub there: There,
    /// Where it is staged.
    pub staging: Option<String>,
    /// What was said before.
    pub before: Option<VolumeAilments>,
    /// When that was decided, in milliseconds since 1970.
    pub at_millis: u64,
}

impl AskHealth {
    /// NodeGetVolumeHealth.
    pub fn effect(&self) -> Effect {
        let request = v1::NodeGetVolumeHealthRequest {
            volume_id: self.there.handle.clone(),
            volume_publish_path: self.there.path.clone(),
            staging_target_path: self.staging.clone().unwrap_or_default(),
        };
        Effect::call_driver(self.there.driver.as_str(), Call::NodeGetVolumeHealth(request))
    }

    /// Only another kind or reason than before is news. Without an answer what was said before stands.
    pub fn attempt(&self, got: &Outcome) -> Attempt {
        let same = |health: &VolumeAilments| self.before.as_ref().is_some_and(|before| before.keys().eq(health.keys()));
        match answer(got) {
            Some(health) if !health.is_empty() && !same(&health) => Attempt::Failed(words(&health)),
            Some(_) | None => Attempt::Neutral,
        }
    }

    /// Questions have a pace of their own: no answer holds the next one back, nor anything else.
    pub fn lane(&self) -> Lane<'_> {
        Lane { number: 0, subject: format!("health/{}", self.at_millis).into() }
    }

    /// What is wrong is a warning.
    pub fn news() -> News {
        News { failed: Some("VolumeConditionAbnormal"), ..News::default() }
    }
}

/// What a driver said; `None` if it did not.
fn answer(got: &Outcome) -> Option<VolumeAilments> {
    let Outcome::Done(Reply::Csi(Response::NodeGetVolumeHealth(answer))) = got else { return None };
    let said = answer.volume_health.iter().flat_map(|health| &health.health_statuses);
    let kind = |status: i32| match Kind::try_from(status) {
        Ok(Kind::Degraded) => Some("degraded"),
        Ok(Kind::Inaccessible) => Some("inaccessible"),
        Ok(Kind::DataLoss) => Some("lost data"),
        Ok(Kind::UnknownVolumeHealthType) | Err(_) => None,
    };
    let said = said.filter_map(|one| Some(((kind(one.status)?.into(), one.reason.clone()), one.message.clone())));
    Some(said.collect())
}

fn words(health: &VolumeAilments) -> String {
    let said = health.iter().map(|((kind, reason), message)| format!("{kind} ({reason}): {message}"));
    said.collect::<Vec<_>>().join("; ")
}

/// Keeps what was said. A volume that was unwell and is well again is told of once.
pub fn learn(local: &mut Local, asked: &AskHealth, got: &Outcome) {
    let Some(health) = answer(got) else { return };
    let (target, well) = (asked.there.path.clone(), health.is_empty());
    match local.health.insert(target.clone(), health) {
        Some(before) if well && !before.is_empty() => {
            local.recovered.insert(target);
        }
        Some(_) | None if !well => {
            local.recovered.remove(&target);
        }
        Some(_) | None => {}
    }
}

/// The claims whose volumes drivers were asked about, each with whether something is wrong.
pub fn unwell_claims(cache: &Cache, local: &Local) -> BTreeMap<ObjectKey, bool> {
    let mut all = BTreeMap::new();
    for record in local.records.values() {
        let volume = cache.volume(&ObjectKey::cluster(record.volume.clone()));
        let Some(claim) = volume.and_then(|volume| volume.spec.claim_ref.clone()) else { continue };
        let targets: BTreeSet<&String> = record.publishes.values().map(|publish| &publish.target).collect();
        for health in targets.into_iter().filter_map(|target| local.health.get(target)) {
            let unwell = all.entry(ObjectKey::new(claim.namespace.clone(), claim.name.clone())).or_insert(false);
            *unwell |= !health.is_empty();
        }
    }
    all
}
