control::reasons! {
    /// Why a driver is registered on this node or not. The registrar and the marker share them.
    pub enum Reason {
        /// The Node object does not exist.
        NodeMissing,
        /// The Node object does not carry this incarnation of the agent.
        NodeNotIntroduced,
        /// The Node object does not say Ready.
        NodeNotReady,
        /// The Node object does not say what the machine is.
        MachineNotDescribed,
        /// The Node object said long ago that the node is ready.
        HeartbeatDue,
        /// The Lease by which the node shows that it lives does not exist.
        LeaseMissing,
        /// The Lease is to be renewed.
        LeaseDue,
        /// The Lease shows that the node lives.
        LeaseHeld,
        /// A driver that the node's objects name has no socket.
        DriverAbsent,
        /// The CSINode object does not exist.
        CSINodeMissing,
        /// The CSINode object belongs to an earlier node of the same name.
        CSINodeOfAnotherNode,
        /// The CSINode object does not list the in-tree plugins that the node has left to drivers.
        MigratedPluginsNotListed,
        /// Node and CSINode are as they should be.
        NodeReady,
        /// The registration socket is gone.
        SocketGone,
        /// The plugin behind the socket has not said who it is.
        DriverUnknown,
        /// The driver has not said whether it wants to know about pods.
        OptionsUnknown,
        /// NodeGetInfo has not been answered.
        NodeIdUnknown,
        /// NodeGetCapabilities has not been answered.
        AbilitiesUnknown,
        /// The driver cannot be registered; the text says why and what to do.
        DriverTurnedAway,
        /// Another driver has the name and is to give it up, but has not heard so yet.
        NameNotFree,
        /// No other driver has the name.
        NameFree,
        /// CSINode has no entry of the driver.
        DriverNotListed,
        /// CSINode has another volume limit than the driver says.
        DriverLimitChanged,
        /// CSINode has another node id or other topology keys than the driver says.
        NodeIdChanged,
        /// The annotation with the node ids is no JSON object of strings.
        NodeIdAnnotationUnreadable,
        /// The Node object lacks the driver's id of it, or its topology labels.
        NodeIdNotAnnotated,
        /// The Node object has the driver's id of it and its topology labels.
        NodeMarked,
        /// The driver has not been told that it is registered.
        DriverNotTold,
        /// The driver is to be asked again how many volumes the node takes.
        LimitDue,
        /// The driver is registered.
        DriverRegistered,
    }
}
