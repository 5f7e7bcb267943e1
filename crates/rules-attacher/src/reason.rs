control::reasons! {
    /// Why an attachment is confirmed or not, and why a volume keeps the attacher's finalizer.
    pub enum Reason {
        /// The attachment does not exist.
        AttachmentGone,
        /// The attachment is for another driver.
        NotOurs,
        /// The driver does not publish, and the attachment is confirmed.
        NothingToPublish,
        /// The attachment can never be published.
        Impossible,
        /// The attachment's volume does not exist.
        VolumeMissing,
        /// The attachment's volume is being deleted.
        VolumeLeaving,
        /// The attachment's volume is an in-tree one that has no CSI form.
        VolumeUnreadable,
        /// The driver is not registered on the node, so its id of the node is not known.
        NodeIdUnknown,
        /// The volume may be on one node only, and another node may still have it.
        AttachedElsewhere,
        /// The volume may be on one node only, and this attachment leaves it to another.
        GivingWay,
        /// The volume is about to get the finalizer that keeps it while it is attached.
        AddingVolumeFinalizer,
        /// The attachment is about to get the finalizer that keeps it until it is unpublished.
        AddingAttachmentFinalizer,
        /// A call needs a secret.
        ReadingSecret,
        /// ControllerPublishVolume is called.
        Publishing,
        /// The status is about to say that the volume is attached.
        Confirming,
        /// The volume is attached, and the status says so.
        Attached,
        /// The status is about to say what went wrong.
        ReportingError,
        /// A read past the cache must show that the attachment is to be undone.
        Rechecking,
        /// ControllerUnpublishVolume is called.
        Unpublishing,
        /// The volume's handle or the node's id is not known, so that nobody can be asked to detach.
        DetachStuck,
        /// The volume is unpublished, so the attachment's finalizer goes.
        RemovingAttachmentFinalizer,
        /// The status is about to say that the volume is not attached any more.
        ConfirmingDetached,
        /// The attachment is being deleted and does not carry this attacher's finalizer.
        NothingToUndo,
        /// The volume does not exist.
        VolumeGone,
        /// The volume does not carry this attacher's finalizer.
        NoVolumeFinalizer,
        /// The volume is not being deleted, so the finalizer stays for its next attachment.
        VolumeStays,
        /// The provisioner in the same process removes the finalizers of both.
        ProvisionerHolds,
        /// The volume is being deleted, and an attachment names it.
        StillAttached,
        /// No attachment names the volume, so the finalizer goes.
        RemovingVolumeFinalizer,
        /// The driver is not asked what it has published.
        NotListed,
        /// The driver said lately what it has published.
        Listed,
        /// ListVolumes is called.
        Listing,
    }
}
