//! A stand-in for an in-tree plugin, for rehearsals of its migration: it serves the plugin's disks in the node agent's
//! own process, with no driver, on the images of the reference driver in the plugin driver's place
//! ([`super::in_place`]), so that each mounts and deletes what the other made.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use csi::{Call, Code, Response, Status, v1};
use io_host::Host;
use io_run::{Done, InTreePlugin};
use rules_driver::Config;
use rules_translate::{Migration, Plugin};

use super::{Works, in_place, setup};
use crate::layout::{Layout, text};

/// The flag.
#[derive(Args, Clone, Default)]
pub struct Rehearsed {
    /// Serve volumes of this in-tree plugin (kubernetes.io/gce-pd) on nodes that do not leave it to its driver: a
    /// stand-in for its code, on the disks of `driver --in-place-of`; DIR is that driver's --state-dir, unless it is
    /// the usual one (docs/migration.md)
    #[arg(long, value_name = "PLUGIN[=DIR]", value_parser = told)]
    rehearse: Option<Told>,
}

/// What the flag says.
#[derive(Clone)]
struct Told {
    plugin: Plugin,
    state: Option<PathBuf>,
}

fn told(given: &str) -> Result<Told, String> {
    let (name, state) = given.split_once('=').map_or((given, None), |(name, dir)| (name, Some(PathBuf::from(dir))));
    match Plugin::named(name) {
        Some(Plugin::GcePd) => Ok(Told { plugin: Plugin::GcePd, state }),
        Some(_) | None => {
            Err(format!("there is a stand-in for {} alone, whose disks are called by a name", Plugin::GcePd))
        }
    }
}

/// A plugin that is there, by its stand-in.
#[derive(Clone)]
pub struct Rehearsal {
    /// The plugin.
    pub plugin: Plugin,
    state: PathBuf,
}

impl Rehearsed {
    /// Which plugin is rehearsed, and where its disks are. An error is a sentence.
    pub fn of(&self, migration: Migration, layout: &Layout) -> Result<Option<Rehearsal>> {
        let Some(Told { plugin, state }) = self.rehearse.clone() else { return Ok(None) };
        if !migration.has_in_tree(plugin) {
            let gate = plugin.gate();
            return Err(anyhow!(
                "--rehearse {plugin}: with its migration complete there is no plugin; add \
                 --feature-gates=CSIMigrationInTreeOff=false (and {gate}=false, where the plugin is to serve)"
            ));
        }
        let state = match state {
            Some(dir) => crate::layout::place(&dir)?,
            None => layout.root().join(plugin.driver()),
        };
        Ok(Some(Rehearsal { plugin, state }))
    }
}

impl Rehearsal {
    /// The flag as it is handed on to another process.
    pub fn flag(&self) -> String {
        format!("--rehearse={}={}", self.plugin, text(&self.state))
    }

    /// The plugin on a node.
    pub fn start(&self, node: &str, host: Arc<Host>) -> Result<Arc<dyn InTreePlugin>> {
        let own = setup::usual(node.into(), text(&self.state));
        let config = in_place::config(self.plugin, own);
        // The driver may be at work on what looks cut off.
        let works = Works::start(config, host, false)
            .with_context(|| format!("cannot rehearse {} with the disks in {}", self.plugin, self.state.display()))?;
        Ok(Arc::new(StandIn { plugin: self.plugin, works: Arc::new(works) }))
    }
}

/// The stand-in at work.
struct StandIn {
    plugin: Plugin,
    works: Arc<Works>,
}

impl StandIn {
    /// In a task of its own, so that what has begun ends whatever becomes of whoever asked.
    fn work(&self, what: &'static str, disk: &str, calls: Vec<Call>) -> Done<'static> {
        let (works, plugin, disk) = (self.works.clone(), self.plugin, disk.to_string());
        let task = tokio::spawn(async move {
            let mut attached = v1::ControllerPublishVolumeResponse::default();
            for mut call in calls {
                if let Call::NodeStageVolume(asked) = &mut call {
                    asked.publish_context.clone_from(&attached.publish_context);
                }
                if let Response::ControllerPublishVolume(got) = works.answer(call).await? {
                    attached = got;
                }
            }
            tracing::info!("the stand-in of {plugin} has {what} disk {disk}");
            Ok(())
        });
        Box::pin(async move {
            let cut_off =
                |_| Err(Status::local(Code::Unavailable, "the stand-in of the plugin failed; it is asked again"));
            task.await.unwrap_or_else(cut_off)
        })
    }

    fn node(&self) -> &Config {
        &self.works.config
    }
}

impl InTreePlugin for StandIn {
    fn mount_device(&self, asked: v1::NodeStageVolumeRequest) -> Done<'_> {
        let disk = asked.volume_id.clone();
        let attach = v1::ControllerPublishVolumeRequest {
            volume_id: disk.clone(),
            node_id: self.node().node_id.clone(),
            volume_capability: asked.volume_capability.clone(),
            ..Default::default()
        };
        self.work("mounted", &disk, vec![Call::ControllerPublishVolume(attach), Call::NodeStageVolume(asked)])
    }

    fn unmount_device(&self, asked: v1::NodeUnstageVolumeRequest) -> Done<'_> {
        let disk = asked.volume_id.clone();
        let detach = v1::ControllerUnpublishVolumeRequest {
            volume_id: disk.clone(),
            node_id: self.node().node_id.clone(),
            ..Default::default()
        };
        self.work("unmounted", &disk, vec![Call::NodeUnstageVolume(asked), Call::ControllerUnpublishVolume(detach)])
    }

    fn set_up(&self, asked: v1::NodePublishVolumeRequest) -> Done<'_> {
        self.work("set up", &asked.volume_id.clone(), vec![Call::NodePublishVolume(asked)])
    }

    fn tear_down(&self, asked: v1::NodeUnpublishVolumeRequest) -> Done<'_> {
        self.work("torn down", &asked.volume_id.clone(), vec![Call::NodeUnpublishVolume(asked)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules_translate::Phase;

    #[test]
    fn only_a_plugin_that_is_there_and_has_a_stand_in_is_rehearsed() {
        assert!(told("kubernetes.io/aws-ebs").err().unwrap().contains("kubernetes.io/gce-pd alone"));
        let layout = Layout::new(Some(PathBuf::from("/tmp/none"))).unwrap();
        let flag = |given: &str| Rehearsed { rehearse: Some(told(given).ok().unwrap()) };
        let complete = flag("kubernetes.io/gce-pd").of(Migration::default(), &layout);
        let told = format!("{:#}", complete.err().unwrap());
        assert!(told.contains("with its migration complete there is no plugin") && !told.contains('\n'), "{told}");
        for phase in [Phase::Off, Phase::On] {
            let migration = Migration::default().with(Plugin::GcePd, phase);
            let usual = flag("kubernetes.io/gce-pd").of(migration, &layout).unwrap().unwrap();
            assert!(usual.state.ends_with("pd.csi.storage.gke.io"), "{}", usual.flag());
            let other = flag("kubernetes.io/gce-pd=/tmp/pd").of(migration, &layout).unwrap().unwrap();
            assert_eq!(other.flag(), "--rehearse=kubernetes.io/gce-pd=/tmp/pd");
        }
        assert!(Rehearsed::default().of(Migration::default(), &layout).unwrap().is_none());
    }
}
