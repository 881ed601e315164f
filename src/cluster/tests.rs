mod connect;
mod kubeconfig;
mod observe;
mod request;
pub(crate) mod script;
