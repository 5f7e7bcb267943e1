control::reasons! {
    /// Why a node or a pod is left as it is, or not.
    pub enum Reason {
        /// The object does not exist.
        Gone,
        /// The node has shown that it lives; by our clock that counts from now.
        NodeHeard,
        /// The node shows that it lives.
        NodeAlive,
        /// The Lease was not renewed in time, as far as the cache knows: it is read past the cache.
        CheckingLease,
        /// The node does not renew its Lease, so it is said to be Unknown.
        NodeStatusUnknown,
        /// Pods are about to be kept away from the node, or evicted from it, by a taint.
        Tainting,
        /// The node is heard of again, or is ready, and its taints are about to go.
        Untainting,
        /// Nothing is heard of the node.
        NodeSilent,
        /// The node says that it is not ready.
        NodeNotReady,
        /// No other node is ready, so nobody is evicted: it may be us who hear nothing.
        NoOtherNode,
        /// The pod has no node.
        NotPlaced,
        /// Nothing ends the pod where it is.
        MayStay,
        /// The pod has ended.
        PodEnded,
        /// The pod is being deleted, and its node lives.
        PodBeingDeleted,
        /// Since when a taint is there is not written on it, so it counts from now.
        TaintNoticed,
        /// The pod tolerates a taint for a while.
        Tolerating,
        /// The pod does not tolerate a taint, or no longer, and is about to be deleted.
        TaintManagerEviction,
        /// The pod may be removed if its node is dead, and its Lease is not renewed for a while.
        AwaitingLease,
        /// The pod may be removed if its node is dead, but the node renews its Lease.
        NodeLives,
        /// A read past the cache must show that the pod's node is gone.
        CheckingNode,
        /// The pod's node is gone; it may come back for a while.
        NodeGone,
        /// The pod's node is dead or gone, so the pod is about to be removed.
        DeletionByPodGC,
    }
}
