control::reasons! {
    /// Why a volume is attached to a node or not.
    pub enum Reason {
        /// The volume does not exist, and no attachment names it.
        VolumeGone,
        /// An attachment names a volume that does not exist.
        VolumeMissing,
        /// The volume has no CSI driver.
        NotCsi,
        /// The volume cannot be attached as it is written; the text says what to correct.
        Unattachable,
        /// The in-tree plugin of the volume serves it on the node.
        ServedByPlugin,
        /// The node expects the driver that has taken the plugin over, and here the migration is off.
        Disputed,
        /// The node still uses the volume by its in-tree plugin.
        PluginHolds,
        /// No pod on the node uses the volume.
        NotWanted,
        /// The driver's volumes need no attachment.
        NoAttachRequired,
        /// The node does not exist.
        NodeGone,
        /// The kubelet of the node attaches its volumes itself.
        NodeNotManaged,
        /// The node is read past the cache: does it leave the plugin's volumes to the driver?
        AskingNode,
        /// An attachment is about to be created.
        Attaching,
        /// The attacher has not attached the volume yet.
        WaitingForAttacher,
        /// The attacher reports that attaching fails.
        AttachFailing,
        /// A new attachment has to wait until the old one is gone.
        AttachmentLeaving,
        /// A deletion sent by an earlier incarnation must be made to fail before the attachment is relied on.
        Adopting,
        /// The node's status is about to say that the volume is attached.
        Reporting,
        /// The volume is attached, and the node's status says so.
        Attached,
        /// The volume may be on one node only, and another node is being detached from it.
        DetachingElsewhere,
        /// The volume may be on one node only, and has an attachment to another.
        AttachedElsewhere,
        /// The volume may be on one node only, and another node's status says that it is attached there.
        ReportedElsewhere,
        /// The volume may be on one node only, and another node says that it uses it.
        InUseElsewhere,
        /// The volume may be on one node only, and another node that wants it comes first.
        WantedElsewhere,
        /// The node's status is about to stop saying that the volume is attached.
        TakingReportBack,
        /// The node still uses the volume.
        InUse,
        /// The driver does not detach the volume, and says why.
        DetachFailing,
        /// The volume may be taken from the node, if the node is dead: its Lease is read.
        CheckingLease,
        /// The volume may be taken from the node, if its Lease is not renewed for a while.
        AwaitingLease,
        /// The volume may be taken from the node, but the node renews its Lease, so it lives.
        NodeLives,
        /// The node is dead, so the volume is taken from it without its word.
        ForcingDetach,
        /// Somebody else cares for a volume that a node reports.
        KnownOtherwise,
        /// A write to the node must prove that it does not use the volume.
        Fencing,
        /// A read past the cache must show that the node is gone.
        CheckingNode,
        /// The attachment's deletion is asked for, or was.
        Detaching,
    }
}
