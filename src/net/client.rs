use std::{fmt, sync::Arc, time::Duration};

use reqwest::{Client, Url, redirect};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use rustls_platform_verifier::Verifier;

use super::{NetError, Proxies, Reach, host_of, verifier::SystemVerifier};
use crate::secret::Secret;

/// Redirects followed within one host before giving up.
const MAX_REDIRECTS: usize = 5;

/// A client certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Certificate chain, PEM.
    pub certificate: Vec<u8>,
    /// Private key, PEM.
    pub key: Secret<Vec<u8>>,
}

/// What becomes of a redirect. Never is one followed from HTTPS to HTTP, or more than five in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Redirects {
    /// It is followed within the host first asked.
    #[default]
    SameHost,
    /// It is followed wherever it leads: for requests that carry no secrets.
    AnyHost,
    /// It is an answer like others.
    AreAnswers,
}

/// What a client is made of. [`Default`] suits a public host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientOptions {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// Time for DNS, TCP and TLS.
    pub connect_timeout: Duration,
    /// The longest silence while an answer is awaited or read.
    pub read_timeout: Duration,
    /// Certificates (PEM) trusted beside the system's.
    pub ca_bundle: Option<Vec<u8>>,
    /// Client certificate, for servers that ask for one.
    pub identity: Option<Identity>,
    /// The ways out.
    pub proxies: Proxies,
    /// Which addresses names may lead to. Addresses in URLs are for the caller to check, with
    /// [`Reach::check`]; those of redirects are checked here.
    pub reach: Reach,
    /// Which redirects are followed.
    pub redirects: Redirects,
    /// Whether certificates of servers are not checked, because the user said so.
    pub skips_tls_checks: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            user_agent: concat!("flux-kluctl-controller/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            ca_bundle: None,
            identity: None,
            proxies: Proxies::default(),
            reach: Reach::default(),
            redirects: Redirects::default(),
            skips_tls_checks: false,
        }
    }
}

/// An HTTP client. It follows redirects only within scheme-safe requests, unless told otherwise to the same host, and never
/// decompresses bodies.
/// Clients hold a connection pool: make one per set of options and share it.
///
/// # Errors
/// [`NetError::Setup`] when a certificate, key or proxy address cannot be used.
pub fn client(options: &ClientOptions) -> Result<Client, NetError> {
    let tls = tls_config(options)?;
    let ClientOptions { redirects, reach, .. } = *options;
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(&options.user_agent)
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.read_timeout)
        .pool_idle_timeout(Duration::from_secs(30))
        .referer(false)
        .redirect(match redirects {
            Redirects::AreAnswers => redirect::Policy::none(),
            Redirects::SameHost | Redirects::AnyHost => redirect::Policy::custom(move |attempt| {
                let any_host = redirects == Redirects::AnyHost;
                match refuse_redirect(attempt.previous(), attempt.url(), any_host) {
                    Some(reason) => attempt.error(reason),
                    None => match reach.check(attempt.url()) {
                        Ok(()) => attempt.follow(),
                        Err(refused) => attempt.error(refused),
                    },
                }
            }),
        });
    // The library reads no environment, so the choice is made here alone.
    builder = builder.no_proxy();
    if !options.proxies.is_empty() {
        let proxies = options.proxies.clone();
        builder = builder.proxy(reqwest::Proxy::custom(move |url| {
            proxies.select(url).map(|proxy| proxy.reveal().clone())
        }));
    }
    if let Some(resolver) = options.reach.resolver(&options.proxies) {
        builder = builder.dns_resolver(resolver);
    }
    builder.build().map_err(|error| setup("HTTP client", error))
}

/// Why a redirect is not followed; `None` when it may be. `previous` starts with the URL first asked for.
pub(super) fn refuse_redirect(previous: &[Url], next: &Url, any_host: bool) -> Option<String> {
    let first = previous.first()?;
    if previous.len() > MAX_REDIRECTS {
        return Some(format!("more than {MAX_REDIRECTS} redirects in a row"));
    }
    let is_same_host = first.host_str() == next.host_str()
        && (first.scheme() != next.scheme() || same_port(first, next));
    if !is_same_host && !any_host {
        return Some(format!("it leads to another host, {}", host_of(next)));
    }
    match (first.scheme(), next.scheme()) {
        ("http", "http" | "https") | ("https", "https") => None,
        (_, scheme) => Some(format!("it leads to {scheme}:// on {}", host_of(next))),
    }
}

fn same_port(a: &Url, b: &Url) -> bool {
    a.port_or_known_default() == b.port_or_known_default()
}

/// TLS settings: system certificates plus `ca_bundle`, ring, and a client certificate if given.
///
/// # Errors
/// [`NetError::Setup`] when PEM data cannot be used.
fn tls_config(options: &ClientOptions) -> Result<ClientConfig, NetError> {
    let ClientOptions { identity, .. } = options;
    let provider = Arc::new(ring::default_provider());
    let extra =
        options.ca_bundle.as_deref().map(parse_certificates).transpose()?.unwrap_or_default();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| setup("TLS", error))?;
    let verifier: Arc<dyn ServerCertVerifier> = if options.skips_tls_checks {
        Arc::new(AnyServer(provider))
    } else if extra.is_empty() {
        Arc::new(SystemVerifier::new(provider))
    } else {
        let verifier = Verifier::new_with_extra_roots(extra, provider);
        Arc::new(verifier.map_err(|error| setup("CA bundle", error))?)
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(identity) => {
            let chain = CertificateDer::pem_slice_iter(&identity.certificate)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| setup("client certificate", error))?;
            let key = PrivateKeyDer::from_pem_slice(identity.key.reveal())
                .map_err(|error| setup("client certificate's key", error))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| setup("client certificate", error))
        }
    }
}

/// Takes any certificate, for servers that the user does not want checked.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn parse_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, NetError> {
    let certificates = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| setup("CA bundle", error))?;
    if certificates.is_empty() {
        return Err(setup("CA bundle", "holds no certificate in PEM form"));
    }
    Ok(certificates)
}

fn setup(what: &'static str, error: impl fmt::Display) -> NetError {
    NetError::Setup { what, message: crate::secret::redact_text(&error.to_string()) }
}
