/// A message: its name for people, and its fields by number and by the name they have in JSON.
pub struct Message {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [(u32, &'static str, Form)],
}

impl Message {
    /// A message of these fields, at most as many as a set of them has bits.
    pub(crate) const fn of(name: &'static str, fields: &'static [(u32, &'static str, Form)]) -> Message {
        assert!(fields.len() <= u64::BITS as usize, "a message has more fields than can be ticked off");
        Message { name, fields }
    }

    /// The field with this name in JSON.
    pub(crate) fn named(&self, name: &str) -> Option<&'static (u32, &'static str, Form)> {
        self.fields.iter().find(|field| field.1 == name && !matches!(field.2, Form::Inlined(_) | Form::Unread))
    }
}

/// What a field holds.
pub enum Form {
    /// A text.
    Text,
    /// Yes or no.
    Truth,
    /// A whole number of 64 bits.
    Number,
    /// A whole number of 32 bits.
    Small,
    /// A time to the second.
    Time,
    /// A time to the microsecond.
    MicroTime,
    /// Texts, one after the other.
    Texts,
    /// Texts by name.
    TextMap,
    /// Bytes by name, which JSON writes in base64.
    BytesMap,
    /// Quantities by name.
    Quantities,
    /// A message.
    Part(&'static Message),
    /// Messages, one after the other.
    Parts(&'static Message),
    /// A message whose fields stand in JSON among those of the message that holds it.
    Inlined(&'static Message),
    /// Where nothing was set nothing is written, so that empty, zero and false are values like any other.
    Set(&'static Form),
    /// Taken and left out: nobody keeps it.
    Unread,
}

impl Form {
    /// One field in JSON, many in these bytes.
    pub(crate) fn is_repeated(&self) -> bool {
        match self {
            Form::Texts | Form::TextMap | Form::BytesMap | Form::Quantities | Form::Parts(_) | Form::Unread => true,
            Form::Text
            | Form::Truth
            | Form::Number
            | Form::Small
            | Form::Time
            | Form::MicroTime
            | Form::Part(_)
            | Form::Inlined(_)
            | Form::Set(_) => false,
        }
    }
}

/// Declares tables: `NAME = "name for people" { number "name in JSON" form, … }`.
macro_rules! messages {
    ($($visible:vis $id:ident = $name:literal { $($number:literal $field:literal $form:expr),* $(,)? })*) => { $(
        #[doc = concat!("The fields of ", $name, ".")]
        $visible static $id: crate::Message = crate::Message::of($name, &[$(($number, $field, $form)),*]);
    )* };
}
pub(crate) use messages;
