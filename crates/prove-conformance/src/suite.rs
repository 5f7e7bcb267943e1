use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use csi::{Call, Response, Status, v1};
use io_csi::CsiClient;

use crate::Abilities;
use crate::ask::{self, Ask};

/// How long a restarted driver may take until it answers again.
const BACK_WITHIN: Duration = Duration::from_secs(30);

/// A way to restart the driver; it returns when the driver was told to go.
pub type Restart = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// What the user said.
#[derive(Clone)]
pub struct Options {
    /// The driver's socket.
    pub endpoint: String,
    /// The controller's socket, if it is another.
    pub controller_endpoint: Option<String>,
    /// Where volumes are staged.
    pub staging_dir: PathBuf,
    /// Where volumes are published.
    pub target_dir: PathBuf,
    /// How to restart the driver.
    pub restart: Option<Restart>,
    /// Secrets, by method name; those under the empty name go to every method.
    pub secrets: BTreeMap<String, BTreeMap<String, String>>,
    /// Parameters for CreateVolume.
    pub parameters: BTreeMap<String, String>,
    /// Mutable parameters the driver understands.
    pub mutable_parameters: BTreeMap<String, String>,
    /// The size of volumes, in bytes.
    pub size: i64,
    /// How many cases run at the same time.
    pub parallel: usize,
    /// The longest a call may take.
    pub call_timeout: Duration,
    /// The longest a case may take.
    pub case_timeout: Duration,
    /// Only cases that match one of these; all if there are none.
    pub only: Vec<String>,
    /// No cases that match one of these.
    pub skip: Vec<String>,
    /// This process may look into mounted volumes.
    pub root: bool,
}

impl Options {
    /// The usual ones for a driver at this socket.
    pub fn new(endpoint: impl Into<String>) -> Options {
        Options {
            endpoint: endpoint.into(),
            controller_endpoint: None,
            staging_dir: std::env::temp_dir().join("csi-staging"),
            target_dir: std::env::temp_dir().join("csi-target"),
            restart: None,
            secrets: BTreeMap::new(),
            parameters: BTreeMap::new(),
            mutable_parameters: BTreeMap::new(),
            size: 64 << 20,
            parallel: 1,
            call_timeout: Duration::from_secs(30),
            case_timeout: Duration::from_secs(120),
            only: Vec::new(),
            skip: Vec::new(),
            root: false,
        }
    }
}

/// What all cases of a run share.
pub struct Suite {
    /// What the user said.
    pub options: Options,
    /// What the driver offers.
    pub abilities: Abilities,
    /// Who the driver says it is.
    pub driver: v1::GetPluginInfoResponse,
    /// What the node says of itself.
    pub node: v1::NodeGetInfoResponse,
    /// Begins every name of this run.
    pub prefix: String,
    /// The case in which the driver went away for good.
    pub(crate) gone: OnceLock<&'static str>,
    /// Held while a driver that went away is started again.
    pub(crate) reviving: tokio::sync::Mutex<()>,
    /// How often the driver was found gone and started again.
    pub(crate) revived: AtomicU64,
    client: CsiClient,
}

impl Suite {
    /// Asks the driver who it is and what it offers.
    pub async fn meet(options: Options) -> Result<Suite, String> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let prefix = format!("ls{:x}{:x}", since.as_micros() & 0xff_ffff_ffff, std::process::id() & 0xffff);
        let mut suite = Suite {
            options,
            abilities: Abilities::default(),
            driver: Default::default(),
            node: Default::default(),
            prefix,
            gone: OnceLock::new(),
            reviving: tokio::sync::Mutex::default(),
            revived: AtomicU64::default(),
            client: CsiClient::new(),
        };
        let told = |what: &str, status: Status| format!("the driver does not answer {what}: {}", status.message);
        suite.driver = match suite.ask(v1::GetPluginInfoRequest {}).await {
            Ok(driver) => driver,
            // A driver that refuses to say who it is can still be judged, beginning with that.
            Err(status) if status.from_driver => Default::default(),
            Err(status) => return Err(told("GetPluginInfo", status)),
        };
        suite.abilities = suite.discover().await.map_err(|status| told("capability calls", status))?;
        // A driver for controllers alone has no node service; its node cases will skip or fail.
        suite.node = suite.ask(v1::NodeGetInfoRequest {}).await.unwrap_or_default();
        Ok(suite)
    }

    async fn discover(&self) -> Result<Abilities, Status> {
        use v1::plugin_capability::Type;
        let mut found = Abilities {
            root: self.options.root,
            restart: self.options.restart.is_some(),
            mutable_parameters: !self.options.mutable_parameters.is_empty(),
            two_endpoints: self.options.controller_endpoint.is_some(),
            ..Abilities::default()
        };
        for capability in self.ask(v1::GetPluginCapabilitiesRequest {}).await?.capabilities {
            match capability.r#type {
                Some(Type::Service(service)) => found.services.push(service.r#type),
                Some(Type::VolumeExpansion(expansion)) => found.expansions.push(expansion.r#type),
                None => {}
            }
        }
        if found.has(crate::Need::Controller) {
            use v1::controller_service_capability::Type;
            let answer = self.ask(v1::ControllerGetCapabilitiesRequest {}).await?;
            found.controller =
                answer.capabilities.iter().filter_map(|c| c.r#type.as_ref().map(|Type::Rpc(rpc)| rpc.r#type)).collect();
        }
        if found.services.contains(&(v1::plugin_capability::service::Type::GroupControllerService as i32)) {
            use v1::group_controller_service_capability::Type;
            let answer = self.ask(v1::GroupControllerGetCapabilitiesRequest {}).await?;
            found.group =
                answer.capabilities.iter().filter_map(|c| c.r#type.as_ref().map(|Type::Rpc(rpc)| rpc.r#type)).collect();
        }
        // Without a node service there is nothing to ask.
        if let Ok(answer) = self.ask(v1::NodeGetCapabilitiesRequest {}).await {
            use v1::node_service_capability::Type;
            found.node =
                answer.capabilities.iter().filter_map(|c| c.r#type.as_ref().map(|Type::Rpc(rpc)| rpc.r#type)).collect();
        }
        Ok(found)
    }

    /// Asks without remembering.
    pub async fn ask<R: Ask>(&self, request: R) -> Result<R::Answer, Status> {
        let response = self.call(request.into_call(), self.options.call_timeout).await?;
        R::read(response).ok_or_else(|| Status::local(csi::Code::Internal, "the answer is another method's"))
    }

    /// Calls the endpoint the method belongs to, with the user's secrets where the call has none of its own.
    pub async fn call(&self, mut call: Call, deadline: Duration) -> Result<Response, Status> {
        let method = call.method();
        let name = method.name();
        if let Some(secrets) = ask::secrets(&mut call)
            && secrets.is_empty()
        {
            for key in ["", name] {
                secrets.extend(self.options.secrets.get(key).cloned().unwrap_or_default());
            }
        }
        let controller = method.path().contains("Controller/");
        let endpoint = match &self.options.controller_endpoint {
            Some(endpoint) if controller => endpoint,
            Some(_) | None => &self.options.endpoint,
        };
        let answer = self.client.call(endpoint, call, deadline).await;
        tracing::debug!(rpc = name, code = ?answer.as_ref().err().map(|status| status.code), "answered");
        answer
    }

    /// Asks the controller's endpoint who it is.
    pub async fn controller_info(&self) -> Result<v1::GetPluginInfoResponse, Status> {
        let endpoint = self.options.controller_endpoint.as_ref().unwrap_or(&self.options.endpoint);
        let call = v1::GetPluginInfoRequest {}.into_call();
        let response = self.client.call(endpoint, call, self.options.call_timeout).await?;
        v1::GetPluginInfoRequest::read(response)
            .ok_or_else(|| Status::local(csi::Code::Internal, "the answer is another method's"))
    }

    /// Whether anybody answers, whatever it is.
    pub async fn is_there(&self) -> bool {
        let call = v1::ProbeRequest {}.into_call();
        match self.call(call, self.options.call_timeout).await {
            Ok(_) => true,
            Err(status) => status.from_driver,
        }
    }

    /// Restarts the driver and waits until it is ready again.
    pub async fn restart(&self) -> Result<(), String> {
        let restart = self.options.restart.as_ref().ok_or("there is no restart command")?;
        restart().await?;
        self.ready().await
    }

    /// Waits until the driver says that it is ready.
    pub async fn ready(&self) -> Result<(), String> {
        let until = tokio::time::Instant::now() + BACK_WITHIN;
        loop {
            let answer = match self.ask(v1::ProbeRequest {}).await {
                Ok(answer) if answer.ready.unwrap_or(true) => match self.controller_info().await {
                    Ok(_) => return Ok(()),
                    Err(status) => status.message,
                },
                Ok(_) => "it says that it is not ready".to_string(),
                Err(status) => status.message,
            };
            if tokio::time::Instant::now() > until {
                return Err(format!("the driver is not back {} s after its restart: {answer}", BACK_WITHIN.as_secs()));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
