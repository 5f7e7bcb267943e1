control::reasons! {
    /// Why a volume is mounted here or not, and why a pod runs or not.
    pub enum Reason {
        /// The volume or the pod has nothing on this node.
        NotHere,
        /// The Node object does not exist.
        NodeMissing,
        /// The Node object does not carry this incarnation of the agent.
        NodeNotIntroduced,
        /// The record of the volume cannot be read.
        RecordUnreadable,
        /// Something is mounted where no record says what.
        MountedWithoutRecord,
        /// The volume of a pod is not known.
        VolumeUnknown,
        /// The volume cannot be mounted by this agent.
        VolumeNotSupported,
        /// The volume cannot be reached from this node.
        NodeAffinityMismatch,
        /// The volume's driver is not registered on this node.
        DriverNotRegistered,
        /// The volume's attachment does not exist or is not confirmed.
        NotAttached,
        /// The volume takes one pod at a time, and another one has it.
        UsedByAnotherPod,
        /// The Node's status does not say that the volume is attached.
        NotReportedAttached,
        /// The Node's status does not say that the volume is in use.
        NotReportedInUse,
        /// An earlier write that took the volume off the in-use list was never answered.
        ClearingUnanswered,
        /// A read past the cache must show that the volume is attached and reported in use.
        AttachmentNotProved,
        /// The record does not say yet where the volume will be mounted.
        NotRecorded,
        /// The driver has not staged the volume.
        NotStaged,
        /// The mount of a volume is gone, and nobody here took it away.
        MountVanished,
        /// The driver has not published the volume for a pod.
        NotPublished,
        /// The claim does not say yet that its filesystem is being grown.
        RecordingResize,
        /// What the driver needs to know for a growth is read.
        ReadingSecret,
        /// The filesystem of a mounted volume is smaller than its claim was promised.
        FileSystemTooSmall,
        /// The filesystem has grown, which the record or the claim does not say yet.
        FileSystemResized,
        /// The claim does not say yet why its filesystem did not grow.
        ReportingResizeError,
        /// The filesystem cannot grow because it is mounted read-only.
        ResizeReadOnly,
        /// The driver cannot grow the filesystem while it is in use.
        ResizeNeedsRestart,
        /// The driver cannot grow filesystems.
        ResizeUnsupported,
        /// A secret that the next call takes along must be read.
        SecretNotRead,
        /// A token that the next call takes along must be asked for.
        TokenNotHad,
        /// The driver is asked from time to time whether the volume is well.
        HealthNotAsked,
        /// The volume was unwell and is well again, which is not told yet.
        VolumeRecovered,
        /// The files of a published volume are not the pod's group's yet.
        GroupNotSet,
        /// The volume is mounted for the pods that want it.
        Mounted,
        /// A driver serves the volume of a plugin that was taken from it since.
        NodeNotDrained,
        /// A pod that does not want the volume any more has not ended.
        PodNotEnded,
        /// The driver has not unpublished the volume for a pod that has ended.
        NotUnpublished,
        /// The directory of an unpublished volume is still there.
        TargetNotRemoved,
        /// The record still lists a pod that the volume is unpublished for.
        StillRecorded,
        /// The driver has not unstaged the volume.
        NotUnstaged,
        /// The directory of an unstaged volume is still there.
        StagingNotRemoved,
        /// The record of a volume that is not mounted any more is still there.
        RecordNotRemoved,
        /// The Node's status says that a volume is in use which is not here any more.
        StillReportedInUse,
        /// A read found the pod that the cache does not hold: the watch is behind.
        CacheBehind,
        /// A read past the cache must show that a pod is gone.
        PodNotSeen,
        /// A process of a pod that is to end runs and is about to be stopped.
        ProcessRunning,
        /// A process of a pod that is to end was told to stop.
        ProcessEnding,
        /// Nothing of the pod runs, so its volumes may be taken down.
        NotSealed,
        /// The volumes of a pod that has ended are being taken down.
        VolumesNotGone,
        /// The machine still remembers an ended process.
        ProcessNotForgotten,
        /// Directories of a pod that has ended are still there.
        DirectoriesNotRemoved,
        /// Directories of pods that are gone are still there.
        OrphanedPods,
        /// The directory of a pod that is gone holds something that might be somebody's.
        OrphanKept,
        /// The pod has ended and is not being deleted.
        PodEnded,
        /// The pod could not be run and is not being deleted; the text says why.
        PodFailed,
        /// Only finalizers keep the pod object.
        PodHasFinalizers,
        /// Nothing is left of the pod but its object.
        PodNotDeleted,
        /// The pod's status does not say how the pod fares.
        StatusNotWritten,
        /// A container of the pod is about to be started.
        ContainerNotStarted,
        /// A volume of the pod is not mounted yet.
        VolumesNotReady,
        /// A container keeps ending and is started again after a pause.
        CrashLoopBackOff,
        /// The init containers of the pod have not done their part yet.
        PodInitializing,
        /// A container does not answer its probes as it should, or a hook of it failed.
        Unhealthy,
        /// A probe or hook is due.
        CheckDue,
        /// A probe is due later.
        CheckedLater,
        /// A probe or hook has nothing to do.
        NothingToCheck,
        /// The pod is as it should be.
        PodRuns,
        /// A container has no command.
        CommandMissing,
        /// The names of namespace, pod and container are too long together.
        NamesTooLong,
        /// A volume of the pod is of a kind that this agent does not know.
        VolumeKindNotSupported,
        /// A config map or secret that the pod needs has not been read, or is missing.
        SourceNotRead,
        /// A config map or secret of a volume lacks an entry that the pod names.
        VolumeContentsMissing,
        /// A volume does not show yet what it should.
        VolumeContentsOld,
        /// A directory with a limit is measured from time to time.
        ScratchNotMeasured,
        /// A directory of the pod has outgrown its limit.
        Evicted,
        /// A container mounts a volume that the pod does not have.
        VolumeMountUnknown,
        /// A container's variables cannot be had, or its security context contradicts itself.
        CreateContainerConfigError,
        /// The pod asks for an isolation that this agent does not offer.
        SecurityContextNotSupported,
    }
}
