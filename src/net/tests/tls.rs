use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use reqwest::Url;
use rustls::{
    RootCertStore, ServerConfig, ServerConnection, Stream,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

use crate::{
    net::{ClientOptions, Identity, NetError, client},
    secret::Secret,
};

const CA: &[u8] = include_bytes!("tls/ca.pem");

/// A server that answers `hello` over TLS, and may ask for a client certificate.
fn serve(asks_for_certificate: bool) -> SocketAddr {
    let provider = Arc::new(ring::default_provider());
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if asks_for_certificate {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(CA).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let config = Arc::new(builder.with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut connection = ServerConnection::new(config.clone()).unwrap();
            let mut stream = Stream::new(&mut connection, &mut socket);
            let mut request = [0; 4096];
            if stream.read(&mut request).is_ok() {
                let answer =
                    b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
                stream.write_all(answer).ok();
                connection.send_close_notify();
                connection.complete_io(&mut socket).ok();
            }
        }
    });
    address
}

async fn get(host: &str, address: SocketAddr, options: &ClientOptions) -> Result<String, NetError> {
    let url = Url::parse(&format!("https://{host}:{}/", address.port())).unwrap();
    let response = client(options)?.get(url.clone()).send().await;
    let response = response.map_err(|error| NetError::from_reqwest(&url, error))?;
    response.text().await.map_err(|error| NetError::from_reqwest(&url, error))
}

fn trusting() -> ClientOptions {
    ClientOptions { ca_bundle: Some(CA.to_vec()), ..ClientOptions::default() }
}

#[tokio::test]
async fn a_bundle_makes_a_server_trusted_under_its_own_names() {
    let address = serve(false);
    assert_eq!(get("127.0.0.1", address, &trusting()).await.unwrap(), "hello");
    assert_eq!(get("localhost", address, &trusting()).await.unwrap(), "hello");
    let error = get("127.0.0.1", address, &ClientOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let error = get("127.0.0.2", address, &trusting()).await.unwrap_err();
    assert!(matches!(error, NetError::Connection { .. }), "{error:?}");
}

#[tokio::test]
async fn a_client_certificate_is_shown_when_asked_for() {
    let address = serve(true);
    let identity = Identity {
        certificate: include_bytes!("tls/client.pem").to_vec(),
        key: Secret::new(include_bytes!("tls/client.key").to_vec()),
    };
    let known = ClientOptions { identity: Some(identity), ..trusting() };
    assert_eq!(get("localhost", address, &known).await.unwrap(), "hello");
    get("localhost", address, &trusting()).await.unwrap_err();
}
