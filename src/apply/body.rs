//! The body that is sent for an object, where it differs from what was rendered.

use std::borrow::Cow;

use serde_json::Value;

/// The object ready for server-side apply (kluctl 2.28). Ports without a protocol get `TCP`, as the merge
/// key needs it; numeric `cpu` quantities become text, as an older API server stores them. Most objects need neither and
/// are not copied.
pub(super) fn for_apply(tree: &Value) -> Cow<'_, Value> {
    if !needs_change(tree) {
        return Cow::Borrowed(tree);
    }
    let mut tree = tree.clone();
    for_each_port_list(&mut tree, &mut |ports| {
        for port in ports.iter_mut().filter(|port| lacks_protocol(port)) {
            port["protocol"] = "TCP".into();
        }
    });
    for_each_cpu(&mut tree, &mut |cpu| *cpu = cpu.to_string().into());
    Cow::Owned(tree)
}

const POD_SPECS: [&str; 3] =
    ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/spec"];

fn lacks_protocol(port: &Value) -> bool {
    port.as_object().is_some_and(|port| !port.contains_key("protocol"))
}

fn needs_change(tree: &Value) -> bool {
    let ports_lack = |ports: &Value| ports.as_array().into_iter().flatten().any(lacks_protocol);
    let has_number = |quantities: &Value| quantities["cpu"].is_number();
    (tree["kind"] == "Service" && ports_lack(&tree["spec"]["ports"]))
        || containers(tree).any(|container| {
            ports_lack(&container["ports"])
                || has_number(&container["resources"]["limits"])
                || has_number(&container["resources"]["requests"])
        })
        || (tree["kind"] == "LimitRange"
            && tree["spec"]["limits"].as_array().into_iter().flatten().any(|limit| {
                limit
                    .as_object()
                    .into_iter()
                    .flatten()
                    .any(|(_, quantities)| has_number(quantities))
            }))
}

fn containers(tree: &Value) -> impl Iterator<Item = &Value> {
    POD_SPECS.iter().filter_map(|path| tree.pointer(path)).flat_map(|pod| {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(|key| pod[key].as_array().into_iter().flatten())
    })
}

fn for_each_container(tree: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    for path in POD_SPECS {
        let Some(pod) = tree.pointer_mut(path) else { continue };
        for key in ["containers", "initContainers"] {
            pod.get_mut(key)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
                .for_each(&mut *visit);
        }
    }
}

fn for_each_port_list(tree: &mut Value, visit: &mut dyn FnMut(&mut Vec<Value>)) {
    if tree["kind"] == "Service"
        && let Some(Value::Array(ports)) = tree.pointer_mut("/spec/ports")
    {
        visit(ports);
    }
    for_each_container(tree, &mut |container| {
        if let Some(Value::Array(ports)) = container.get_mut("ports") {
            visit(ports);
        }
    });
}

fn for_each_cpu(tree: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    let mut cpu_of = |quantities: Option<&mut Value>| {
        if let Some(cpu) = quantities.and_then(|quantities| quantities.get_mut("cpu"))
            && cpu.is_number()
        {
            visit(cpu);
        }
    };
    for_each_container(tree, &mut |container| {
        cpu_of(container.pointer_mut("/resources/limits"));
        cpu_of(container.pointer_mut("/resources/requests"));
    });
    if tree["kind"] == "LimitRange" {
        let limits = tree.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
        for limit in limits.into_iter().flatten() {
            for (_, quantities) in limit.as_object_mut().into_iter().flatten() {
                cpu_of(Some(quantities));
            }
        }
    }
}
