module github.com/kluctl/flux-kluctl-controller/hack/control-plane/tools/manifests

go 1.26.4

require (
	github.com/cert-manager/cert-manager v1.21.2 // indirect
	github.com/prometheus-operator/prometheus-operator v0.85.0 // indirect
	sigs.k8s.io/external-dns v0.22.0 // indirect
	sigs.k8s.io/gateway-api v1.6.3 // indirect
	sigs.k8s.io/metrics-server v0.9.0 // indirect
)
