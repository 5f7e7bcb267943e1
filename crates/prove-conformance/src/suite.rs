use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use csi::{Call, Capabilities, PluginService, Response, Service, Status, v1};
use io_csi::CsiClient;
use rules_translate::Plugin;

use crate::ask::Ask;

/// How long a restarted driver may take until it answers again.
const BACK_WITHIN: Duration = Duration::from_secs(30);

/// A function that restarts the driver. It returns once the old process was asked to stop.
pub type Restart = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// The options of a run.
#[derive(Clone)]
pub struct SuiteOptions {
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
    /// The in-tree plugin in whose place the driver is judged.
    pub in_place_of: Option<Plugin>,
    /// Parameters for CreateVolume; of a driver in the place of a plugin, of its classes, in the plugin's words.
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

impl SuiteOptions {
    /// The default options for a driver at this socket.
    pub fn new(endpoint: impl Into<String>) -> SuiteOptions {
        SuiteOptions {
            endpoint: endpoint.into(),
            controller_endpoint: None,
            staging_dir: std::env::temp_dir().join("csi-staging"),
            target_dir: std::env::temp_dir().join("csi-target"),
            restart: None,
            secrets: BTreeMap::new(),
            in_place_of: None,
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

/// The numbers of the capabilities as the driver reported them, with repetitions and those that CSI does not assign.
#[derive(Clone, Default)]
#[allow(missing_docs, reason = "the names say it all")]
pub struct Reported {
    pub services: Vec<i32>,
    pub controller: Vec<i32>,
    pub group: Vec<i32>,
    pub node: Vec<i32>,
}

/// What all cases of a run share.
pub struct Suite {
    /// The options of the run.
    pub options: SuiteOptions,
    /// The driver's capabilities.
    pub capabilities: Capabilities,
    /// The same as the driver reported them.
    pub reported: Reported,
    /// The response to GetPluginInfo.
    pub driver: v1::GetPluginInfoResponse,
    /// The response to NodeGetInfo.
    pub node: v1::NodeGetInfoResponse,
    /// The beginning of every name in this run.
    pub prefix: String,
    /// The case in which the driver went away and could not be started again.
    pub(crate) gone: OnceLock<&'static str>,
    /// Held while a driver that went away is started again.
    pub(crate) reviving: tokio::sync::Mutex<()>,
    /// How often the driver was found gone and started again.
    pub(crate) revived: AtomicU64,
    client: CsiClient,
}

impl Suite {
    /// Asks the driver for its name, its capabilities and its node.
    pub async fn meet(options: SuiteOptions) -> Result<Suite, String> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let prefix = format!("ls{:x}{:x}", since.as_micros() & 0xff_ffff_ffff, std::process::id() & 0xffff);
        let mut suite = Suite {
            options,
            capabilities: Capabilities::NONE,
            reported: Reported::default(),
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
        (suite.capabilities, suite.reported) =
            suite.discover().await.map_err(|status| told("capability calls", status))?;
        // A driver for controllers alone has no node service; its node cases will skip or fail.
        suite.node = suite.ask(v1::NodeGetInfoRequest {}).await.unwrap_or_default();
        Ok(suite)
    }

    async fn discover(&self) -> Result<(Capabilities, Reported), Status> {
        macro_rules! numbers {
            ($answer:ident, $module:ident) => {
                $answer
                    .capabilities
                    .iter()
                    .filter_map(|one| one.r#type.as_ref())
                    .map(|v1::$module::Type::Rpc(rpc)| rpc.r#type)
                    .collect()
            };
        }
        let mut reported = Reported::default();
        let plugin = self.ask(v1::GetPluginCapabilitiesRequest {}).await?;
        let mut all = Capabilities::from(&plugin);
        reported.services = plugin.capabilities.iter().filter_map(service_number).collect();
        if all.has(PluginService::ControllerService) {
            let answer = self.ask(v1::ControllerGetCapabilitiesRequest {}).await?;
            reported.controller = numbers!(answer, controller_service_capability);
            all = all.union((&answer).into());
        }
        if all.has(PluginService::GroupControllerService) {
            let answer = self.ask(v1::GroupControllerGetCapabilitiesRequest {}).await?;
            reported.group = numbers!(answer, group_controller_service_capability);
            all = all.union((&answer).into());
        }
        // Only the answer shows whether there is a node service.
        if let Ok(answer) = self.ask(v1::NodeGetCapabilitiesRequest {}).await {
            reported.node = numbers!(answer, node_service_capability);
            all = all.union((&answer).into());
        }
        Ok((all, reported))
    }

    /// Calls the driver without adding what it created to the ledger.
    pub async fn ask<R: Ask>(&self, request: R) -> Result<R::Answer, Status> {
        let response = self.call(request.into_call(), self.options.call_timeout).await?;
        R::read(response).ok_or_else(|| Status::local(csi::Code::Internal, "the answer is another method's"))
    }

    /// Calls the endpoint the method belongs to, with the user's secrets where the call has none of its own.
    pub async fn call(&self, mut call: Call, deadline: Duration) -> Result<Response, Status> {
        let method = call.method();
        let name = method.name();
        if let Some(secrets) = call.secrets_mut()
            && secrets.is_empty()
        {
            for key in ["", name] {
                secrets.extend(self.options.secrets.get(key).cloned().unwrap_or_default());
            }
        }
        let controller = matches!(method.service(), Service::Controller | Service::GroupController);
        let endpoint = match &self.options.controller_endpoint {
            Some(endpoint) if controller => endpoint,
            Some(_) | None => &self.options.endpoint,
        };
        let answer = self.client.call(endpoint, call, deadline).await;
        tracing::debug!(rpc = name, code = ?answer.as_ref().err().map(|status| status.code), "answered");
        answer
    }

    /// Calls GetPluginInfo at the controller's endpoint.
    pub async fn controller_info(&self) -> Result<v1::GetPluginInfoResponse, Status> {
        let endpoint = self.options.controller_endpoint.as_ref().unwrap_or(&self.options.endpoint);
        let call = v1::GetPluginInfoRequest {}.into_call();
        let response = self.client.call(endpoint, call, self.options.call_timeout).await?;
        v1::GetPluginInfoRequest::read(response)
            .ok_or_else(|| Status::local(csi::Code::Internal, "the answer is another method's"))
    }

    /// Whether a driver answers, whatever it answers.
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

fn service_number(capability: &v1::PluginCapability) -> Option<i32> {
    match capability.r#type.as_ref()? {
        v1::plugin_capability::Type::Service(service) => Some(service.r#type),
        v1::plugin_capability::Type::VolumeExpansion(_) => None,
    }
}
