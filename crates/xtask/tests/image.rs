//! The images that `make image` made, as others see them: valid for Go's library, and good for what they are made for.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Within it a name is found also where the machine is busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Something of the image that asks an API server.
const CONTROLLERS: &str = "exec chroot $R longshore controllers --kubeconfig=/kubeconfig";

fn layout(image: &str) -> PathBuf {
    let images =
        std::env::var_os("LONGSHORE_IMAGES").expect("`make interop-image` makes the images and says where they are");
    Path::new(&images).join(image)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn blob(layout: &Path, about: &Value) -> PathBuf {
    layout.join("blobs").join(about["digest"].as_str().unwrap().replace(':', "/"))
}

/// A folder with the image's files in it, gone at the end.
struct Root(PathBuf);

impl Root {
    fn of(image: &str, name: &str) -> Root {
        let layout = layout(image);
        let root = Root(std::env::temp_dir().join(format!("longshore-{name}-{}", std::process::id())));
        let index = json(&blob(&layout, &json(&layout.join("index.json"))["manifests"][0]));
        let manifest = json(&blob(&layout, &index["manifests"][0]));
        for layer in manifest["layers"].as_array().unwrap() {
            let file = fs::File::open(blob(&layout, layer)).unwrap();
            let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
            archive.set_preserve_permissions(true);
            archive.unpack(&root.0).unwrap();
        }
        root
    }

    /// What may change its root to the image's, in mounts of its own, with the devices and processes of this machine.
    fn command(&self, script: &str) -> Command {
        let root = self.0.display();
        // What is mounted here is mounted nowhere else, and goes with the last process.
        let script = format!(
            "set -eu; R={root}; mount --rbind /dev $R/dev; mount -t proc proc $R/proc; mount --rbind /sys $R/sys; \
             mount -t tmpfs tmpfs $R/tmp; mount --make-shared $R/tmp; {script}"
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation=private", "sh", "-c", &script]);
        command
    }

    /// Puts one in that names no authority.
    fn put_kubeconfig(&self, server: &str) {
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
             users: [{{name: u, user: {{token: t}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        );
        fs::write(self.0.join("kubeconfig"), config).unwrap();
    }

    fn run(&self, script: &str) -> Output {
        self.command(script).output().unwrap()
    }
}

impl Drop for Root {
    #[allow(clippy::disallowed_methods, reason = "what was mounted in it was so for its own programs alone")]
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn assert_root() {
    let out = Command::new("id").arg("-u").output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&out.stdout).trim(),
        "0",
        "only root may look into images: it mounts and changes root"
    );
}

fn check(layout: &Path) -> Output {
    Command::new(prove_cluster::peer("check-image").unwrap()).arg(layout).output().unwrap()
}

#[test]
fn gos_library_for_images_finds_nothing_wrong() {
    for image in ["longshore", "longshore-driver"] {
        let output = check(&layout(image));
        assert!(output.status.success(), "{image}: {}", told(&output));
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "nothing is mounted in it")]
fn a_byte_that_changed_is_found() {
    let copy = std::env::temp_dir().join(format!("longshore-changed-{}", std::process::id()));
    let copied = Command::new("cp").arg("-r").arg(layout("longshore")).arg(&copy).status().unwrap();
    assert!(copied.success());
    let index = json(&copy.join("index.json"));
    let path = blob(&copy, &index["manifests"][0]);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("amd64", "arm64", 1).replacen("linux", "linuy", 1)).unwrap();
    let output = check(&copy);
    fs::remove_dir_all(&copy).unwrap();
    assert!(!output.status.success());
}

#[test]
fn the_binary_needs_nothing_beside_it_and_no_rights() {
    assert_root();
    let root = Root::of("longshore", "alone");
    let run = |words: &[&str]| {
        Command::new("chroot").args(["--userspec=65532:65532"]).arg(&root.0).args(words).output().unwrap()
    };
    let output = run(&["/usr/bin/longshore", "--version"]);
    assert_eq!(told(&output), concat!("longshore ", env!("CARGO_PKG_VERSION"), "\n"));
    // Programs of any user may keep something for a moment, where somebody mounts nothing there.
    assert_eq!(fs::metadata(root.0.join("tmp")).unwrap().permissions().mode() & 0o7777, 0o1777);
    // There is nothing else in it that could be run.
    for folder in ["usr/bin", "etc"] {
        let names: Vec<_> =
            fs::read_dir(root.0.join(folder)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.len() <= 2, "{names:?}");
    }
}

/// Built in another folder, by another user, the same commit is the same binary: none of these is named in it.
#[test]
fn the_binary_names_no_folder_of_where_it_was_built() {
    let root = Root::of("longshore", "folders");
    let binary = fs::read(root.0.join("usr/bin/longshore")).unwrap();
    let names = |folder: &str| binary.windows(folder.len()).any(|window| window == folder.as_bytes());
    let home = std::env::var("CARGO_HOME").unwrap_or_else(|_| std::env::var("HOME").unwrap() + "/.cargo");
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().display().to_string();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().display().to_string();
    for folder in [home, clone, target] {
        assert!(!names(&format!("{folder}/")), "{folder}");
    }
    assert!(names("/cargo/registry/"), "what panics is named with the path of its source");
}

/// A bill of materials says what the binary itself tells, and has the sums of what is fetched.
#[test]
fn the_bill_is_of_the_binary_in_the_image() {
    let root = Root::of("longshore", "bill");
    let binary = fs::read(root.0.join("usr/bin/longshore")).unwrap();
    let bill = json(&layout("longshore-driver.cdx.json"));
    let components = bill["components"].as_array().unwrap();
    let named = |name: &str| components.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let sum = Command::new("sha256sum").arg(root.0.join("usr/bin/longshore")).output().unwrap();
    assert_eq!(told(&sum)[..64], *named("usr/bin/longshore")["hashes"][0]["content"].as_str().unwrap());
    // SQLite has its version among what it answers.
    let version = named("sqlite")["version"].as_str().unwrap();
    assert!(binary.windows(version.len()).any(|window| window == version.as_bytes()), "SQLite {version}");
    for name in ["glibc", "rust-std", "e2fsprogs"] {
        assert!(!named(name)["version"].as_str().unwrap().is_empty());
    }
    let fetched = components.iter().filter(|one| {
        one["purl"].as_str().is_some_and(|purl| {
            purl.starts_with("pkg:cargo/") || purl.starts_with("pkg:deb/") && !purl.ends_with("arch=source")
        })
    });
    for one in fetched {
        assert_eq!(one["hashes"][0]["content"].as_str().map(str::len), Some(64), "{one}");
    }
}

/// A C library that is linked in brings no plugins for names; those that are needed are in it.
#[test]
fn names_are_found_by_file_and_by_server() {
    assert_root();
    let root = Root::of("longshore", "names");
    // An address of this machine that nobody else answers names at.
    let place = Ipv4Addr::new(127, 16, 53, 1);
    let names = UdpSocket::bind((place, 53)).unwrap();
    std::thread::spawn(move || answer_names(&names));
    fs::write(root.0.join("etc/hosts"), "127.0.0.1 by-file.test\n").unwrap();
    fs::write(root.0.join("etc/resolv.conf"), format!("nameserver {place}\n")).unwrap();
    for name in ["by-file.test", "by-server.test"] {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let port = server.local_addr().unwrap().port();
        root.put_kubeconfig(&format!("http://{name}:{port}"));
        let mut asking = root.command(CONTROLLERS).spawn().unwrap();
        // Somebody comes: the name was found.
        let begun = Instant::now();
        let visitor = loop {
            match server.accept() {
                Ok((visitor, _)) => break visitor,
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
            let lives = asking.try_wait().unwrap().is_none();
            assert!(lives && begun.elapsed() < PATIENCE, "{name} is not found; it says why above");
        };
        visitor.set_nonblocking(false).unwrap();
        let mut line = String::new();
        BufReader::new(visitor).read_line(&mut line).unwrap();
        asking.kill().unwrap();
        asking.wait().unwrap();
        assert!(line.starts_with("GET ") || line.starts_with("PRI "), "{line}");
    }
}

/// There are no public authorities in it.
#[test]
fn a_kubeconfig_without_an_authority_is_told_that_it_wants_one() {
    assert_root();
    let root = Root::of("longshore", "trust");
    root.put_kubeconfig("https://127.0.0.1:1");
    let output = root.run(CONTROLLERS);
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("it names no certificate-authority"), "{}", told(&output));
}

/// Every name of version 4 is this machine's, and there are none of version 6.
fn answer_names(socket: &UdpSocket) {
    let mut buffer = [0; 512];
    while let Ok((size, from)) = socket.recv_from(&mut buffer) {
        let question = &buffer[..size];
        // The name ends with an empty label; its type and class follow.
        let end = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
        let is_a = question[end - 4..end - 2] == [0, 1];
        let mut answer =
            [&question[..2], &[0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0], &question[12..end]].concat();
        if is_a {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
        }
        let _ = socket.send_to(&answer, from);
    }
}

#[test]
fn every_program_of_the_drivers_image_starts() {
    assert_root();
    let root = Root::of("longshore-driver", "programs");
    let programs = [
        "mke2fs -V",
        "mkfs.ext4 -V",
        "e2fsck -V",
        "resize2fs",
        "tune2fs",
        "dumpe2fs -V",
        "mkfs.xfs -V",
        "xfs_repair -V",
        "mkfs.btrfs --version",
        "btrfs --version",
        "blkid -V",
        "fsck --version",
        "mount --version",
        "umount --version",
        "losetup --version",
        "longshore --version",
    ];
    for program in programs {
        let output = root.run(&format!("exec chroot $R {program}"));
        // 127 is a program that is not there, or a library that it lacks.
        let missing = output.status.code() == Some(127) || told(&output).contains("error while loading");
        assert!(!missing, "{program}: {}", told(&output));
    }
    let status = root.0.join("var/lib/dpkg/status.d/e2fsprogs");
    assert!(fs::read_to_string(status).unwrap().contains("Package: e2fsprogs"));
}

/// Volumes of each filesystem are made, formatted, mounted and taken away by what is in the image alone.
#[test]
fn the_driver_works_on_what_is_in_its_image() {
    assert_root();
    let root = Root::of("longshore-driver", "driver");
    for (filesystem, size, cases) in
        [("ext4", "64Mi", "publish"), ("xfs", "512Mi", "node/stage"), ("btrfs", "512Mi", "node/stage")]
    {
        let output = root.run(&format!(
            "chroot $R longshore driver --endpoint=/tmp/s.sock --state-dir=/tmp/state --node-id=n --no-registration \
             --filesystem={filesystem} >/dev/null & driver=$!; \
             until [ -S $R/tmp/s.sock ]; do sleep 0.05; done; \
             code=0; \
             chroot $R longshore sanity --endpoint=/tmp/s.sock --size={size} --only={cases} --skip=restart || code=$?; \
             kill $driver; wait $driver || true; exit $code"
        ));
        assert!(output.status.success(), "{filesystem}: {}", told(&output));
        let said = told(&output);
        assert!(said.contains(", 0 failed") && !said.contains("\n0 passed"), "{filesystem}: {said}");
    }
}
