//! The control plane all these tests share. It lives as long as one of them wants it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prove_cluster::{ControlPlane, Options, PeerProcess, Scratch, peer};

use super::objects;

/// What works on volumes, and what pods of a deployment need to come into being. Nobody judges nodes: there is no kubelet.
const CONTROLLERS: &str = "persistentvolume-binder-controller,persistentvolume-attach-detach-controller,\
    persistentvolume-expander-controller,persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,\
    serviceaccount-controller,statefulset-controller,daemonset-controller,deployment-controller,replicaset-controller,\
    garbage-collector-controller";

/// Every request of a service account is written down, with its answer.
const AUDIT: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ['system:serviceaccounts']}
- {level: None}
";

static SHARED: Mutex<Weak<Plane>> = Mutex::new(Weak::new());
static TURN: Mutex<()> = Mutex::new(());

/// A control plane with the Go snapshot controller.
pub struct Plane {
    _snapshots: PeerProcess,
    pub control: ControlPlane,
    _policy: Scratch,
}

/// The control plane, and the right to work on it alone.
pub struct Turn {
    _alone: MutexGuard<'static, ()>,
    pub plane: Arc<Plane>,
}

/// Waits for a turn. A test that failed leaves what it may have left; the others go on.
pub fn turn() -> Turn {
    let plane = shared();
    Turn { _alone: TURN.lock().unwrap_or_else(PoisonError::into_inner), plane }
}

/// Waits for a turn on a control plane of its own, in which kube-controller-manager runs these controllers.
pub fn turn_with(controllers: &str) -> Turn {
    let alone = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Turn { _alone: alone, plane: Arc::new(Plane::start(controllers)) }
}

fn shared() -> Arc<Plane> {
    let mut held = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plane) = held.upgrade() {
        return plane;
    }
    let plane = Arc::new(Plane::start(CONTROLLERS));
    *held = Arc::downgrade(&plane);
    plane
}

impl Plane {
    fn start(controllers: &str) -> Plane {
        let policy = Scratch::new("audit").unwrap();
        let options = Options {
            controller_manager: true,
            scheduler: true,
            controllers: controllers.into(),
            apiserver_flags: audit_flags(policy.path()),
            ..Options::default()
        };
        let control = ControlPlane::start(options).unwrap();
        define(&control);
        control.apply(objects::NODE).unwrap();
        // There is no kubelet to say that the node is ready.
        control.kubectl(&["taint", "node", "n1", "node.kubernetes.io/not-ready-"]).unwrap();
        let config = format!("--kubeconfig={}", control.kubeconfig().display());
        let program = peer("snapshot-controller").unwrap();
        let snapshots =
            PeerProcess::start("snapshot-controller", &program, &[&*config, "--http-endpoint="], control.directory())
                .unwrap();
        Plane { _snapshots: snapshots, control, _policy: policy }
    }

    /// The file with the requests of service accounts.
    pub fn audit(&self) -> PathBuf {
        audit(&self.control)
    }
}

/// The kinds that are not Kubernetes' own are served from now on.
pub fn define(control: &ControlPlane) {
    control.apply(&objects::definitions()).unwrap();
    for (_, plural, version, _) in objects::KINDS {
        let name = format!("crd/{plural}.{}", version.split('/').next().unwrap());
        control.kubectl(&["wait", "--for=condition=Established", &name, "--timeout=60s"]).unwrap();
    }
}

/// Flags by which kube-apiserver writes down what service accounts ask for; the policy is kept in this folder.
pub fn audit_flags(folder: &Path) -> Vec<String> {
    let file = folder.join("policy.yaml");
    std::fs::write(&file, AUDIT).unwrap();
    vec![
        format!("--audit-policy-file={}", file.display()),
        "--audit-log-path=audit.log".into(),
        "--audit-log-mode=blocking".into(),
    ]
}

/// Where it does.
pub fn audit(control: &ControlPlane) -> PathBuf {
    control.directory().join("audit.log")
}
