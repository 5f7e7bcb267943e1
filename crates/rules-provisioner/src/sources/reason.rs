control::reasons! {
    /// Why a source carries the provisioner's finalizer or not.
    pub enum SourceReason {
        /// The source does not exist.
        SourceGone,
        /// The source does not carry the finalizer.
        NoFinalizer,
        /// A claim that was copied keeps the finalizer until it is deleted.
        SourceStays,
        /// Volumes are being made from the source.
        SourceInUse,
        /// No volume is being made from the source, so the finalizer goes.
        RemovingFinalizer,
    }
}
