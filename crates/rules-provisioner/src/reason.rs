control::reasons! {
    /// Why a volume is made, deleted, or neither.
    pub enum Reason {
        /// The claim does not exist.
        ClaimGone,
        /// The claim is being deleted, and nothing was begun for it.
        ClaimBeingDeleted,
        /// No provisioner was asked to make the claim's volume.
        NotAsked,
        /// Another provisioner makes the claim's volume, or made this volume.
        NotOurs,
        /// The claim's class names another provisioner.
        ClassNotOurs,
        /// The claim's class does not exist.
        ClassMissing,
        /// Another class took the name of the claim's class while the volume was being made.
        ClassReplaced,
        /// The claim has a volume.
        Bound,
        /// The provisioner of another node is responsible.
        OnAnotherNode,
        /// The provisioners of nodes do not make this claim's volume.
        NotForNodes,
        /// This node is in no topology segment that the class allows; another node may take the claim.
        NotAllowedHere,
        /// The class waits for a node to be selected.
        AwaitingNode,
        /// This node may not take the claim yet.
        AwaitingTurn,
        /// GetCapacity is called for this node.
        AskingForRoom,
        /// The driver has no capacity on this node.
        NoRoomHere,
        /// The claim is about to be taken for this node.
        TakingClaim,
        /// The name that the volume would get is taken.
        VolumeNameTaken,
        /// The journal has no room for another intent.
        JournalFull,
        /// The intent is about to be written.
        RecordingIntent,
        /// An intent of an earlier incarnation is about to be taken over.
        AdoptingIntent,
        /// A read past the cache must show that the claim wants a volume, or that the volume is to be deleted.
        LookingAgain,
        /// A read showed the claim in another state than the cache does.
        ClaimChanged,
        /// The source is about to get the finalizer that keeps it while it is copied.
        AddingSourceFinalizer,
        /// The source is being deleted.
        SourceGoing,
        /// A call needs a secret.
        ReadingSecret,
        /// CreateVolume is called.
        CreatingVolume,
        /// The driver refused the request, which is repeated after a pause.
        CreateRefused,
        /// The driver has no capacity where the selected node is.
        NoRoom,
        /// The selected node cannot have the volume.
        NodeUnfit,
        /// The driver refused, and the request would be another one now.
        StartingOver,
        /// The PersistentVolume is about to be created.
        RecordingVolume,
        /// A read past the cache must show which PersistentVolume has the volume's name.
        LookingForVolume,
        /// A PersistentVolume accounts for the volume, so the intent goes.
        VolumeRecorded,
        /// A PersistentVolume accounts for the volume, and the intent leaves the journal with others.
        EntryServed,
        /// The PersistentVolume exists and the claim is not bound yet.
        VolumeMade,
        /// The volume is not wanted any more, so DeleteVolume is called.
        UndoingVolume,
        /// DeleteVolume succeeded for a volume that is not wanted any more.
        VolumeUndone,
        /// The driver refused to make a volume that is not wanted any more.
        NothingMade,
        /// Nothing is left to make or to undo.
        NothingLeft,
        /// A volume may exist that is not wanted any more, and its class cannot be used to find it.
        CannotUndo,
        /// The volume does not exist.
        VolumeGone,
        /// The volume is being deleted and does not carry the provisioner's finalizer.
        VolumeBeingDeleted,
        /// The volume's reclaim policy is Delete, and it is not released.
        VolumeKept,
        /// The volume's reclaim policy keeps it.
        Retained,
        /// The volume is about to get the finalizer that keeps its object until the driver has deleted it.
        AddingFinalizer,
        /// The driver has deleted the volume, or will never have to, so the finalizer goes.
        RemovingFinalizer,
        /// The volume does not name a volume of the driver.
        NoSource,
        /// The volume is an in-tree one that has no CSI form.
        VolumeUntranslatable,
        /// Attachments name the volume.
        StillAttached,
        /// The journal still has an intent of the volume's claim.
        IntentNotSettled,
        /// A read showed the volume in another state than the cache does.
        VolumeChanged,
        /// DeleteVolume is called.
        DeletingVolume,
        /// The driver has deleted the volume, so its object goes.
        ForgettingVolume,
        /// The driver does not have the capability that this needs.
        DriverCannot,

        /// The class is an in-tree one that has no CSI form.
        ClassUntranslatable,
        /// The claim selects volumes by label.
        SelectorNotSupported,
        /// The prefix of volume names is empty.
        NoNamePrefix,
        /// The claim requests no storage.
        NoSize,
        /// The requested size cannot be read.
        BadSize,
        /// The volume mode is not known.
        BadVolumeMode,
        /// The claim names no access mode.
        NoAccessMode,
        /// An access mode cannot be served.
        BadAccessMode,
        /// The attributes class does not exist.
        AttributesClassMissing,
        /// The attributes class is another driver's.
        AttributesClassOfAnother,
        /// The class names two filesystem types.
        TwoFilesystemTypes,
        /// The class has a parameter with a reserved prefix and an unknown name.
        UnknownParameter,

        /// A secret's namespace is no name of a namespace.
        BadSecretNamespace,
        /// A secret's name is no name of a secret.
        BadSecretName,
        /// A secret's name or namespace is empty.
        EmptySecret,
        /// A secret's name comes without its namespace, or the other way round.
        IncompleteSecret,
        /// The same secret is named under an old and a new parameter.
        TwoSecrets,
        /// A secret's template uses a token that is not known there.
        UnknownToken,

        /// The driver has no topology keys on the selected node.
        NoTopologyKeys,
        /// The selected node does not exist.
        NodeMissing,
        /// The selected node lacks a topology label.
        LabelsMissing,
        /// The selected node is in no topology segment that the class allows.
        NodeNotAllowed,
        /// No node says where volumes of the driver can be.
        NoTopology,

        /// The claim's data source has no name.
        SourceUnnamed,
        /// The data source is a snapshot of another API group.
        WrongSourceGroup,
        /// The data source is of a kind that something else fills volumes from.
        ExternalPopulator,
        /// Data sources in other namespaces are switched off.
        CrossNamespaceOff,
        /// No ReferenceGrant allows the use of a data source in another namespace.
        NotGranted,
        /// The snapshot does not exist.
        SnapshotMissing,
        /// The snapshot is being deleted.
        SnapshotBeingDeleted,
        /// The snapshot was taken by another driver.
        SnapshotOfAnotherDriver,
        /// The snapshot is not ready to use.
        SnapshotNotReady,
        /// The snapshot's content does not name a snapshot of the driver.
        NoSnapshotHandle,
        /// The snapshot is not bound to a content.
        SnapshotUnbound,
        /// The snapshot's content does not exist.
        ContentMissing,
        /// The snapshot's content belongs to another snapshot.
        ContentOfAnother,
        /// The claim is smaller than the snapshot.
        SmallerThanSnapshot,
        /// The claim has another volume mode than the snapshot was taken from.
        VolumeModeChanged,
        /// The claim that is to be copied does not exist.
        SourceMissing,
        /// The claim that is to be copied is not bound.
        SourceNotBound,
        /// The claim that is to be copied is being deleted.
        SourceBeingDeleted,
        /// The claim that is to be copied has no class.
        SourceWithoutClass,
        /// The claim is smaller than the one that is to be copied.
        SmallerThanSource,
        /// The claim has another volume mode than the one that is to be copied.
        SourceModeDiffers,
        /// The claim that is to be copied names no volume.
        SourceWithoutVolume,
        /// The volume that is to be copied does not exist.
        SourceVolumeMissing,
        /// The volume that is to be copied has no CSI driver.
        SourceNotCsi,
        /// The volume that is to be copied is another driver's.
        SourceOfAnotherDriver,
        /// The volume that is to be copied belongs to another claim.
        SourceVolumeOfAnother,
        /// The volume that is to be copied is not bound.
        SourceVolumeNotBound,
    }
}
