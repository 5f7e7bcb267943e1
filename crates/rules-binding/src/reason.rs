control::reasons! {
    /// Why a claim or a volume is as it is.
    pub enum Reason {
        /// The claim does not exist.
        ClaimGone,
        /// The claim is being deleted and carries no finalizer of this controller.
        ClaimBeingDeleted,
        /// The claim is being deleted, and pods still use it.
        ClaimInUse,
        /// The claim is being deleted, and a list past the cache must show that no pod uses it.
        LookingForUsers,
        /// A list found pods that use the claim and that the cache does not hold: the watch is behind.
        UsersNotSeenYet,
        /// The claim is about to get the finalizer that keeps it while pods use it.
        AddingClaimFinalizer,
        /// The claim is being deleted and no pod uses it, so the finalizer goes.
        RemovingClaimFinalizer,
        /// The size that the claim requests cannot be read.
        BadRequest,
        /// The claim names no class and gets the default one.
        SettingDefaultClass,
        /// No volume fits, and none is made for the claim's class.
        NoVolumeFits,
        /// The claim's class does not exist.
        ClassMissing,
        /// The claim's class names a provisioner that is no CSI driver.
        ProvisionerNotSupported,
        /// The class delays binding, and no pod uses the claim yet.
        WaitForFirstConsumer,
        /// The class delays binding, and the pods that use the claim have no node yet.
        WaitForPodScheduled,
        /// A provisioner was asked to make the volume.
        ExternalProvisioning,
        /// The class names another provisioner than the one that was asked and may be at work.
        ProvisionerBusy,
        /// The claim is about to name the provisioner that should make its volume.
        CallingProvisioner,
        /// The object does not say which driver has taken over its plugin, or says it wrongly.
        MarkingMigrated,
        /// The claim does not say whether pods use it.
        TellingUse,
        /// The claim does not name the driver that grows its volume.
        CallingResizer,
        /// A claim is made from the template in a pod.
        MakingClaim,
        /// The claim that a pod would make from a template is somebody else's.
        ClaimNotOwned,
        /// The pod has the claims that it makes from templates.
        ClaimsMade,
        /// The pod is gone, has ended or is being deleted.
        PodGone,
        /// The claim names a volume that does not exist.
        VolumeNotFound,
        /// The claim names a volume that belongs to another claim.
        VolumeTaken,
        /// The claim should name a volume and names none.
        VolumeNotNamed,
        /// The volume of a bound claim does not exist any more.
        VolumeVanished,
        /// The volume of a bound claim belongs to another claim now.
        ClaimMisbound,
        /// A read found the volume that the cache does not hold: the watch is behind.
        VolumeNotSeenYet,
        /// A read past the cache must show that a claim's volume is gone.
        LookingForVolume,
        /// The volume that is meant for the claim does not fit it.
        VolumeMismatch,
        /// First write of a binding.
        ReservingVolume,
        /// Second write of a binding.
        BindingVolume,
        /// Third write of a binding.
        BindingClaim,
        /// Fourth write of a binding.
        ReportingBound,
        /// Claim and volume are bound to each other.
        Bound,
        /// The bound claim asks for more than it has, and others are to grow its volume.
        ExternalExpanding,
        /// The volume does not exist.
        VolumeGone,
        /// The volume is being deleted.
        VolumeBeingDeleted,
        /// The volume is about to get the finalizer that keeps it while it is bound.
        AddingVolumeFinalizer,
        /// The volume is being deleted and is not bound, so the finalizer goes.
        RemovingVolumeFinalizer,
        /// The volume is free.
        Available,
        /// The volume has no claim, which its phase does not say yet.
        MarkingAvailable,
        /// A user reserved the volume for a claim.
        Reserved,
        /// The volume refers to a claim that does not name it yet.
        ClaimNotBound,
        /// A read past the cache must show that a volume's claim is gone.
        LookingForClaim,
        /// A read found the claim that the cache does not hold: the watch is behind.
        ClaimNotSeenYet,
        /// The volume's claim is gone, which its phase does not say yet.
        MarkingReleased,
        /// The volume's claim is gone, and the provisioner is to delete the volume.
        Released,
        /// The volume's claim is gone, and the reclaim policy keeps the volume.
        Retained,
        /// Nobody can do what the policy of a released volume asks for, which its phase does not say yet.
        MarkingFailed,
        /// The volume's claim is gone, and pods that use the volume are not.
        VolumeUsed,
        /// The volume's claim is gone, and nothing here recycles volumes.
        VolumeFailedRecycle,
        /// The volume's claim is gone, and no driver can delete such a volume.
        VolumeFailedDelete,
        /// The volume's claim is gone, and nobody knows its reclaim policy.
        VolumeUnknownReclaimPolicy,
        /// The claim took another volume, so this one is free again.
        UnreservingVolume,
        /// The claim took another volume, so the one made for it is not needed.
        SurplusVolume,
    }
}
