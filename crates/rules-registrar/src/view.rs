use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;

use api::{CSINode, Lease, Node};
use control::Timestamp;

use crate::limit::LimitWishes;
use crate::local::{MachineFacts, Socket};

/// What a decision looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// This node's own objects.
    SelfNode(Box<SelfView>),
    /// A registration socket.
    Socket(Box<SocketView>),
    /// The socket is gone.
    NoSocket,
    /// The Lease by which the node shows that it lives.
    Lease(LeaseView),
}

/// The Lease by which the node shows that it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// The node's name, which is the Lease's.
    pub name: String,
    /// The Node object.
    pub node: Option<Arc<Node>>,
    pub lease: Option<Arc<Lease>>,
    /// For how long it is to count.
    pub seconds: u32,
}

/// This node's own objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfView {
    /// The node's name.
    pub name: String,
    /// This incarnation of the agent.
    pub incarnation: String,
    /// What the machine is.
    pub machine: Option<MachineFacts>,
    /// The Node object.
    pub node: Option<Arc<Node>>,
    /// The CSINode object.
    pub csi_node: CsiNodeSide,
    /// In-tree plugins that the node has left to drivers.
    pub migrated_plugins: Option<String>,
    /// Drivers that these objects name and that have no socket, and since when.
    pub absent: BTreeMap<String, Timestamp>,
}

/// A registration socket and the objects its driver goes into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketView {
    pub path: String,
    /// What it has answered.
    pub socket: Socket,
    /// When the driver is to be asked again how many volumes the node takes.
    pub limit: LimitWishes,
    /// Another socket whose driver has the same name.
    pub rival: Option<NameRival>,
    /// The Node object.
    pub node: NodeObject,
    /// The CSINode object.
    pub csi_node: CsiNodeSide,
}

/// Another socket whose driver has the same name, by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameRival {
    /// The name is its own, or is to be.
    Keeps(String),
    /// It has to give up the name to this socket, and has not heard so yet.
    Leaves(String),
}

/// The Node object as a driver's registration sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeObject {
    /// Not there, or not yet introduced by this incarnation of the agent.
    NotYet,
    /// It carries this incarnation.
    Ours(Arc<Node>),
}

/// The CSINode object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CsiNodeSide {
    Missing,
    /// It belongs to an earlier Node of the same name.
    Foreign(Arc<CSINode>),
    /// It belongs to the Node.
    Ours(Arc<CSINode>),
}
