use alloc::format;
use alloc::string::String;

/// Where in an object a walk is; made into text only when somebody has to be told.
pub(crate) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    pub(crate) fn text(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Field(Path::Root, name) => String::from(*name),
            Path::Field(parent, name) => format!("{}.{name}", parent.text()),
            Path::Item(parent, at) => format!("{}[{at}]", parent.text()),
        }
    }
}
