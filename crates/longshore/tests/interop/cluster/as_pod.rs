//! Our sidecar as a pod has it: told of the cluster by its environment, behind a proxy, with a token that is replaced.

use std::io::{Read, Write, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use std::time::Duration;

use super::objects;
use super::trial::{Driver, Trial};

/// Where the API server is for a pod. Nobody on this machine knows the name: only the proxy leads there.
const HOST: &str = "kubernetes.default.svc";

/// A CONNECT proxy that leads to this port whatever it is asked for, and says what it was asked for.
fn proxy(to: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, asked) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<String>>>::default());
    let heard = asked.clone();
    spawn(move || {
        for client in listener.incoming() {
            let (mut client, heard) = (client.unwrap(), heard.clone());
            spawn(move || {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    client.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap();
                heard.lock().unwrap().push(head.lines().next().unwrap_or_default().to_string());
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
                let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
                let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                spawn(move || pass(&server, &back));
                pass(&client, &forth);
            });
        }
    });
    (port, asked)
}

fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// A token of the account that holds for as long as the Secret of this name exists.
fn write_token(trial: &Trial, folder: &Path, secret: &str) -> String {
    trial.kubectl(&["create", "secret", "generic", secret]).unwrap();
    let bound = format!("--bound-object-name={secret}");
    let token = trial.kubectl(&["create", "token", "provisioner", "--bound-object-kind=Secret", &bound]).unwrap();
    // As the kubelet does it: the file is another at once.
    std::fs::write(folder.join("new"), token.trim()).unwrap();
    std::fs::rename(folder.join("new"), folder.join("token")).unwrap();
    token.trim().to_string()
}

#[test]
fn a_pod_behind_a_proxy_goes_on_when_its_token_is_replaced() {
    let mut trial = Trial::new("as-pod", Driver::Ours, &[]);
    trial.apply(&super::rights::printed(&trial, "provisioner", &[]));
    let folder = trial.stand.path("account");
    std::fs::create_dir(&folder).unwrap();
    let config = std::fs::read_to_string(trial.plane().control.kubeconfig()).unwrap();
    let authority = config.lines().find_map(|line| line.trim().strip_prefix("certificate-authority: ")).unwrap();
    std::fs::copy(authority.trim(), folder.join("ca.crt")).unwrap();
    std::fs::write(folder.join("namespace"), trial.place).unwrap();
    let first = write_token(&trial, &folder, "first");
    let port = trial.plane().control.server().rsplit_once(':').unwrap().1.parse().unwrap();
    let (proxy, asked) = proxy(port);
    let variables = [
        format!("KUBERNETES_SERVICE_HOST={HOST}"),
        "KUBERNETES_SERVICE_PORT=443".to_string(),
        format!("HTTPS_PROXY=http://127.0.0.1:{proxy}"),
        "NO_PROXY=example.com".to_string(),
    ];
    trial.ours_as_pod("provisioner", &folder, &variables);
    trial.apply(&objects::claim(trial.place, "before", ""));
    trial.wait_bound(&["before"]);

    write_token(&trial, &folder, "second");
    trial.kubectl(&["delete", "secret", "first"]).unwrap();
    // The API server believes a token that it has seen for a while.
    let whoami = ["auth", "whoami", &format!("--token={first}")];
    prove_cluster::eventually("the first token to be refused", Duration::from_secs(40), || {
        match trial.plane().control.kubectl(&whoami) {
            Ok(said) => Err(said),
            Err(_) => Ok(()),
        }
    })
    .unwrap();
    trial.apply(&objects::claim(trial.place, "after", ""));
    trial.wait_bound(&["after"]);
    let (_, refused) = super::rights::asked(&trial, "provisioner");
    assert!(refused.is_empty(), "{refused:?}");
    assert!(asked.lock().unwrap().iter().all(|line| line == "CONNECT kubernetes.default.svc:443 HTTP/1.1"));
    assert!(!asked.lock().unwrap().is_empty());
    super::life::end(&trial);
}
