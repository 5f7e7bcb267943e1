//! A stand-in for an in-tree plugin, for rehearsals of its migration: it serves the plugin's disks in the process of
//! the node agent and of the controllers, with no driver, on the images of the reference driver in the plugin driver's
//! place ([`super::in_place`]), so that each mounts and deletes what the other made.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use api::Kind;
use clap::Args;
use csi::{Call, Code, ControllerRpc, Response, Status, v1};
use io_host::Host;
use io_kube::Scope;
use io_run::{InTreePlugin, Leadership, Manager, PluginAnswer};
use rules_provisioner::Provisioner;
use rules_resizer::Resizer;
use rules_translate::{Migration, Plugin};

use super::{Works, in_place, setup};
use crate::layout::{Layout, text};
use crate::sidecar::locals;

/// The flag.
#[derive(Args, Clone, Default)]
pub struct Rehearsed {
    /// A stand-in for the code of this in-tree plugin (kubernetes.io/gce-pd), on the disks of `driver --in-place-of`: a
    /// node serves volumes with it if it does not leave them to the driver, controllers make, grow and delete them if
    /// they do not; DIR is that driver's --state-dir, unless it is the usual one (docs/migration.md)
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

    /// The same for a process that keeps nothing itself, and looks into a data directory for this alone.
    pub fn within(&self, migration: Migration, data_dir: Option<PathBuf>) -> Result<Option<Rehearsal>> {
        match self.rehearse {
            Some(_) => self.of(migration, &Layout::new(data_dir)?),
            None => Ok(None),
        }
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
        let works = Works::start(config, host, false).with_context(|| self.failed())?;
        Ok(Arc::new(StandIn { plugin: self.plugin, works: Arc::new(works) }))
    }

    /// The plugin's part of the controllers, while they do not leave it to its driver (S4-9, S4-40, S4-41): the rules
    /// of provisioner and resizer, which call the plugin that is started in this process.
    pub fn control(&self, manager: &Manager, lease: Option<&Leadership>, migration: Migration) {
        if migration.is_migrated(self.plugin) {
            return;
        }
        let name = self.plugin.name();
        let settings = rules_provisioner::Settings { migration, ..Default::default() };
        let local = rules_provisioner::Local { settings: Arc::new(settings), ..rules_provisioner::Local::new(name) };
        let (unseen, journal) = (locals::unseen_by_provisioner(&local), local.journal());
        let journal = Scope { namespace: journal.namespace, name: journal.name, ..Scope::default() };
        let provisioner = manager.add::<Provisioner>(name, local).without(&unseen).within(Kind::Lease, journal);
        drop(provisioner.lease(lease).start());
        let local =
            rules_resizer::Local { migration, ..rules_resizer::Local::new(name, [ControllerRpc::ExpandVolume]) };
        let unseen = locals::unseen_by_resizer(&local);
        drop(manager.add::<Resizer>(name, local).without(&unseen).lease(lease).start());
    }

    /// The same in a process with no node agent, which starts the plugin itself.
    pub fn control_alone(&self, manager: &Manager, lease: Option<&Leadership>, migration: Migration) -> Result<()> {
        if !migration.is_migrated(self.plugin) {
            let host = Host::new(self.state.join("processes")).with_context(|| self.failed())?;
            let plugin = self.start(&crate::machine::host_name()?, Arc::new(host))?;
            manager.drivers().in_tree(self.plugin.name(), plugin);
            self.control(manager, lease, migration);
        }
        Ok(())
    }

    fn failed(&self) -> String {
        format!("cannot rehearse {} with the disks in {}", self.plugin, self.state.display())
    }
}

/// The stand-in at work.
struct StandIn {
    plugin: Plugin,
    works: Arc<Works>,
}

impl StandIn {
    /// What it does with its disks when it is asked for this, and what that is called. A node's part is not told apart
    /// from attaching: the plugin does both.
    fn steps(&self, call: Call) -> Result<(&'static str, Vec<Call>), Status> {
        let node_id = || self.works.config.node_id.clone();
        Ok(match call {
            Call::NodeStageVolume(asked) => {
                let attach = v1::ControllerPublishVolumeRequest {
                    volume_id: asked.volume_id.clone(),
                    node_id: node_id(),
                    volume_capability: asked.volume_capability.clone(),
                    ..Default::default()
                };
                ("mounted", vec![Call::ControllerPublishVolume(attach), Call::NodeStageVolume(asked)])
            }
            Call::NodeUnstageVolume(asked) => {
                let detach = v1::ControllerUnpublishVolumeRequest {
                    volume_id: asked.volume_id.clone(),
                    node_id: node_id(),
                    ..Default::default()
                };
                ("unmounted", vec![Call::NodeUnstageVolume(asked), Call::ControllerUnpublishVolume(detach)])
            }
            Call::NodePublishVolume(_) => ("set up", vec![call]),
            Call::NodeUnpublishVolume(_) => ("torn down", vec![call]),
            Call::NodeExpandVolume(_) => ("grown the filesystem of", vec![call]),
            Call::CreateVolume(_) => ("made", vec![in_place::asked(call)?]),
            Call::DeleteVolume(_) => ("deleted", vec![in_place::asked(call)?]),
            Call::ControllerExpandVolume(_) => ("grown", vec![in_place::asked(call)?]),
            other => {
                let text = format!("an in-tree plugin is not asked for {}", other.method().name());
                return Err(Status::from_driver(Code::Unimplemented, text));
            }
        })
    }
}

impl InTreePlugin for StandIn {
    /// In a task of its own, so that what has begun ends whatever becomes of whoever asked.
    fn asked(&self, call: Call) -> PluginAnswer<'_> {
        let (what, calls) = match self.steps(call) {
            Ok(steps) => steps,
            Err(status) => return Box::pin(std::future::ready(Err(status))),
        };
        let (works, plugin) = (self.works.clone(), self.plugin);
        let task = tokio::spawn(async move {
            let mut attached = v1::ControllerPublishVolumeResponse::default();
            let mut last = None;
            for mut call in calls {
                let disk = call.volume().to_string();
                if let Call::NodeStageVolume(asked) = &mut call {
                    asked.publish_context.clone_from(&attached.publish_context);
                }
                match works.answer(call).await? {
                    Response::ControllerPublishVolume(got) => attached = got,
                    Response::ControllerUnpublishVolume(_) => {}
                    answer => {
                        tracing::info!("the stand-in of {plugin} has {what} disk {disk}");
                        last = Some(in_place::answered(answer));
                    }
                }
            }
            last.ok_or_else(|| Status::local(Code::Internal, "the stand-in of the plugin did nothing"))
        });
        Box::pin(async move {
            let cut_off =
                |_| Err(Status::local(Code::Unavailable, "the stand-in of the plugin failed; it is asked again"));
            task.await.unwrap_or_else(cut_off)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules_translate::Phase;

    // S4-3, S4-48: what is registered depends on the plugin's own gates, and is missed with a sentence.
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
        // Who rehearses nothing needs no data directory: this one's sockets would have too long a name.
        let long = Some(PathBuf::from(format!("/tmp/{}", "x".repeat(120))));
        assert!(Rehearsed::default().within(Migration::default(), long.clone()).unwrap().is_none());
        assert!(flag("kubernetes.io/gce-pd").within(Migration::default(), long).is_err());
    }
}
