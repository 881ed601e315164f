mod connect;
mod kubeconfig;
