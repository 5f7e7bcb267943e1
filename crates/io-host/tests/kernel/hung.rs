//! A filesystem that never answers: everything else goes on, and nothing is left when it is ended.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use control::host::{FailureKind, Op, Reply};
use io_host::{Host, HostError, Workers};
use rustix::mount::MountFlags;

use crate::bench::{Bench, owned};

/// Long enough for any operation that does not hang.
const ENOUGH: Duration = Duration::from_secs(60);
/// How long one is waited for that does.
const SHORT: Duration = Duration::from_millis(50);

/// A filesystem in user space whose server never answers while this lives. Dropping it ends every call that waits.
pub struct Silent {
    server: Option<File>,
}

impl Silent {
    pub fn mount(target: &str) -> Silent {
        let server = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let options = std::ffi::CString::new(options).unwrap();
        rustix::mount::mount("silent", target, "fuse", MountFlags::empty(), options.as_c_str()).unwrap();
        Silent { server: Some(server) }
    }

    pub fn abort(&mut self) {
        self.server = None;
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.abort();
    }
}

fn workers(bench: &Bench, limit: usize) -> Workers {
    Workers::new(Arc::new(Host::new(owned(&bench.path("processes"))).unwrap()), limit)
}

fn measure(path: &str) -> Op {
    Op::Measure { path: path.into() }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits for what ends soon, without saying how soon.
pub fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..6000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

pub fn others_go_on_while_one_filesystem_hangs() {
    // reliability 6, "Hung filesystem wedges the node agent"
    let bench = Bench::new();
    let (hung, sound) = (bench.make_dir("hung"), bench.make_dir("sound"));
    let workers = workers(&bench, 8);
    let files = open_files();
    let mut silent = Silent::mount(&hung);

    let error = workers.perform(&measure(&hung), SHORT).unwrap_err();
    assert!(matches!(error, HostError::UnderWay { .. }) && !error.certain(), "{error}");
    assert!(error.to_string().contains(&hung), "{error}");
    let listed = workers.hung();
    assert_eq!((listed.len(), listed[0].works_on.as_str()), (1, hung.as_str()));

    // The second is refused at once, for certain, and takes no thread.
    let threads = workers.threads();
    let error = workers.perform(&measure(&hung), ENOUGH).unwrap_err();
    assert!(matches!(error, HostError::Hung { .. }) && error.certain() && error.kind() == FailureKind::Hung, "{error}");
    assert_eq!(workers.threads(), threads);

    // Everything else goes on, a whole life of a volume included.
    assert!(matches!(workers.perform(&measure(&sound), ENOUGH), Ok(Reply::Usage(_))));
    let image = bench.path("sound.img");
    let done = |op: Op| workers.perform(&op, ENOUGH).unwrap_or_else(|error| panic!("{op:?}: {error}"));
    done(Op::CreateImage { path: image.clone(), size: 64 << 20 });
    let Reply::Device(device) = done(Op::AttachLoop { image: image.clone() }) else { panic!() };
    done(Op::MakeFilesystem { device: device.clone(), fstype: "ext4".into() });
    done(crate::bench::mount(&device, &sound));
    done(Op::Unmount { target: sound });
    done(Op::DetachLoop { image });

    // Its server gone, the call ends, and the place can be worked on again: a stale mount is a mount, and is taken off.
    silent.abort();
    until("the end of the call", || workers.hung().is_empty());
    assert!(workers.perform(&measure(&hung), ENOUGH).is_err_and(|error| error.certain()));
    done(Op::Unmount { target: hung.clone() });
    assert!(matches!(workers.perform(&measure(&hung), ENOUGH), Ok(Reply::Usage(_))));
    assert_eq!(open_files(), files, "a descriptor is left");
}

pub fn what_waits_behind_a_hung_operation_is_told() {
    let bench = Bench::new();
    let hung = bench.make_dir("hung");
    let workers = workers(&bench, 4);
    let mut silent = Silent::mount(&hung);
    let (say, first_heard) = channel();
    let first = workers.begin(measure(&hung), move |answer| drop(say.send(answer))).unwrap();
    let (say, heard) = channel();
    let _second = workers.begin(measure(&hung), move |answer| drop(say.send(answer))).unwrap();
    until("the beginning", || workers.under_way() == 1);
    assert!(heard.try_recv().is_err(), "it waits");
    let error = first.give_up();
    assert!(matches!(error, HostError::UnderWay { .. }), "{error}");
    let told = heard.recv_timeout(ENOUGH).unwrap().unwrap_err();
    assert!(matches!(told, HostError::Hung { .. }) && told.certain(), "{told}");
    // The first is told too, when it ends at last.
    silent.abort();
    assert!(first_heard.recv_timeout(ENOUGH).unwrap().is_err());
    workers.perform(&Op::Unmount { target: hung }, ENOUGH).unwrap();
}

pub fn hung_operations_are_bounded() {
    let bench = Bench::new();
    let workers = workers(&bench, 3);
    let places: Vec<String> = (0..3).map(|n| bench.make_dir(&format!("hung-{n}"))).collect();
    let mut silent: Vec<Silent> = places.iter().map(|place| Silent::mount(place)).collect();
    for place in &places {
        let error = workers.perform(&measure(place), SHORT).unwrap_err();
        assert!(matches!(error, HostError::UnderWay { .. }), "{error}");
    }
    assert_eq!(workers.threads(), 3);
    let other = bench.make_dir("other");
    let error = workers.perform(&measure(&other), ENOUGH).unwrap_err();
    assert!(matches!(error, HostError::NoWorker { workers: 3, hung: 3 }) && error.certain(), "{error}");
    // One that comes back is enough for all the others.
    silent.remove(0);
    until("one to end", || workers.hung().len() == 2);
    assert!(matches!(workers.perform(&measure(&other), ENOUGH), Ok(Reply::Usage(_))));
    drop(silent);
    until("the others", || workers.hung().is_empty());
    for place in places {
        workers.perform(&Op::Unmount { target: place }, ENOUGH).unwrap();
    }
}

pub fn many_operations_share_few_threads() {
    let bench = Bench::new();
    let workers = workers(&bench, 3);
    let (say, heard) = channel();
    for n in 0..200 {
        let (say, path) = (say.clone(), bench.path(&format!("made/{}", n % 20)));
        workers.begin(Op::MakeDir { path }, move |answer| drop(say.send(answer))).unwrap();
    }
    for _ in 0..200 {
        assert_eq!(heard.recv_timeout(ENOUGH).unwrap().unwrap(), Reply::Done);
    }
    assert!(workers.threads() <= 3);
}
