control::reasons! {
    /// Why a pod is where it is, or nowhere.
    pub enum Reason {
        /// The pod does not exist.
        PodGone,
        /// The pod has ended.
        PodEnded,
        /// The pod is being deleted and has no node.
        PodBeingDeleted,
        /// The pod has a node.
        Placed,
        /// The pod has a node, and a claim of delayed binding can get no volume there.
        PlacedWithoutVolume,
        /// The pod has a node that does not exist.
        NodeMissing,
        /// The pod names another scheduler.
        OtherScheduler,
        /// The claim that a volume of the pod would make from a template is somebody else's.
        ClaimNotOwned,
        /// A claim of the pod does not exist.
        ClaimMissing,
        /// A claim of the pod is being deleted.
        ClaimBeingDeleted,
        /// A claim of the pod has lost its volume.
        ClaimLost,
        /// A claim of the pod is for one pod at a time, and another pod has it.
        ClaimTaken,
        /// A claim of the pod is not bound, and its class does not wait for a node.
        ClaimUnbound,
        /// The volume of a bound claim is not in the cache yet.
        VolumeNotSeen,
        /// Two claims get their volumes for different nodes.
        NodesDisagree,
        /// A claim gets its volume for a node that takes no pods or does not exist.
        SelectedNodeClosed,
        /// There are no nodes.
        NoNodes,
        /// No node takes the pod.
        NoNodeOpen,
        /// No node that takes such a pod has what it asks for.
        NoNodeHasRoom,
        /// No node that takes the pod takes more volumes of its drivers.
        NoNodeAttachesMore,
        /// No node that takes the pod can reach all its volumes, or has one for each of its claims.
        NoNodeReachesVolumes,
        /// A claim of delayed binding is about to get the node that its volume is needed for.
        SelectingNode,
        /// A free volume that the pod's node reaches is about to be reserved for a claim of delayed binding.
        ReservingVolume,
        /// Claims have a node and no volume yet.
        VolumeForNodeAwaited,
        /// The pod is about to get its node.
        Placing,
    }
}
