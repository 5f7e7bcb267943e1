use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut};
use csi::{Call, Code, Method, Response, Status};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, UnaryService};

use crate::authority::Plain;
use crate::{socket, wire};

/// Connections accepted and not yet taken up; accepting waits when it is full.
const WAITING_CONNECTIONS: usize = 16;
/// How long to pause when no connection can be accepted, as when all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Trailers are limited; a longer text would cost the caller the whole status.
const LONGEST_TEXT: usize = 2048;

/// A service that answers calls of any method.
pub trait Answers: Send + Sync + 'static {
    /// Answers a call. It runs to its end even if the caller hangs up.
    fn answer(&self, call: Call) -> impl Future<Output = Result<Response, Status>> + Send;
}

/// The process at the other end of a connection, as the kernel knew it when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    /// `None` if the process is in another pid namespace. The number may belong to another process by now.
    pub pid: Option<i32>,
}

tokio::task_local! {
    static CALLER: Option<Caller>;
}

/// The process that made the call which is being answered; `None` outside of [`Answers::answer`], and in tasks it spawns.
pub fn caller() -> Option<Caller> {
    CALLER.try_with(|caller| *caller).ok().flatten()
}

impl Caller {
    /// The process at the other end, if the kernel tells.
    pub(crate) fn of(stream: &UnixStream) -> Option<Caller> {
        let peer = stream.peer_cred().ok()?;
        Some(Caller { uid: peer.uid(), gid: peer.gid(), pid: peer.pid() })
    }
}

/// A running server.
pub struct Server {
    task: JoinHandle<io::Result<()>>,
}

impl Server {
    /// Waits until the server was stopped, removed its socket, and ended every call it had begun.
    pub async fn finished(self) -> io::Result<()> {
        self.task.await.map_err(io::Error::other)?
    }
}

/// Serves these methods at a socket until `shutdown` ends. When it returns, clients can connect.
///
/// Only this process's user and root can connect. A method that is not listed is answered with UNIMPLEMENTED.
pub async fn serve<A: Answers>(
    path: &Path,
    methods: &'static [Method],
    service: A,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<Server> {
    let (listener, file) = socket::listen(path).await?;
    let (work, mut ended) = mpsc::channel(1);
    let door = Door { service: Arc::new(service), methods, work };
    let (sender, connections) = mpsc::channel(WAITING_CONNECTIONS);
    let accepting = tokio::spawn(accept(listener, sender));
    let stop = async move {
        shutdown.await;
        // First the name, so that nobody new finds us, then the door.
        let removed = file.remove();
        accepting.abort();
        removed
    };
    let task = tokio::spawn(async move {
        let (tell, told) = tokio::sync::oneshot::channel();
        let signal = async move { drop(tell.send(stop.await)) };
        let incoming = ReceiverStream::new(connections);
        let served = tonic::transport::Server::builder().serve_with_incoming_shutdown(door, incoming, signal).await;
        // Work whose caller hung up has no connection, but holds a sender.
        while ended.recv().await.is_some() {}
        served.map_err(io::Error::other)?;
        told.await.unwrap_or(Ok(()))
    });
    Ok(Server { task })
}

async fn accept(listener: UnixListener, connections: mpsc::Sender<io::Result<Plain<UnixStream>>>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if welcome(&stream) => {
                if connections.send(Ok(Plain::new(stream))).await.is_err() {
                    return;
                }
            }
            Ok(_) => {}
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// The file's mode says the same; this holds even if somebody widened it (reliability 122).
fn welcome(stream: &UnixStream) -> bool {
    Caller::of(stream).is_some_and(|peer| peer.uid == 0 || peer.uid == rustix::process::geteuid().as_raw())
}

/// Finds the method a request is for and has it answered.
struct Door<A> {
    service: Arc<A>,
    methods: &'static [Method],
    work: mpsc::Sender<Infallible>,
}

impl<A> Clone for Door<A> {
    fn clone(&self) -> Self {
        Door { service: self.service.clone(), methods: self.methods, work: self.work.clone() }
    }
}

type Answering<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<A: Answers> tower::Service<http::Request<Body>> for Door<A> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = wire::method_at(request.uri().path()).filter(|method| self.methods.contains(method));
        let Some(method) = method else {
            let status = tonic::Status::unimplemented("this driver does not offer that method");
            return Box::pin(async move { Ok(status.into_http()) });
        };
        let door = self.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(MethodCodec(method)).max_decoding_message_size(wire::LARGEST_MESSAGE);
            Ok(grpc.unary(door, request).await)
        })
    }
}

impl<A: Answers> UnaryService<Call> for Door<A> {
    type Response = Response;
    type Future = Answering<Result<tonic::Response<Response>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<Call>) -> Self::Future {
        let door = self.clone();
        // A task of its own: this future is dropped when the caller hangs up or its deadline passes, and work that has
        // begun must not stop halfway.
        let caller = request.extensions().get::<Option<Caller>>().copied().flatten();
        let work = tokio::spawn(CALLER.scope(caller, async move {
            let _at_work = door.work;
            door.service.answer(request.into_inner()).await
        }));
        Box::pin(async move {
            match work.await {
                Ok(Ok(response)) => Ok(tonic::Response::new(response)),
                Ok(Err(status)) => Err(refusal(status)),
                // Not the panic's own words: they may quote the request.
                Err(_) => Err(tonic::Status::unavailable("the driver failed while it answered; call again")),
            }
        })
    }
}

fn refusal(status: Status) -> tonic::Status {
    let code = match status.code {
        // A refusal must not read as success.
        Code::Ok => tonic::Code::Internal,
        code => tonic::Code::from_i32(code as i32),
    };
    let mut text = status.message;
    if text.len() > LONGEST_TEXT {
        let end = (0..=LONGEST_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    tonic::Status::new(code, text)
}

/// Requests in, answers out, for one method.
#[derive(Clone, Copy)]
struct MethodCodec(Method);

impl Codec for MethodCodec {
    type Encode = Response;
    type Decode = Call;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for MethodCodec {
    type Item = Response;
    type Error = tonic::Status;

    fn encode(&mut self, response: Response, buffer: &mut EncodeBuf<'_>) -> Result<(), tonic::Status> {
        if response.method() != self.0 {
            return Err(tonic::Status::internal(
                "the driver gave the answer of another method; report this as a defect",
            ));
        }
        buffer.put_slice(&wire::encode_response(&response));
        Ok(())
    }
}

impl Decoder for MethodCodec {
    type Item = Call;
    type Error = tonic::Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Call>, tonic::Status> {
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        wire::decode_call(self.0, &bytes)
            .map(Some)
            .map_err(|_| tonic::Status::invalid_argument(format!("the request for {} cannot be read", self.0.name())))
    }
}
