use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::Semaphore;

use crate::batch::AnnotationBatcher;
use crate::concurrency::ConcurrencyLimit;
use crate::error::{ConfigError, ConnectError, TransportError, chain};
use crate::negotiation::Negotiated;
use crate::past::Past;
use crate::throttle::Throttle;
use crate::transport::Client;
use crate::{RequestCounts, proxy};

/// Where a pod finds its API server and its service account.
const SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";
const SERVICE_PORT: &str = "KUBERNETES_SERVICE_PORT";
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A client of one API server. Clones share the connection.
#[derive(Clone)]
pub struct Kube {
    pub(crate) client: Client,
    pub(crate) counts: Arc<RequestCounts>,
    pub(crate) negotiated: Arc<Negotiated>,
    pub(crate) throttle: Option<Arc<Throttle>>,
    pub(crate) limit: Option<Arc<ConcurrencyLimit>>,
    /// Collects annotation patches, so that one request carries many.
    pub(crate) batcher: Arc<AnnotationBatcher>,
    pub(crate) past: Past,
    /// One permit: long lists are read one after the other.
    pub(crate) lists: Arc<Semaphore>,
}

impl Kube {
    /// Connects as a kubeconfig says.
    pub async fn from_kubeconfig(path: &Path) -> Result<Kube, ConnectError> {
        let fail = |reason| ConnectError::Kubeconfig { path: path.display().to_string(), reason };
        let mut kubeconfig = Kubeconfig::read_from(path).map_err(|error| fail(unparsed(&error)))?;
        for plugin in kubeconfig.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut()?.exec.as_mut()) {
            plugin.command = plugin.command.take().map(|command| beside(path, command));
        }
        Kube::from_parsed(kubeconfig).await.map_err(fail)
    }

    async fn from_parsed(kubeconfig: Kubeconfig) -> Result<Kube, ConfigError> {
        let proxy = proxy::named(&kubeconfig);
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| ConfigError::Kubeconfig(chain(&error)))?;
        Kube::from_config(config, proxy.as_deref()).await
    }

    /// Connects to the API server at this URL, without credentials.
    pub async fn from_url(url: &str) -> Result<Kube, ConnectError> {
        let fail = |reason| ConnectError::Url { url: url.into(), reason };
        let config = kube::Config::new(parse_url(url).map_err(fail)?);
        Kube::from_config(config, None).await.map_err(fail)
    }

    /// Connects as the environment says: `KUBECONFIG`, `~/.kube/config`, or the service account of a pod.
    pub async fn from_environment() -> Result<Kube, ConnectError> {
        let (host, port) = (std::env::var(SERVICE_HOST), std::env::var(SERVICE_PORT));
        match (Kubeconfig::read(), host, port) {
            (Ok(kubeconfig), _, _) => Kube::from_parsed(kubeconfig).await.map_err(ConnectError::Environment),
            (Err(_), Ok(host), Ok(port)) => Kube::in_cluster(&host, &port, Path::new(SERVICE_ACCOUNT)).await,
            (Err(error), _, _) => Err(ConnectError::NoCluster(ConfigError::Kubeconfig(chain(&error)))),
        }
    }

    /// Connects as a pod does: to this host and port, with the token and the certificate authority in this folder. The
    /// kubelet may replace both at any time.
    pub async fn in_cluster(host: &str, port: &str, folder: &Path) -> Result<Kube, ConnectError> {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
        let url = parse_url(&format!("https://{host}:{port}")).map_err(ConnectError::ServiceAccount)?;
        let mut config = kube::Config::new(url);
        let authority = folder.join("ca.crt");
        let trusted = CertificateDer::pem_file_iter(&authority).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let trusted =
            trusted.map_err(|error| ConnectError::ServiceAccount(ConfigError::unreadable(&authority, &error)))?;
        config.root_cert = Some(trusted.iter().map(|certificate| certificate.to_vec()).collect());
        config.root_cert_file = Some(authority);
        config.auth_info.token_file = Some(folder.join("token").display().to_string());
        Kube::from_config(config, None).await.map_err(ConnectError::ServiceAccount)
    }

    async fn from_config(config: kube::Config, proxy: Option<&str>) -> Result<Kube, ConfigError> {
        let proxy = proxy::find(&config.cluster_url, proxy, |name| std::env::var(name).ok())?;
        Ok(Kube::over(Client::connect(config, proxy).await?))
    }

    /// Asks the server for `/version`, to report at once what waiting does not cure: that client and server do not trust
    /// each other. A server that is away is not an error.
    pub async fn greet(&self) -> Result<(), ConnectError> {
        let request = http::Request::get("/version").body(Body::empty());
        let Ok(request) = request else { return Ok(()) };
        match self.client.send(request).await.map_err(|error| TransportError::from(&error)) {
            Err(error) if error.is_permanent() => Err(ConnectError::Untrusted(error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// A client of a server in this process, without a socket.
    pub fn in_process<S, B>(service: S) -> Kube
    where
        S: tower::Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        Kube::over(Client::new(service))
    }

    fn over(client: Client) -> Kube {
        let lists = Arc::new(Semaphore::new(1));
        Kube {
            client,
            counts: Arc::default(),
            negotiated: Arc::default(),
            throttle: None,
            limit: None,
            batcher: Arc::default(),
            past: Past::default(),
            lists,
        }
    }

    /// The same connection with a rate limit of its own: so many requests a second, after a burst of so many at once.
    /// Requests for a Lease should use a connection without a limit, so that they do not wait behind others.
    #[must_use]
    pub fn throttled(&self, per_second: f64, burst: u32) -> Kube {
        Kube { throttle: Throttle::new(per_second, burst).map(Arc::new), ..self.clone() }
    }

    /// The same connection with a concurrency limit that adapts to the server. Requests for a Lease should use a connection
    /// without a limit, so that they do not wait behind others.
    #[must_use]
    pub fn paced(&self) -> Kube {
        Kube { limit: Some(Arc::new(ConcurrencyLimit::new())), ..self.clone() }
    }

    /// How many requests have been made on this connection.
    pub fn counts(&self) -> &Arc<RequestCounts> {
        &self.counts
    }
}

fn parse_url(url: &str) -> Result<http::Uri, ConfigError> {
    url.parse().map_err(|error: http::uri::InvalidUri| ConfigError::Url(error.to_string()))
}

/// A plugin whose path is relative is looked for beside the kubeconfig, one without a path in `PATH`.
fn beside(kubeconfig: &Path, command: String) -> String {
    let relative = command.contains('/') && !command.starts_with('/');
    match kubeconfig.parent().filter(|_| relative) {
        Some(folder) => folder.join(command).display().to_string(),
        None => command,
    }
}

/// What is wrong with a kubeconfig, without the excerpt that the YAML parser adds.
fn unparsed(error: &dyn std::error::Error) -> ConfigError {
    ConfigError::Kubeconfig(chain(error).lines().next().unwrap_or_default().into())
}
