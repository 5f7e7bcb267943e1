control::reasons! {
    /// Why a capacity object is there or not.
    pub enum CapacityReason {
        /// Nothing is to be published.
        CapacityUnwanted,
        /// GetCapacity is called.
        AskingForCapacity,
        /// An object is about to say what the driver said.
        PublishingCapacity,
        /// The object says what the driver said.
        CapacityPublished,
        /// The object's class or topology segment is gone, or another object says the same.
        WithdrawingCapacity,
    }
}
