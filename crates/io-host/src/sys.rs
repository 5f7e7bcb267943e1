//! The kernel calls that have no safe wrapper in rustix, each behind a safe function. All unsafe code is here.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read as _};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use linux_raw_sys::loop_device as uapi;
use rustix::ioctl::{Getter, IntegerSetter, NoArg, Setter, Updater, ioctl, opcode};
use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// What a loop device shows.
pub(crate) type LoopInfo = uapi::loop_info64;

/// Flags of a loop device.
pub(crate) const LOOP_AUTOCLEAR: u32 = 4;
pub(crate) const LOOP_DIRECT_IO: u32 = 16;

/// The number of a free loop device, made if there is none.
pub(crate) fn loop_free(control: impl AsFd) -> io::Result<u32> {
    // SAFETY: LOOP_CTL_GET_FREE takes no argument and answers a number.
    let number = unsafe { libc::ioctl(control.as_fd().as_raw_fd(), uapi::LOOP_CTL_GET_FREE.into()) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// Attaches a file to a loop device in one step, with direct I/O where the file's filesystem can.
pub(crate) fn loop_configure(device: impl AsFd, image: impl AsFd, name: &str) -> rustix::io::Result<()> {
    // SAFETY: the structure is plain numbers, for which zero is a value.
    let mut config: uapi::loop_config = unsafe { zeroed() };
    config.fd = image.as_fd().as_raw_fd().unsigned_abs();
    config.info.lo_flags = LOOP_DIRECT_IO;
    let room = config.info.lo_file_name.len() - 1;
    for (to, from) in config.info.lo_file_name.iter_mut().take(room).zip(name.bytes()) {
        *to = from;
    }
    // SAFETY: LOOP_CONFIGURE reads one loop_config.
    unsafe { ioctl(device, Setter::<{ uapi::LOOP_CONFIGURE as opcode_t }, _>::new(config)) }
}

/// What a loop device shows; ENXIO if nothing.
pub(crate) fn loop_status(device: impl AsFd) -> rustix::io::Result<LoopInfo> {
    // SAFETY: LOOP_GET_STATUS64 writes one loop_info64.
    unsafe { ioctl(device, Getter::<{ uapi::LOOP_GET_STATUS64 as opcode_t }, LoopInfo>::new()) }
}

/// Keeps a loop device attached when its last user leaves.
pub(crate) fn loop_keep(device: impl AsFd, mut info: LoopInfo) -> rustix::io::Result<()> {
    info.lo_flags &= !LOOP_AUTOCLEAR;
    // SAFETY: LOOP_SET_STATUS64 reads one loop_info64.
    unsafe { ioctl(device, Setter::<{ uapi::LOOP_SET_STATUS64 as opcode_t }, _>::new(info)) }
}

/// Detaches a loop device; the kernel does it when the last user leaves, which may be the closing of this descriptor.
pub(crate) fn loop_clear(device: impl AsFd) -> rustix::io::Result<()> {
    // SAFETY: LOOP_CLR_FD takes no argument.
    unsafe { ioctl(device, NoArg::<{ uapi::LOOP_CLR_FD as opcode_t }>::new()) }
}

#[allow(non_camel_case_types)]
type opcode_t = rustix::ioctl::Opcode;

/// The size of a block device in bytes.
pub(crate) fn device_size(device: impl AsFd) -> rustix::io::Result<u64> {
    const BLKGETSIZE64: opcode_t = opcode::read::<usize>(0x12, 114);
    // SAFETY: BLKGETSIZE64 writes one u64, whatever the size in its number says.
    unsafe { ioctl(device, Getter::<BLKGETSIZE64, u64>::new()) }
}

/// How many bytes of a block device are written at once at least.
pub(crate) fn sector_size(device: impl AsFd) -> rustix::io::Result<libc::c_int> {
    const BLKSSZGET: opcode_t = opcode::none(0x12, 104);
    // SAFETY: BLKSSZGET writes one int.
    unsafe { ioctl(device, Getter::<BLKSSZGET, libc::c_int>::new()) }
}

/// Writes to a block device what waits in its cache, without waiting for the disk beneath.
pub(crate) fn write_out(device: impl AsFd) -> rustix::io::Result<()> {
    const BLKFLSBUF: opcode_t = opcode::none(0x12, 97);
    // SAFETY: BLKFLSBUF takes no argument.
    unsafe { ioctl(device, NoArg::<BLKFLSBUF>::new()) }
}

/// Makes a loop device as large as its file is now.
pub(crate) fn loop_refresh(device: impl AsFd) -> rustix::io::Result<()> {
    // SAFETY: LOOP_SET_CAPACITY takes no argument.
    unsafe { ioctl(device, NoArg::<{ uapi::LOOP_SET_CAPACITY as opcode_t }>::new()) }
}

/// Whether nobody can write to a block device.
pub(crate) fn is_device_read_only(device: impl AsFd) -> rustix::io::Result<bool> {
    const BLKROGET: opcode_t = opcode::none(0x12, 94);
    // SAFETY: BLKROGET writes one int.
    unsafe { ioctl(device, Getter::<BLKROGET, libc::c_int>::new()) }.map(|flag| flag != 0)
}

/// Makes a block device read-only, or writable again, for everybody.
pub(crate) fn device_read_only(device: impl AsFd, read_only: bool) -> rustix::io::Result<()> {
    const BLKROSET: opcode_t = opcode::none(0x12, 93);
    // SAFETY: BLKROSET reads one int.
    unsafe { ioctl(device, Setter::<BLKROSET, libc::c_int>::new(read_only.into())) }
}

/// Sets how many sectors of 512 bytes the kernel reads ahead on a block device.
pub(crate) fn device_read_ahead(device: impl AsFd, sectors: usize) -> rustix::io::Result<()> {
    const BLKRASET: opcode_t = opcode::none(0x12, 98);
    // SAFETY: BLKRASET takes a number in place of a pointer.
    unsafe { ioctl(device, IntegerSetter::<BLKRASET>::new_usize(sectors)) }
}

/// Holds a mounted filesystem still: everything is written out, and writers wait. EBUSY if it is held still already.
pub(crate) fn freeze(dir: impl AsFd) -> rustix::io::Result<()> {
    const FIFREEZE: opcode_t = opcode::read_write::<libc::c_int>(b'X', 119);
    // SAFETY: FIFREEZE looks at no argument.
    unsafe { ioctl(dir, NoArg::<FIFREEZE>::new()) }
}

/// Lets a filesystem go on. EINVAL if it was not held still.
pub(crate) fn thaw(dir: impl AsFd) -> rustix::io::Result<()> {
    const FITHAW: opcode_t = opcode::read_write::<libc::c_int>(b'X', 120);
    // SAFETY: FITHAW looks at no argument.
    unsafe { ioctl(dir, NoArg::<FITHAW>::new()) }
}

/// Makes a mounted filesystem discard every block it does not use.
pub(crate) fn trim(dir: impl AsFd) -> rustix::io::Result<()> {
    #[repr(C)]
    struct Range {
        start: u64,
        length: u64,
        shortest: u64,
    }
    const FITRIM: opcode_t = opcode::read_write::<Range>(b'X', 121);
    let mut range = Range { start: 0, length: u64::MAX, shortest: 0 };
    // SAFETY: FITRIM reads and writes one such structure.
    unsafe { ioctl(dir, Updater::<FITRIM, Range>::new(&mut range)) }
}

/// Grows a mounted ext4 to so many of its blocks. EPERM without CAP_SYS_RESOURCE.
pub(crate) fn grow_ext4(dir: impl AsFd, blocks: u64) -> rustix::io::Result<()> {
    const EXT4_IOC_RESIZE_FS: opcode_t = opcode::write::<u64>(b'f', 16);
    // SAFETY: EXT4_IOC_RESIZE_FS reads one u64.
    unsafe { ioctl(dir, Setter::<EXT4_IOC_RESIZE_FS, u64>::new(blocks)) }
}

/// What we read of an XFS filesystem's geometry.
pub(crate) struct XfsGeometry {
    /// The size of its blocks.
    pub block_size: u32,
    /// How much of it inodes may take, in percent.
    pub inode_percent: u32,
    /// How many blocks it has.
    pub blocks: u64,
}

/// The geometry of a mounted XFS.
pub(crate) fn xfs_geometry(dir: impl AsFd) -> rustix::io::Result<XfsGeometry> {
    // Fields of 4 bytes: the block size is the first, the inodes' share the eighth, then the blocks in 8 bytes.
    type Geometry = [u64; 14];
    const XFS_IOC_FSGEOMETRY_V1: opcode_t = opcode::read::<Geometry>(b'X', 100);
    // SAFETY: XFS_IOC_FSGEOMETRY_V1 writes 112 bytes, all of them numbers.
    let told: Geometry = unsafe { ioctl(dir, Getter::<XFS_IOC_FSGEOMETRY_V1, Geometry>::new()) }?;
    let words = |at: usize| {
        let bytes = told[at].to_ne_bytes();
        let word = |from: usize| u32::from_ne_bytes([bytes[from], bytes[from + 1], bytes[from + 2], bytes[from + 3]]);
        (word(0), word(4))
    };
    Ok(XfsGeometry { block_size: words(0).0, inode_percent: words(3).1, blocks: told[4] })
}

/// Grows a mounted XFS to so many of its blocks.
pub(crate) fn grow_xfs(dir: impl AsFd, blocks: u64, inode_percent: u32) -> rustix::io::Result<()> {
    #[repr(C)]
    struct Growth {
        blocks: u64,
        inode_percent: u32,
        padding: u32,
    }
    const XFS_IOC_FSGROWFSDATA: opcode_t = opcode::write::<Growth>(b'X', 110);
    let growth = Growth { blocks, inode_percent, padding: 0 };
    // SAFETY: XFS_IOC_FSGROWFSDATA reads one such structure.
    unsafe { ioctl(dir, Setter::<XFS_IOC_FSGROWFSDATA, Growth>::new(growth)) }
}

/// Grows a mounted btrfs to the size of its device.
pub(crate) fn grow_btrfs(dir: impl AsFd) -> rustix::io::Result<()> {
    #[repr(C)]
    struct Words {
        fd: i64,
        text: [u8; 4088],
    }
    const BTRFS_IOC_RESIZE: opcode_t = opcode::write::<Words>(0x94, 3);
    let mut words = Words { fd: 0, text: [0; 4088] };
    words.text[..3].copy_from_slice(b"max");
    // SAFETY: BTRFS_IOC_RESIZE reads one such structure, with a NUL-terminated text.
    unsafe { ioctl(dir, Setter::<BTRFS_IOC_RESIZE, Words>::new(words)) }
}

/// Sets `MOUNT_ATTR_…` of a mount that need not be attached yet: there is never an instant without them. Recursively:
/// of all mounts in the tree.
pub(crate) fn set_mount_attributes(mount: impl AsFd, attributes: u64, recursive: bool) -> io::Result<()> {
    // SAFETY: the structure is plain numbers, for which zero is a value.
    let mut attr: libc::mount_attr = unsafe { zeroed() };
    attr.attr_set = attributes;
    let fd = mount.as_fd().as_raw_fd();
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a NUL-terminated string and the size is that of the structure.
    let answer = unsafe {
        let (path, size) = (c"".as_ptr(), size_of::<libc::mount_attr>());
        libc::syscall(libc::SYS_mount_setattr, fd, path, flags, &raw const attr, size)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets how later mounts in a tree are seen elsewhere: `MS_PRIVATE` or `MS_SLAVE`, of all mounts in the tree.
pub(crate) fn set_propagation(mount: impl AsFd, propagation: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the structure is plain numbers, for which zero is a value.
    let mut attr: libc::mount_attr = unsafe { zeroed() };
    attr.propagation = propagation;
    let (fd, flags) = (mount.as_fd().as_raw_fd(), libc::AT_EMPTY_PATH | libc::AT_RECURSIVE);
    // SAFETY: the path is a NUL-terminated string and the size is that of the structure.
    let answer = unsafe {
        let (path, size) = (c"".as_ptr(), size_of::<libc::mount_attr>());
        libc::syscall(libc::SYS_mount_setattr, fd, path, flags, &raw const attr, size)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Filters the system calls of this thread and of all it starts from now on.
pub(crate) fn install_filter(program: &[seccompiler::sock_filter]) -> io::Result<()> {
    #[repr(C)]
    struct Program {
        length: libc::c_ushort,
        filter: *const seccompiler::sock_filter,
    }
    let length = libc::c_ushort::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = Program { length, filter: program.as_ptr() };
    // SAFETY: the kernel reads so many instructions from the pointer, which stay where they are during the call.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Leaves the session's keys behind.
pub(crate) fn new_session_keyring() -> io::Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_int = 1;
    // SAFETY: without a name the call reads no memory.
    let answer =
        unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
    if answer >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Brings the loopback device of this network namespace up.
pub(crate) fn loopback_up() -> io::Result<()> {
    #[repr(C)]
    struct Request {
        name: [u8; 16],
        flags: i16,
        padding: [u8; 22],
    }
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    let flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    let mut request = Request { name: [0; 16], flags, padding: [0; 22] };
    request.name[..2].copy_from_slice(b"lo");
    // SAFETY: SIOCSIFFLAGS reads a name and flags from a structure of 40 bytes.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes every descriptor but the first three and these.
pub(crate) fn close_others(keep: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut kept: Vec<u32> = keep.iter().filter_map(|fd| u32::try_from(fd.as_raw_fd()).ok()).collect();
    kept.sort_unstable();
    let mut from = 3;
    for fd in kept.into_iter().filter(|fd| *fd >= 3).map(Some).chain([None]) {
        let to = fd.map_or(u32::MAX, |fd| fd - 1);
        // SAFETY: what is closed belongs to values that are never used again: the callers say so by what they keep.
        if from <= to && unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        from = fd.map_or(u32::MAX, |fd| fd + 1);
    }
    Ok(())
}

/// Locks a whole file for an open file description, which children inherit. `false`: another one has it.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    let mut lock = whole_file();
    // SAFETY: F_OFD_SETLK reads one flock.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}

/// Locks one byte of a file for an open file description, or lets go of it. `false`: another one has it.
pub(crate) fn lock_byte(file: &File, at: u64, kind: i32, wait: bool) -> io::Result<bool> {
    let mut lock = whole_file();
    lock.l_type = kind as libc::c_short;
    lock.l_start = i64::try_from(at).map_err(io::Error::other)?;
    lock.l_len = 1;
    let command = if wait { libc::F_OFD_SETLKW } else { libc::F_OFD_SETLK };
    loop {
        // SAFETY: F_OFD_SETLK and F_OFD_SETLKW read one flock.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) } == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN | libc::EACCES) => return Ok(false),
            _ => return Err(error),
        }
    }
}

/// Keeps everybody from opening a file until it is let go, if nobody else has it open now; the kernel counts a loop
/// device that shows it. `None`: somebody has, or the filesystem cannot say.
pub(crate) fn keep_closed(file: &File) -> Option<KeptClosed<'_>> {
    /// The same on every architecture, and missing in libc.
    const F_SETSIG: libc::c_int = 10;
    let fd = file.as_raw_fd();
    // SAFETY: F_SETSIG and F_SETLEASE take a number. The signal that tells of an opener is one that is ignored unless
    // somebody handles it, unlike the usual one, which ends the process.
    let kept = unsafe {
        libc::fcntl(fd, F_SETSIG, libc::SIGURG) == 0 && libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK) == 0
    };
    kept.then_some(KeptClosed(file))
}

/// A file nobody else can open, until this is dropped.
pub(crate) struct KeptClosed<'a>(&'a File);

impl Drop for KeptClosed<'_> {
    fn drop(&mut self) {
        // SAFETY: F_SETLEASE takes a number.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}

/// Asks `statx` for the number of a mount that is never used twice.
pub(crate) const STATX_MNT_ID_UNIQUE: u32 = 0x4000;

/// What the kernel calls a question about a mount.
#[repr(C)]
struct MountQuestion {
    size: u32,
    spare: u32,
    number: u64,
    parameter: u64,
}

fn unsupported(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM) => io::ErrorKind::Unsupported.into(),
        _ => error,
    }
}

/// The numbers of mounts made after one, those made first first; how many there were room for.
pub(crate) fn list_mounts(after: u64, numbers: &mut [u64]) -> io::Result<usize> {
    // All mounts beneath the root of this process.
    const ROOT: u64 = u64::MAX;
    let question = MountQuestion { size: 24, spare: 0, number: ROOT, parameter: after };
    // SAFETY: the question says its own size, and the kernel writes no more numbers than there is room for.
    let count = unsafe {
        let number = i64::from(linux_raw_sys::general::__NR_listmount);
        libc::syscall(number, &raw const question, numbers.as_mut_ptr(), numbers.len(), 0)
    };
    usize::try_from(count).map_err(|_| unsupported(io::Error::last_os_error()))
}

/// What the kernel tells of one mount.
pub(crate) struct MountDetails {
    pub target: String,
    pub source: String,
    pub fstype: String,
    pub root: String,
    pub options: String,
    pub device: (u32, u32),
    /// `MOUNT_ATTR_…` of the mount.
    pub attributes: u32,
    /// `SB_…` of its filesystem.
    pub flags: u32,
    /// The group of mounts that share what happens beneath them; none is 0.
    pub peers: u32,
}

/// One mount by its number; ENOENT if it is gone, EOVERFLOW if there is too little room for its texts.
pub(crate) fn mount_details(number: u64, room: usize) -> io::Result<MountDetails> {
    // Numbers of the superblock and the mount, root, place, type, options, source.
    const WANTED: u64 = 0x1 | 0x2 | 0x8 | 0x10 | 0x20 | 0x80 | 0x200;
    /// What must be told for the rest to make sense; options may be none.
    const NEEDED: u64 = WANTED & !0x80;
    /// Where texts begin.
    const TEXTS: usize = 512;
    let question = MountQuestion { size: 24, spare: 0, number, parameter: WANTED };
    let mut told = vec![0_u8; TEXTS + room];
    // SAFETY: the question says its own size, and the kernel writes no more than the length that is told.
    let answer = unsafe {
        let call = i64::from(linux_raw_sys::general::__NR_statmount);
        libc::syscall(call, &raw const question, told.as_mut_ptr(), told.len(), 0)
    };
    if answer != 0 {
        return Err(unsupported(io::Error::last_os_error()));
    }
    let word = |at: usize| u32::from_ne_bytes([told[at], told[at + 1], told[at + 2], told[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let mask = if cfg!(target_endian = "little") { long(8) } else { long(8).rotate_left(32) };
    if mask & NEEDED != NEEDED {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let text = |at: usize, bit: u64| {
        let begin = TEXTS + if mask & bit == 0 { room - 1 } else { word(at) as usize };
        let bytes = told.get(begin..).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    Ok(MountDetails {
        options: text(4, 0x80),
        fstype: text(36, 0x20),
        root: text(104, 0x8),
        target: text(108, 0x10),
        source: text(124, 0x200),
        device: (word(16), word(20)),
        attributes: word(if cfg!(target_endian = "little") { 64 } else { 68 }),
        flags: word(32),
        peers: word(if cfg!(target_endian = "little") { 80 } else { 84 }),
    })
}

/// Whether another open file description has the lock. Asking takes nothing, so it disturbs nobody.
pub(crate) fn is_locked(file: &File) -> io::Result<bool> {
    let mut lock = whole_file();
    // SAFETY: F_OFD_GETLK reads and writes one flock.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) } {
        0 => Ok(i32::from(lock.l_type) != libc::F_UNLCK),
        _ => Err(io::Error::last_os_error()),
    }
}

fn whole_file() -> libc::flock {
    // SAFETY: the structure is plain numbers, for which zero is a value.
    let mut lock: libc::flock = unsafe { zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

/// Which side of a fork we are on.
pub(crate) enum Forked {
    /// The new process.
    Child,
    /// The old one; the new one's number.
    Parent(Pid),
}

/// Splits the process in two. Refused while there is a second thread, whose locks the child would inherit for ever.
pub(crate) fn fork() -> io::Result<Forked> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("the supervisor must be started before any other thread"));
    }
    // SAFETY: this process has one thread, so every lock is free or ours, in both processes.
    match unsafe { libc::fork() } {
        0 => Ok(Forked::Child),
        pid => Pid::from_raw(pid.max(0)).map(Forked::Parent).ok_or_else(io::Error::last_os_error),
    }
}

/// Ends the process at once, without the end-of-life work that belongs to the process it was forked from.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit does not return and runs nothing.
    unsafe { libc::_exit(code) }
}

/// Leaves namespaces of the parent.
pub(crate) fn unshare(what: UnshareFlags) -> io::Result<()> {
    // SAFETY: only namespaces are named by our callers; file descriptors stay shared.
    Ok(unsafe { rustix::thread::unshare_unsafe(what) }?)
}

/// Signals held back and read from a descriptor instead.
pub(crate) struct Signals(File);

impl Signals {
    /// Holds these signals back, in this thread and all it starts, from now on.
    pub(crate) fn hold(signals: &[i32]) -> io::Result<Signals> {
        // SAFETY: a signal set is plain numbers; the functions fill it and read it.
        let fd = unsafe {
            let mut set: libc::sigset_t = zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in signals {
                libc::sigaddset(&raw mut set, *signal);
            }
            if libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours.
        Ok(Signals(unsafe { File::from_raw_fd(fd) }))
    }

    /// The next signal that came, if any.
    pub(crate) fn next(&mut self) -> Option<i32> {
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        self.0.read_exact(&mut bytes).ok()?;
        // The number is the first field of the record.
        let number = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        i32::try_from(number).ok()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes a command start with no signal held back, whatever this process holds back, and after this was done, which
/// must only make system calls.
pub(crate) fn before_exec(command: &mut Command, mut last: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: sigemptyset and sigprocmask may be called between fork and exec, and the callers say the same of `last`.
    unsafe {
        command.pre_exec(move || {
            let mut set: libc::sigset_t = zeroed();
            libc::sigemptyset(&raw mut set);
            if libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            last()
        });
    }
}

/// Takes over a descriptor this process was started with.
pub(crate) fn inherited(fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: the copy is new and ours; an invalid number is refused by the kernel.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
