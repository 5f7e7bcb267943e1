control::reasons! {
    /// Why a claim's volume has its size and its attributes. Where upstream has an event for it, the name is upstream's.
    pub enum Reason {
        /// The claim does not exist.
        ClaimGone,
        /// The claim has no volume yet.
        NotBound,
        /// The claim's volume does not exist.
        VolumeMissing,
        /// The volume belongs to another driver or another claim.
        NotOurs,
        /// A size, or the whole volume, cannot be read.
        SizeUnreadable,
        /// A write of an earlier incarnation must be made to fail before the driver is called.
        AdoptingClaim,
        /// A call needs a secret.
        ReadingSecret,
        /// The claim has the size it asks for.
        SizeAsRequested,
        /// The driver cannot expand volumes.
        ResizeUnsupported,
        /// The node has resized the filesystem, so the size from before is not needed any more.
        FileSystemResized,
        /// The node has to resize the filesystem.
        FileSystemResizeRequired,
        /// The driver called this size impossible lately.
        ResizeInfeasible,
        /// The claim is about to say which size is under way.
        RecordingResize,
        /// The driver expands volumes only while no pod uses them, and a pod uses this one.
        VolumeInUse,
        /// The volume's access modes cannot be put in CSI's terms.
        VolumeUnusable,
        /// ControllerExpandVolume is called.
        Resizing,
        /// The volume is about to get its new size.
        RecordingVolumeSize,
        /// The claim is about to get its new size.
        VolumeResizeSuccessful,
        /// The claim is about to say why the volume did not grow.
        VolumeResizeFailed,
        /// The driver cannot change attributes.
        ModifyUnsupported,
        /// The claim has the attributes it asks for.
        AttributesAsRequested,
        /// The attributes class does not exist.
        AttributesClassMissing,
        /// The driver called these attributes impossible lately.
        ModifyInfeasible,
        /// The claim is about to say which class is under way.
        RecordingModify,
        /// ControllerModifyVolume is called.
        VolumeModify,
        /// The volume is about to name its new class.
        RecordingVolumeClass,
        /// The claim is about to name its new class.
        VolumeModifySuccessful,
        /// The claim is about to say why the attributes did not change.
        VolumeModifyFailed,
        /// The claim does not ask for other attributes any more.
        VolumeModifyCanceled,
    }
}
