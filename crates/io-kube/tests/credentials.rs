//! Who we are to the server, on a real TLS server: tokens and certificates that change, plugins, proxies, authorities.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod stand;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::Kind;
use io_kube::{Kube, RequestError};
use stand::{Authority, BOTH, Book, Pair, cluster, guarded, in_base64, kubeconfig, tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

struct Scene {
    folder: tempfile::TempDir,
    authority: Authority,
    book: Book,
    port: u16,
}

impl Scene {
    async fn new() -> Scene {
        Scene::with(|authority| tls(&authority.sign(&["127.0.0.1"]), None, &BOTH)).await
    }

    /// One whose clients have to show a certificate.
    async fn with_certificates() -> Scene {
        Scene::with(|authority| tls(&authority.sign(&["127.0.0.1"]), Some(authority), &BOTH)).await
    }

    async fn with(config: impl Fn(&Authority) -> rustls::ServerConfig) -> Scene {
        let (authority, book) = (Authority::new(), Book::default());
        let port = guarded(config(&authority), &book).await;
        Scene { folder: tempfile::tempdir().unwrap(), authority, book, port }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn write_pair(&self, pair: &Pair) {
        self.write("crt", &pair.certificate);
        self.write("key", &pair.key);
    }

    async fn connect_as(&self, user: &[&str]) -> Result<Kube, String> {
        self.connect(&cluster(self.port, &self.authority), user).await
    }

    async fn connect(&self, cluster: &[String], user: &[&str]) -> Result<Kube, String> {
        let user: Vec<String> = user.iter().map(ToString::to_string).collect();
        let path = kubeconfig(self.folder.path(), cluster, &user);
        Kube::from_kubeconfig(&path).await.map_err(|error| error.to_string())
    }

    /// A plugin that runs this, after it has counted itself.
    fn plugin(&self, script: &str) -> [String; 4] {
        let path =
            self.write("plugin", &format!("#!/bin/sh\ncd {}\necho x >> runs\n{script}\n", self.path("").display()));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let version = "client.authentication.k8s.io/v1";
        [
            "exec:".into(),
            "  command: ./plugin".into(),
            format!("  apiVersion: {version}"),
            "  interactiveMode: Never".into(),
        ]
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.path("runs")).unwrap_or_default().lines().count()
    }
}

async fn ask(kube: &Kube) -> Result<(), String> {
    kube.list(Kind::StorageClass).await.map(|_| ()).map_err(|error| error.to_string())
}

fn words(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

/// What a plugin writes that hands out this.
fn handing(status: &str) -> String {
    format!(
        r#"echo '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{{status}}}}}'"#
    )
}

fn service_account(scene: &Scene, token: &str) -> PathBuf {
    scene.write("ca.crt", &scene.authority.certificate);
    scene.write("token", token);
    scene.folder.path().to_path_buf()
}

// The kubelet replaces the token of a pod long before it runs out; the old one may be refused at once.
#[tokio::test]
async fn a_pods_token_is_read_again_when_the_server_refuses_it_and_nobody_notices() {
    let scene = Scene::new().await;
    scene.book.only(&["Bearer first"]);
    let folder = service_account(&scene, "first");
    let kube = Kube::in_cluster("127.0.0.1", &scene.port.to_string(), &folder).await.unwrap();
    ask(&kube).await.unwrap();
    scene.write("token", "second");
    scene.book.only(&["Bearer second"]);
    ask(&kube).await.unwrap();
    assert_eq!(scene.book.asked(), ["Bearer first", "Bearer first", "Bearer second"]);
    // A token that is refused and not replaced is asked with once, not again and again.
    scene.book.only(&["Bearer third"]);
    assert!(ask(&kube).await.is_err());
    assert_eq!(scene.book.asked(), ["Bearer second"]);
    // A file that is gone leaves what was in it.
    scene.book.only(&["Bearer second"]);
    std::fs::remove_file(scene.path("token")).unwrap();
    ask(&kube).await.unwrap();
}

#[tokio::test]
async fn a_replaced_token_is_used_after_a_minute_even_if_the_old_one_still_works() {
    let scene = Scene::new().await;
    let folder = service_account(&scene, "first");
    let kube = Kube::in_cluster("127.0.0.1", &scene.port.to_string(), &folder).await.unwrap();
    ask(&kube).await.unwrap();
    scene.write("token", "second");
    ask(&kube).await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    ask(&kube).await.unwrap();
    assert_eq!(scene.book.asked(), ["Bearer first", "Bearer first", "Bearer second"]);
}

#[tokio::test]
async fn a_pod_without_its_token_or_authority_is_told_which_is_missing() {
    let scene = Scene::new().await;
    let folder = service_account(&scene, "t");
    let connected = async || Kube::in_cluster("127.0.0.1", "1", &folder).await.map(|_| ()).unwrap_err().to_string();
    std::fs::remove_file(scene.path("token")).unwrap();
    assert!(connected().await.contains("/token"), "{}", connected().await);
    std::fs::remove_file(scene.path("ca.crt")).unwrap();
    assert!(connected().await.contains("/ca.crt"), "{}", connected().await);
}

#[tokio::test]
async fn a_kubeconfig_names_a_token_file_which_may_end_in_a_new_line() {
    let scene = Scene::new().await;
    scene.book.only(&["Bearer first"]);
    scene.write("token", "first\n");
    let kube = scene.connect_as(&["tokenFile: token"]).await.unwrap();
    ask(&kube).await.unwrap();
    scene.write("token", "second\n");
    scene.book.only(&["Bearer second"]);
    ask(&kube).await.unwrap();
    // The file counts more than a token beside it.
    ask(&scene.connect_as(&["token: other", "tokenFile: token"]).await.unwrap()).await.unwrap();
    scene.write("token", "\n");
    let Err(said) = scene.connect_as(&["tokenFile: token"]).await else { panic!("an empty token") };
    assert!(said.contains("is empty"), "{said}");
}

#[tokio::test]
async fn a_plugin_is_run_again_when_what_it_handed_out_has_run_out_or_is_refused_and_not_before() {
    let scene = Scene::new().await;
    let old = handing(r#""token":"t'$(grep -c x runs)'","expirationTimestamp":"1970-01-01T00:00:00Z""#);
    let new = handing(r#""token":"t'$(grep -c x runs)'","expirationTimestamp":"2999-01-01T00:00:00Z""#);
    let plugin = scene.plugin(&format!("if [ $(grep -c x runs) -lt 3 ]; then {old}; else {new}; fi"));
    let kube = scene.connect_as(&words(&plugin)).await.unwrap();
    for _ in 0..4 {
        ask(&kube).await.unwrap();
    }
    assert_eq!(scene.book.asked(), ["Bearer t2", "Bearer t3", "Bearer t3", "Bearer t3"]);
    scene.book.only(&["Bearer t4"]);
    ask(&kube).await.unwrap();
    assert_eq!((scene.book.asked(), scene.runs()), (vec!["Bearer t3".into(), "Bearer t4".into()], 4));
}

#[tokio::test]
async fn a_plugin_hands_out_certificates_and_a_new_one_is_shown_on_a_new_connection() {
    let scene = Scene::with_certificates().await;
    let hand_out = |name: &str| {
        let pair = scene.authority.sign(&[name]);
        let line = |pem: &str| pem.replace('\n', "\\n");
        let status = format!(
            r#"{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"clientCertificateData":"{}","clientKeyData":"{}"}}}}"#,
            line(&pair.certificate),
            line(&pair.key)
        );
        scene.write("answer", &status);
    };
    hand_out("alice");
    scene.book.only(&["alice"]);
    let kube = scene.connect_as(&words(&scene.plugin("cat answer"))).await.unwrap();
    ask(&kube).await.unwrap();
    hand_out("bob");
    scene.book.only(&["bob"]);
    ask(&kube).await.unwrap();
    let seen = scene.book.seen.lock().unwrap().clone();
    assert_eq!(seen.last().map(|seen| (seen.who.as_str(), seen.http2, seen.connection)), Some(("bob", true, 1)));
}

#[tokio::test]
async fn a_plugin_that_fails_is_one_sentence_with_what_it_complained_about_and_nothing_it_handed_out() {
    let scene = Scene::new().await;
    let wrong = [
        ("echo s3cret; echo 'log in first' >&2; exit 3", "log in first"),
        ("echo s3cret", "ExecCredential"),
        ("exit 0", "ExecCredential"),
        (&*handing(""), "neither a token nor a certificate"),
        (&*handing(r#""token":"s3cret\u0007""#), "is no token"),
    ];
    for (script, words_of_it) in wrong {
        let Err(said) = scene.connect_as(&words(&scene.plugin(script))).await else { panic!("{script}") };
        assert!(said.contains(words_of_it) && said.lines().count() == 1 && !said.contains("s3cret"), "{said}");
    }
    let gone =
        ["exec:", "  command: ./nobody", "  apiVersion: client.authentication.k8s.io/v1", "  installHint: get it"];
    let Err(said) = scene.connect_as(&gone).await else { panic!("there is no such plugin") };
    assert!(said.contains("nobody") && said.contains("get it"), "{said}");
}

// Later, too: the request fails with that sentence, and the next is made once the plugin works again.
#[tokio::test]
async fn a_plugin_that_fails_for_a_while_fails_requests_for_a_while() {
    let scene = Scene::new().await;
    let hand_out = handing(r#""token":"t","expirationTimestamp":"1970-01-01T00:00:00Z""#);
    let kube = scene.connect_as(&words(&scene.plugin(&format!("[ -e broken ] && exit 1; {hand_out}")))).await.unwrap();
    scene.write("broken", "");
    let said = ask(&kube).await.unwrap_err();
    assert!(said.starts_with("the credential plugin"), "{said}");
    std::fs::remove_file(scene.path("broken")).unwrap();
    ask(&kube).await.unwrap();
}

#[tokio::test]
async fn a_client_certificate_is_shown_and_one_in_a_file_is_read_again() {
    let scene = Scene::with_certificates().await;
    let alice = scene.authority.sign(&["alice"]);
    let data = [
        format!("client-certificate-data: {}", in_base64(&alice.certificate)),
        format!("client-key-data: {}", in_base64(&alice.key)),
    ];
    scene.book.only(&["alice"]);
    ask(&scene.connect_as(&words(&data)).await.unwrap()).await.unwrap();
    scene.write_pair(&alice);
    let kube = scene.connect_as(&["client-certificate: crt", "client-key: key"]).await.unwrap();
    ask(&kube).await.unwrap();
    scene.write_pair(&scene.authority.sign(&["bob"]));
    scene.book.only(&["bob"]);
    ask(&kube).await.unwrap();
    assert_eq!(scene.book.asked().last().map(String::as_str), Some("bob"));
}

#[tokio::test]
async fn a_certificate_that_the_server_does_not_take_is_one_sentence() {
    let scene = Scene::with_certificates().await;
    let said = ask(&scene.connect_as(&["{}"]).await.unwrap()).await.unwrap_err();
    assert!(said.contains("client-certificate"), "{said}");
    scene.write_pair(&Authority::new().sign(&["mallory"]));
    let kube = scene.connect_as(&["client-certificate: crt", "client-key: key"]).await.unwrap();
    let said = ask(&kube).await.unwrap_err();
    assert!(said.contains("client-certificate") && said.lines().count() == 1, "{said}");
}

#[tokio::test]
async fn a_server_of_another_authority_or_name_is_one_sentence_unless_that_is_wanted() {
    let scene = Scene::with(|authority| tls(&authority.sign(&["kubernetes.example"]), None, &BOTH)).await;
    let strangers = cluster(scene.port, &Authority::new());
    let said = ask(&scene.connect(&strangers, &["{}"]).await.unwrap()).await.unwrap_err();
    assert!(said.contains("certificate-authority") && said.lines().count() == 1, "{said}");
    // Waiting does not cure it, so that who starts hears of it at once; a server that is away is waited for.
    let said = scene.connect(&strangers, &["{}"]).await.unwrap().greet().await.unwrap_err().to_string();
    assert!(said.contains("certificate-authority"), "{said}");
    scene.connect(&cluster(1, &scene.authority), &["{}"]).await.unwrap().greet().await.unwrap();
    let mut named = cluster(scene.port, &scene.authority);
    let said = ask(&scene.connect(&named, &["{}"]).await.unwrap()).await.unwrap_err();
    assert!(said.contains("tls-server-name"), "{said}");
    named.push("tls-server-name: kubernetes.example".into());
    ask(&scene.connect(&named, &["{}"]).await.unwrap()).await.unwrap();
    let anybody = [format!("server: https://127.0.0.1:{}", scene.port), "insecure-skip-tls-verify: true".into()];
    ask(&scene.connect(&anybody, &["{}"]).await.unwrap()).await.unwrap();
}

// Messages are in the words that people search for.
#[tokio::test]
async fn what_keeps_us_from_the_server_is_said_in_the_usual_words() {
    let scene = Scene::with(|authority| tls(&authority.sign_expired(&["127.0.0.1"]), None, &BOTH)).await;
    let expired = cluster(scene.port, &scene.authority);
    let nobody = cluster(1, &scene.authority);
    let nowhere = vec!["server: https://nowhere.invalid:6443".to_string(), expired[1].clone()];
    let strangers = cluster(Scene::new().await.port, &Authority::new());
    for (cluster, words) in [
        (expired, "x509: certificate has expired"),
        (nobody, "connection refused"),
        (nowhere, "no such host"),
        (strangers, "x509: certificate signed by unknown authority"),
    ] {
        let kube = scene.connect(&cluster, &["{}"]).await.unwrap();
        let error = kube.list(Kind::StorageClass).await.unwrap_err();
        assert!(matches!(error, RequestError::NotSent(_)), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// A CONNECT proxy that leads to this port whatever it is asked for, and says what it was asked for.
async fn proxy(to: u16, password: Option<&'static str>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let heard = asked.clone();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let heard = heard.clone();
            tokio::spawn(async move {
                let head = head(&mut client).await;
                heard.lock().unwrap().push(head.lines().next().unwrap_or_default().to_string());
                if password.is_some_and(|password| !head.contains(&format!("Basic {}", in_base64(password)))) {
                    let _ = client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
                    return;
                }
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (port, asked)
}

async fn head(client: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match client.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test]
async fn a_proxy_leads_to_the_server_over_http2_and_gets_its_password() {
    let scene = Scene::with(|authority| tls(&authority.sign(&["far.example"]), None, &BOTH)).await;
    let (port, asked) = proxy(scene.port, Some("me:pass@word")).await;
    let through = |user: &str| {
        vec![
            // Nobody here knows this name: only the proxy leads there.
            "server: https://far.example:6443".to_string(),
            format!("certificate-authority-data: {}", in_base64(&scene.authority.certificate)),
            format!("proxy-url: http://{user}127.0.0.1:{port}"),
        ]
    };
    ask(&scene.connect(&through("me:pass%40word@"), &["{}"]).await.unwrap()).await.unwrap();
    assert_eq!(*asked.lock().unwrap(), ["CONNECT far.example:6443 HTTP/1.1"]);
    assert!(scene.book.seen.lock().unwrap().iter().all(|seen| seen.http2));
    let said = ask(&scene.connect(&through("me:s3cret@"), &["{}"]).await.unwrap()).await.unwrap_err();
    assert!(said.contains("prox") && !said.contains("s3cret"), "{said}");
    let elsewhere = [cluster(scene.port, &scene.authority), vec!["proxy-url: ftp://me:s3cret@p".into()]].concat();
    let Err(said) = scene.connect(&elsewhere, &["{}"]).await else { panic!("no such proxy") };
    assert!(said.contains("proxy-url") && !said.contains("s3cret"), "{said}");
}

#[tokio::test]
async fn files_are_looked_for_beside_the_kubeconfig() {
    let scene = Scene::new().await;
    scene.book.only(&["Bearer t"]);
    scene.write("authority", &scene.authority.certificate);
    scene.write("token", "t");
    let beside = [format!("server: https://127.0.0.1:{}", scene.port), "certificate-authority: authority".into()];
    assert!(!Path::new("authority").exists());
    ask(&scene.connect(&beside, &["tokenFile: token"]).await.unwrap()).await.unwrap();
}
