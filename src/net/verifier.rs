use std::sync::{Arc, OnceLock};

use rustls::{
    CertificateError, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use rustls_platform_verifier::Verifier;

/// Trusts the system's certificates, which are read when the first server shows its own: reading them takes longer than most
/// runs do that ask no server.
#[derive(Debug)]
pub(super) struct SystemVerifier {
    provider: Arc<CryptoProvider>,
    /// `None` on a system without certificates: it can still talk plain HTTP, and no server is trusted.
    verifier: OnceLock<Option<Verifier>>,
}

impl SystemVerifier {
    pub(super) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { provider, verifier: OnceLock::new() }
    }

    fn verifier(&self) -> Result<&Verifier, Error> {
        let verifier = self.verifier.get_or_init(|| Verifier::new(self.provider.clone()).ok());
        let untrusted = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        verifier.as_ref().ok_or(untrusted)
    }
}

impl ServerCertVerifier for SystemVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verifier = self.verifier()?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
