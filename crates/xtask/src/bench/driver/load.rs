//! Clients that call a driver as fast as it answers.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume, access_mode::Mode};
use csi::v1::volume_content_source::{SnapshotSource, Type as Source};
use csi::{Call, Response, v1};
use io_csi::CsiClient;

use super::contender::{Contender, Kind, Maker, Place, text};

const PATIENCE: Duration = Duration::from_secs(300);
/// The size of volumes nothing else is said of.
pub const SIZE: i64 = 64 << 20;

/// Ours makes a directory when it is asked to; the other driver makes nothing else.
const OUR_DIRECTORY: Contender = Contender { maker: Maker::Ours, kind: Kind::Directory };

/// Which part of a volume's life is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// CreateVolume, DeleteVolume.
    Exist,
    /// NodeStage, NodePublish, NodeUnpublish, NodeUnstage of a volume that was used before.
    Use,
    /// The same on volumes that were never used: a filesystem is made. They are made and deleted outside the time.
    FirstUse,
    /// All of it.
    Life,
}

impl Part {
    /// In the order of the tables.
    pub const ALL: [Part; 4] = [Part::Exist, Part::FirstUse, Part::Use, Part::Life];

    /// Its name in tables and in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Part::Exist => "create, delete",
            Part::FirstUse => "stage, publish and back, first time",
            Part::Use => "stage, publish and back, later",
            Part::Life => "whole life",
        }
    }
}

/// One client: a connection of its own, and paths of its own.
struct Client {
    client: CsiClient,
    socket: String,
    contender: Contender,
    name: String,
    staging: String,
    target: String,
    took: Mutex<Vec<(&'static str, Duration)>>,
}

/// Calls as many clients make them, on a driver that runs.
pub struct Load {
    runtime: tokio::runtime::Runtime,
    clients: Vec<Arc<Client>>,
}

/// What a load came to.
pub(crate) struct Measured {
    /// Parts done per second, by all clients together.
    pub per_second: f64,
    /// Every call and the time it took.
    pub calls: Vec<(&'static str, Duration)>,
    /// How many parts were done.
    pub parts: usize,
    /// From when to when, in seconds of the machine's clock.
    pub span: (f64, f64),
}

impl Load {
    /// So many clients of the driver in this place.
    pub fn new(place: &Place, contender: Contender, clients: usize) -> io::Result<Load> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = |number: usize| {
            let staging = place.path("stage").join(format!("c{number}"));
            std::fs::create_dir_all(&staging)?;
            Ok(Arc::new(Client {
                client: CsiClient::new(),
                socket: place.socket(),
                contender,
                name: format!("{}-c{number}", std::process::id()),
                staging: text(&staging),
                target: text(&place.path("pods").join(format!("c{number}"))),
                took: Mutex::default(),
            }))
        };
        Ok(Load { runtime, clients: (0..clients).map(client).collect::<io::Result<_>>()? })
    }

    /// Repeats a part of life for so long.
    pub fn repeat(&self, part: Part, time: Duration) -> io::Result<Measured> {
        self.runtime.block_on(async {
            let mut volumes = Vec::new();
            for client in &self.clients {
                volumes.push(client.prepare(part).await?);
            }
            self.clients.iter().for_each(|client| drop(client.taken()));
            let (began, from) = (Instant::now(), clock());
            let tasks: Vec<_> = self
                .clients
                .iter()
                .zip(volumes)
                .map(|(client, volume)| tokio::spawn(client.clone().run(part, volume, began + time)))
                .collect();
            let (mut parts, mut counted, mut idle) = (0, began, Vec::new());
            for task in tasks {
                let done = task.await.map_err(io::Error::other)??;
                parts += done.parts;
                counted = counted.max(done.at);
                idle.push(done.beside);
            }
            let span = (from, clock());
            let calls: Vec<_> = self.clients.iter().flat_map(|client| client.taken()).collect();
            for client in &self.clients {
                client.clear(part).await?;
            }
            // What belongs to another part is taken out of each client's time.
            let beside = idle.iter().sum::<Duration>() / u32::try_from(idle.len()).unwrap_or(1).max(1);
            let time = counted.duration_since(began).saturating_sub(beside);
            Ok(Measured { per_second: parts as f64 / time.as_secs_f64(), calls, parts, span })
        })
    }

    /// Makes so many volumes that stay.
    pub fn fill(&self, from: usize, to: usize) -> io::Result<()> {
        self.runtime.block_on(async {
            let tasks: Vec<_> = self
                .clients
                .iter()
                .enumerate()
                .map(|(number, client)| {
                    let (client, step) = (client.clone(), self.clients.len());
                    tokio::spawn(async move {
                        for number in (from + number..to).step_by(step) {
                            client.create(&format!("stays-{number}"), SIZE, None).await?;
                        }
                        io::Result::Ok(())
                    })
                })
                .collect();
            for task in tasks {
                task.await.map_err(io::Error::other)??;
            }
            Ok(())
        })
    }

    /// Seconds for a snapshot of a volume of so many bytes of which `filled` were written, and for a volume from it.
    pub fn snapshot(&self, bytes: i64, filled: usize) -> io::Result<(f64, f64)> {
        self.runtime.block_on(self.clients[0].snapshot(bytes, filled))
    }
}

fn clock() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// What one client did.
struct Done {
    parts: usize,
    at: Instant,
    /// Time in which it did what the part does not count.
    beside: Duration,
}

impl Client {
    async fn run(self: Arc<Client>, part: Part, volume: String, until: Instant) -> io::Result<Done> {
        let (mut parts, mut beside) = (0, Duration::ZERO);
        while Instant::now() < until {
            let name = format!("{}-{parts}", self.name);
            match part {
                Part::Exist => {
                    let id = self.create(&name, SIZE, None).await?;
                    self.delete(&id).await?;
                }
                Part::Use => self.take(&volume).await?,
                Part::FirstUse => {
                    let before = Instant::now();
                    let id = self.create(&name, SIZE, None).await?;
                    beside += before.elapsed();
                    self.take(&id).await?;
                    let after = Instant::now();
                    self.delete(&id).await?;
                    beside += after.elapsed();
                }
                Part::Life => {
                    let id = self.create(&name, SIZE, None).await?;
                    self.take(&id).await?;
                    self.delete(&id).await?;
                }
            }
            parts += 1;
        }
        Ok(Done { parts, at: Instant::now(), beside })
    }

    /// The volume that is used again and again.
    async fn prepare(&self, part: Part) -> io::Result<String> {
        if part != Part::Use {
            return Ok(String::new());
        }
        let id = self.create(&format!("{}-used", self.name), SIZE, None).await?;
        self.take(&id).await?;
        Ok(id)
    }

    async fn clear(&self, part: Part) -> io::Result<()> {
        if part != Part::Use {
            return Ok(());
        }
        let id = self.create(&format!("{}-used", self.name), SIZE, None).await?;
        self.delete(&id).await
    }

    /// To its path and back.
    async fn take(&self, id: &str) -> io::Result<()> {
        self.bring(id).await?;
        self.back(id).await
    }

    async fn bring(&self, id: &str) -> io::Result<()> {
        let (volume_id, staging_target_path) = (id.to_string(), self.staging.clone());
        let volume_capability = Some(self.capability());
        let stage =
            v1::NodeStageVolumeRequest { volume_id, staging_target_path, volume_capability, ..Default::default() };
        let publish = v1::NodePublishVolumeRequest {
            volume_id: stage.volume_id.clone(),
            staging_target_path: stage.staging_target_path.clone(),
            target_path: self.target.clone(),
            volume_capability: stage.volume_capability.clone(),
            ..Default::default()
        };
        self.call(Call::NodeStageVolume(stage)).await?;
        self.call(Call::NodePublishVolume(publish)).await?;
        Ok(())
    }

    async fn back(&self, id: &str) -> io::Result<()> {
        let (volume_id, target_path) = (id.to_string(), self.target.clone());
        self.call(Call::NodeUnpublishVolume(v1::NodeUnpublishVolumeRequest { volume_id, target_path })).await?;
        let (volume_id, staging_target_path) = (id.to_string(), self.staging.clone());
        self.call(Call::NodeUnstageVolume(v1::NodeUnstageVolumeRequest { volume_id, staging_target_path })).await?;
        Ok(())
    }

    async fn create(&self, name: &str, required_bytes: i64, snapshot: Option<String>) -> io::Result<String> {
        let kind = (self.contender == OUR_DIRECTORY).then(|| ("kind".into(), "directory".into()));
        let source =
            |snapshot_id| v1::VolumeContentSource { r#type: Some(Source::Snapshot(SnapshotSource { snapshot_id })) };
        let request = v1::CreateVolumeRequest {
            name: name.into(),
            capacity_range: Some(v1::CapacityRange { required_bytes, limit_bytes: 0 }),
            volume_capabilities: vec![self.capability()],
            parameters: kind.into_iter().collect(),
            volume_content_source: snapshot.map(source),
            ..Default::default()
        };
        match self.call(Call::CreateVolume(request)).await? {
            Response::CreateVolume(answer) => Ok(answer.volume.unwrap_or_default().volume_id),
            other => Err(io::Error::other(format!("CreateVolume was answered {other:?}"))),
        }
    }

    async fn delete(&self, id: &str) -> io::Result<()> {
        let request = v1::DeleteVolumeRequest { volume_id: id.into(), ..Default::default() };
        self.call(Call::DeleteVolume(request)).await.map(drop)
    }

    async fn snapshot(&self, bytes: i64, filled: usize) -> io::Result<(f64, f64)> {
        let id = self.create("half-full", bytes, None).await?;
        self.bring(&id).await?;
        self.write(filled)?;
        let began = Instant::now();
        let request =
            v1::CreateSnapshotRequest { source_volume_id: id.clone(), name: "s".into(), ..Default::default() };
        let snapshot_id = loop {
            let Response::CreateSnapshot(answer) = self.call(Call::CreateSnapshot(request.clone())).await? else {
                return Err(io::Error::other("CreateSnapshot was answered with another answer"));
            };
            let snapshot = answer.snapshot.unwrap_or_default();
            if snapshot.ready_to_use {
                break snapshot.snapshot_id;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let taken = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let restored = self.create("restored", bytes, Some(snapshot_id.clone())).await?;
        let made = began.elapsed().as_secs_f64();
        self.back(&id).await?;
        self.delete(&restored).await?;
        self.delete(&id).await?;
        self.call(Call::DeleteSnapshot(v1::DeleteSnapshotRequest { snapshot_id, ..Default::default() })).await?;
        Ok((taken, made))
    }

    /// Fills the published volume with bytes that cannot be compressed, and waits until they are on the disk.
    fn write(&self, bytes: usize) -> io::Result<()> {
        use std::io::Write;
        let mut file = match self.contender.kind {
            Kind::Ext4 | Kind::Directory => std::fs::File::create(format!("{}/data", self.target))?,
            Kind::Block => std::fs::File::options().write(true).open(&self.target)?,
        };
        let mut number = 0x9e37_79b9_7f4a_7c15_u64;
        let mut chunk = vec![0_u8; 1 << 20];
        for _ in 0..bytes >> 20 {
            for word in chunk.chunks_exact_mut(8) {
                number ^= number << 13;
                number ^= number >> 7;
                number ^= number << 17;
                word.copy_from_slice(&number.to_le_bytes());
            }
            file.write_all(&chunk)?;
        }
        file.sync_all()
    }

    async fn call(&self, call: Call) -> io::Result<Response> {
        let name = call.method().name();
        let began = Instant::now();
        let answer = self.client.call(&self.socket, call, PATIENCE).await;
        self.took.lock().unwrap_or_else(PoisonError::into_inner).push((name, began.elapsed()));
        answer.map_err(|status| io::Error::other(format!("{name}: {:?}: {}", status.code, status.message)))
    }

    fn taken(&self) -> Vec<(&'static str, Duration)> {
        std::mem::take(&mut self.took.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn capability(&self) -> v1::VolumeCapability {
        let access = match self.contender.kind {
            Kind::Ext4 | Kind::Directory => AccessType::Mount(MountVolume::default()),
            Kind::Block => AccessType::Block(BlockVolume {}),
        };
        let access_mode = Some(AccessMode { mode: Mode::SingleNodeWriter.into() });
        v1::VolumeCapability { access_type: Some(access), access_mode }
    }
}
