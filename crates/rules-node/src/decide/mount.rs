//! The calls that bring a volume to a pod, once nothing stands against them: stage, publish, give to the pod's group.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use api::SecretReference;
use control::{Decision, Secrets, Timestamp, Why};
use csi::NodeRpc;

use crate::Reason;
use crate::action::{Action, Publishing, There};
use crate::health::AskHealth;
use crate::local::DriverFacts;
use crate::memory::Memory;
use crate::paths;
use crate::record::Record;
use crate::spec::VolumeSpec;
use crate::view::{MountState, User, UserState, VolumeView};

/// How often a driver that asks for it publishes again (KL-102).
const REPUBLISH_MILLIS: u64 = 60_000;
/// How often a driver that tells it is asked for the health of a volume (KL-105).
const HEALTH_MILLIS: u64 = 60_000;

/// A volume on its way to a pod.
pub struct Mounting<'a> {
    pub view: &'a VolumeView,
    pub record: &'a Record,
    pub facts: &'a DriverFacts,
    pub spec: &'a VolumeSpec,
    pub memory: &'a Memory,
}

/// The files of a published volume are still to be given to the pod's group.
pub fn must_group(user: &User) -> bool {
    user.group.is_some() && !user.grouped
}

impl Mounting<'_> {
    /// The next step for a pod.
    pub fn next(&self, uid: &str, user: &User) -> Decision<Action, Reason> {
        let Mounting { view, spec, .. } = self;
        // A mount found at start may be on its way out: the driver is asked again, which costs nothing if it is there.
        if self.facts.can(NodeRpc::StageUnstageVolume)
            && !view.ephemeral
            && !(view.staged == MountState::Yes && view.staged_by_us)
        {
            return self.stage(user);
        }
        if user.mounted == MountState::Yes && user.recorded {
            return self.group(user);
        }
        let text = format!("driver {} publishes volume {} for pod {}", view.driver, spec.volume, user.pod);
        self.publish(uid, user, text)
    }

    /// NodeStageVolume, for a pod that waits for it.
    pub fn stage(&self, user: &User) -> Decision<Action, Reason> {
        let Mounting { view, spec, .. } = self;
        let text = format!("driver {} stages volume {}", view.driver, spec.volume);
        let path = &view.paths.staging;
        self.with_secrets(path, path, &spec.stage_secret, Reason::NotStaged, text, |secrets| Action::Stage {
            driver: view.driver.clone(),
            handle: view.handle.clone(),
            path: path.clone(),
            spec: (*spec).clone(),
            mount_group: user.mount_group,
            secrets,
        })
    }

    fn publish(&self, uid: &str, user: &User, text: String) -> Decision<Action, Reason> {
        let Mounting { view, record, spec, .. } = self;
        let dir = paths::parent(&user.target);
        let held =
            Some(&self.memory.tokens).filter(|(purpose, _)| *purpose == user.target).map(|(_, held)| held.clone());
        let held = held.unwrap_or_default();
        if let Some((audience, wish)) = spec.tokens.missing(&held, &user.pod, uid, &user.service_account) {
            let text = format!("asking for a token of service account {} for volume {}", wish.account, spec.volume);
            let action = Action::RequestToken { purpose: user.target.clone(), audience, wish };
            return Decision::Do(action, Why::waiting(Reason::TokenNotHad, text));
        }
        self.with_secrets(&dir, &user.target, &spec.publish_secret, Reason::NotPublished, text, |secrets| {
            // KL-92: a raw device is published with its staging path, whether the driver stages or not.
            let staging = if record.block { Some(view.paths.staging.clone()) } else { record.staging_path.clone() };
            Action::Publish(Publishing {
                driver: view.driver.clone(),
                handle: view.handle.clone(),
                staging,
                target: user.target.clone(),
                read_only: user.read_only,
                spec: (*spec).clone(),
                pod_info: self.pod_info(uid, user),
                mount_group: user.mount_group,
                secrets,
                tokens: held.told(),
            })
        })
    }

    /// KL-76, KL-83: only what is mounted can be given to the group, and the pod waits for it.
    fn group(&self, user: &User) -> Decision<Action, Reason> {
        let volume = &self.spec.volume;
        match user.group.filter(|_| !user.grouped) {
            Some(change) => {
                let text =
                    format!("the files of volume {volume} are given to group {} of pod {}", change.group, user.pod);
                let action = Action::SetGroup { target: user.target.clone(), change };
                Decision::Do(action, Why::waiting(Reason::GroupNotSet, text))
            }
            None => Decision::Rest(Why::settled(Reason::Mounted, format!("volume {volume} is mounted"))),
        }
    }

    /// Makes the directory, reads the secret, and then acts: nothing secret is held longer than the call takes.
    fn with_secrets(
        &self,
        dir: &str,
        purpose: &str,
        secret: &Option<SecretReference>,
        code: Reason,
        text: String,
        then: impl FnOnce(Secrets) -> Action,
    ) -> Decision<Action, Reason> {
        if !self.memory.made.contains(dir) {
            return Decision::Do(Action::MakeDir { path: dir.into() }, Why::waiting(code, text));
        }
        let secrets = match (secret, &self.memory.secrets) {
            (None, _) => Secrets::default(),
            (Some(_), Some((of, secrets))) if of == purpose => secrets.clone(),
            (Some(secret), Some(_) | None) => {
                let text =
                    format!("reading secret {}/{} for volume {}", secret.namespace, secret.name, self.spec.volume);
                let action = Action::ReadSecret { purpose: purpose.into(), secret: secret.clone() };
                return Decision::Do(action, Why::waiting(Reason::SecretNotRead, text));
            }
        };
        Decision::Do(then(secrets), Why::waiting(code, text))
    }

    /// What the driver is told of the pod, by the door it asked at: its CSIDriver (KL-78) or its registrar (S1-3). What
    /// the volume itself says under the same keys is overwritten (S1-4).
    fn pod_info(&self, uid: &str, user: &User) -> BTreeMap<String, String> {
        let said = [
            ("pod.name", user.pod.name.as_str()),
            ("pod.namespace", user.pod.namespace.as_str()),
            ("pod.uid", uid),
            ("serviceAccount.name", user.service_account.as_str()),
        ];
        let mut info = BTreeMap::new();
        if self.spec.pod_info {
            info.extend(said.map(|(key, value)| (format!("csi.storage.k8s.io/{key}"), value.into())));
            info.insert("csi.storage.k8s.io/ephemeral".into(), self.spec.ephemeral.to_string());
        }
        if self.facts.wants_pod {
            info.extend(said.map(|(key, value)| (format!("csi.kubernetes.io/{key}"), value.into())));
        }
        info
    }
}

/// What is due for a volume that every pod has: nothing, or to publish it again for a driver that wants that (KL-102).
pub fn rest(now: Timestamp, view: &VolumeView, record: &Record, memory: &Memory) -> Decision<Action, Reason> {
    let text = format!("volume {} is mounted for {} pod(s)", record.volume, view.users.len());
    let resting = Why::settled(Reason::Mounted, text);
    let (Some(spec), Some(facts)) = (view.spec.as_ref().filter(|spec| spec.republish), &view.facts) else {
        return Decision::Rest(resting);
    };
    let wanted = view.users.iter().filter(|(_, user)| user.standing == UserState::Wanted);
    let due = wanted.map(|(uid, user)| {
        let last = memory.published_at.get(&user.target).copied();
        (last.map_or(Timestamp(0), |at| at.after_millis(REPUBLISH_MILLIS)), uid, user)
    });
    let Some((at, uid, user)) = due.min_by_key(|(at, ..)| *at) else { return Decision::Rest(resting) };
    if now < at {
        return Decision::Wait(at, resting);
    }
    let text = format!("driver {} wants volume {} published again for pod {}", view.driver, spec.volume, user.pod);
    Mounting { view, record, facts, spec, memory }.publish(uid, user, text)
}

/// KL-105: what is due about the health of a mounted volume; `None` if its driver does not tell it.
pub fn health(now: Timestamp, view: &VolumeView, record: &Record, memory: &Memory) -> Option<Decision<Action, Reason>> {
    view.facts.as_ref().filter(|facts| facts.can(NodeRpc::GetVolumeHealth) && !view.ephemeral)?;
    if let Some(user) = view.users.values().find(|user| user.recovered) {
        let text = format!("volume {} is well again", record.volume);
        let action = Action::NoteRecovered { path: user.target.clone() };
        return Some(Decision::Do(action, Why::settled(Reason::VolumeRecovered, text)));
    }
    let wanted = view.users.values().filter(|user| user.standing == UserState::Wanted);
    let due = wanted.map(|user| {
        let last = memory.health_at.get(&user.target).copied();
        (last.map_or(Timestamp(0), |at| at.after_millis(HEALTH_MILLIS)), user)
    });
    let (at, user) = due.min_by_key(|(at, _)| *at)?;
    let why = Why::settled(Reason::HealthNotAsked, format!("driver {} of volume {}", view.driver, record.volume));
    if now < at {
        return Some(Decision::Wait(at, why));
    }
    let there = There { driver: view.driver.clone(), handle: view.handle.clone(), path: user.target.clone() };
    let (staging, before) = (record.staging_path.clone(), user.health.clone());
    Some(Decision::Do(Action::AskHealth(AskHealth { there, staging, before, at_millis: now.0 }.into()), why))
}
