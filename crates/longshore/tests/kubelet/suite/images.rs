//! The images that the suite's pods name, made from programs of this machine.

use std::path::Path;

use prove_cluster::{Image, peer};

use crate::scene::Scene;

/// By the names of its manifest in the version that tools/peers pins.
const BUSYBOX: &str = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2";
const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.66.1";
/// Run for its shell alone.
const NGINX: &str = "registry.k8s.io/e2e-test-images/nginx:1.27.0-2";
/// Run for a shell that leaves `dd` to coreutils'; that of busybox prefers its own.
const GLIBC: &str = "registry.k8s.io/e2e-test-images/glibc-dns-testing:2.1.1";
const PAUSE: &str = "registry.k8s.io/pause:3.10.2";

/// The suite enters the mounts of the node's first process, and looks below the usual folder of kubelets. Where that
/// process cannot be entered it is the kubelet's mounts that are meant, and the folder is the one it was given.
fn nsenter(kubelet: &str) -> String {
    format!(
        "#!/bin/sh
[ \"$1 $3\" = '--mount=/rootfs/proc/1/ns/mnt sh' ] || exec busybox nsenter \"$@\"
process=$(grep -l -e '--root-di[r]={kubelet}' /rootfs/proc/[0-9]*/cmdline 2>/dev/null | head -n 1)
command=$(printf %s \"$5\" | sed 's#/var/lib/kubelet#{kubelet}#g')
exec busybox nsenter --mount=${{process%/cmdline}}/ns/mnt -- sh -c \"$command\"
"
    )
}

pub fn load(scene: &Scene) {
    let busybox = Image::busybox().unwrap();
    scene.cluster.load(&busybox, &[BUSYBOX, NGINX, PAUSE]).unwrap();
    busybox.program(Path::new("/bin/dash"), "/bin/sh").unwrap();
    scene.cluster.load(&busybox, &[GLIBC]).unwrap();
    let agnhost = Image::busybox().unwrap().run(&["/agnhost"], &["pause"]);
    agnhost.program(&peer("agnhost").unwrap(), "/agnhost").unwrap();
    let kubelet = scene.cluster.kubelet_dir().display().to_string();
    agnhost.text("/usr/sbin/nsenter", &nsenter(&kubelet), 0o755).unwrap();
    scene.cluster.load(&agnhost, &[AGNHOST]).unwrap();
}
