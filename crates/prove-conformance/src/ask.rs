use csi::{Call, Method, Response, registration, v1};

/// A request that knows the type of its response.
#[allow(missing_docs, reason = "the names say it all")]
pub trait Ask: Clone + Send + 'static {
    type Answer: Send + 'static;
    const METHOD: Method;
    fn into_call(self) -> Call;
    /// The response, if it is one of this method.
    fn read(response: Response) -> Option<Self::Answer>;
}

macro_rules! implement {
    ($($service:ident.$name:ident($request:ty) -> $response:ty { $($columns:tt)* })*) => {
        $(impl Ask for $request {
            type Answer = $response;
            const METHOD: Method = Method::$name;
            fn into_call(self) -> Call {
                Call::$name(self)
            }
            fn read(response: Response) -> Option<$response> {
                match response {
                    Response::$name(answer) => Some(answer),
                    _ => None,
                }
            }
        })*
    };
}
csi::for_each_method!(implement);
