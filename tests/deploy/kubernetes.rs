//! The manifests for Kubernetes: what they say about the program, and about each other.

use std::time::Duration;

use archipelago::config::Settings;
use yaml_rust2::{Yaml, YamlLoader};

use super::{root, settings, shop, text, time_to_end};

/// The objects of one file, by kind and name.
struct Manifests(Vec<Yaml>);

impl Manifests {
    fn parse(text: &str) -> Self {
        Self(YamlLoader::load_from_str(text).unwrap())
    }

    fn find(&self, kind: &str, name: &str) -> &Yaml {
        let wanted = |object: &&Yaml| {
            object["kind"].as_str() == Some(kind) && object["metadata"]["name"].as_str() == Some(name)
        };
        self.0.iter().find(wanted).unwrap_or(&Yaml::BadValue)
    }
}

/// What is wrong with manifests.
fn faults(text: &str) -> Vec<String> {
    let all = Manifests::parse(text);
    let set = &all.find("StatefulSet", "shop")["spec"];
    let pod = &set["template"]["spec"];
    let container = &pod["containers"][0];
    let told = settings(
        all.find("ConfigMap", "shop")["data"]["archipelago.toml"].as_str().unwrap_or_default(),
        &variables(container),
    );
    let mut faults = Vec::new();
    of_the_end(pod, container, &told, &mut faults);
    of_ports(&all, container, &told, &mut faults);
    of_probes(container, &mut faults);
    of_files(pod, container, &told, &mut faults);
    of_each_other(&all, set, &mut faults);
    // But for its name and where it is dialled the node is told what the image says.
    let mut image = shop();
    image.node.name.clone_from(&told.node.name);
    image.transport.advertise.clone_from(&told.transport.advertise);
    check(told == image, "the ConfigMap differs from archipelago.toml", &mut faults);
    faults
}

fn check(holds: bool, what: &str, faults: &mut Vec<String>) {
    if !holds {
        faults.push(what.to_owned());
    }
}

/// The variables of a container as a pod has them.
fn variables(container: &Yaml) -> Vec<(String, String)> {
    let entries = container["env"].as_vec().map(Vec::as_slice).unwrap_or_default();
    let pair = |entry: &Yaml| {
        let value =
            entry["value"].as_str().unwrap_or("shop-0").replace("$(ARCHIPELAGO_NODE__NAME)", "shop-0");
        Some((entry["name"].as_str()?.to_owned(), value))
    };
    entries.iter().filter_map(pair).collect()
}

fn of_the_end(pod: &Yaml, container: &Yaml, told: &Settings, faults: &mut Vec<String>) {
    let seconds =
        |value: &Yaml| Duration::from_secs(value.as_i64().and_then(|it| it.try_into().ok()).unwrap_or(0));
    let before = seconds(&container["lifecycle"]["preStop"]["sleep"]["seconds"]);
    let grace = seconds(&pod["terminationGracePeriodSeconds"]);
    check(!before.is_zero(), "nobody is told to send elsewhere before it ends", faults);
    check(grace >= before + time_to_end(told), "it is killed while it drains", faults);
}

fn of_ports(all: &Manifests, container: &Yaml, told: &Settings, faults: &mut Vec<String>) {
    let ports = container["ports"].as_vec().map(Vec::as_slice).unwrap_or_default();
    let of = |protocol: &str| {
        let these = ports.iter().filter(|port| port["protocol"].as_str() == Some(protocol));
        these.filter_map(|port| port["containerPort"].as_i64()).collect::<Vec<_>>()
    };
    let first = i64::from(told.transport.bind.port());
    let arbiters = i64::from(told.node.data_arbiters.map_or(0, std::num::NonZeroU16::get));
    check(
        of("UDP") == (first..=first + arbiters).collect::<Vec<_>>(),
        "the ports of the node are others",
        faults,
    );
    let http =
        text("Dockerfile").lines().find_map(|line| line.strip_prefix("ENV SHOP_BIND=0.0.0.0:")?.parse().ok());
    check(
        of("TCP") == [http.unwrap_or(0), i64::from(told.admin.bind.port())],
        "the ports of the program are others",
        faults,
    );
    let named = |name: &Yaml| ports.iter().any(|port| port["name"] == *name);
    for service in ["shop", "shop-nodes"] {
        let target = &all.find("Service", service)["spec"]["ports"][0]["targetPort"];
        check(named(target), "a service leads to a port that is not there", faults);
    }
    let wall = &all.find("NetworkPolicy", "shop")["spec"]["ingress"][1]["ports"][0];
    let open = (wall["port"].as_i64(), wall["endPort"].as_i64());
    check(open == (Some(first), Some(first + arbiters)), "the wall lets other ports in", faults);
}

fn of_probes(container: &Yaml, faults: &mut Vec<String>) {
    let routes = std::fs::read_to_string(root().join("ops/admin/src/routes.rs")).unwrap();
    for (probe, path) in
        [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")]
    {
        let asked = &container[probe]["httpGet"];
        let right = asked["path"].as_str() == Some(path) && asked["port"].as_str() == Some("admin");
        check(
            right && routes.contains(&format!("resource(\"{path}\")")),
            &format!("{probe} asks for something else"),
            faults,
        );
    }
}

/// Every file that the node is told to read is below something that is mounted, and that is a volume.
fn of_files(pod: &Yaml, container: &Yaml, told: &Settings, faults: &mut Vec<String>) {
    let volumes = pod["volumes"].as_vec().map(Vec::as_slice).unwrap_or_default();
    let mounts = container["volumeMounts"].as_vec().map(Vec::as_slice).unwrap_or_default();
    for mount in mounts {
        check(volumes.iter().any(|volume| volume["name"] == mount["name"]), "a mount has no volume", faults);
    }
    let transport = &told.transport;
    let files = [&transport.ca, &transport.certificate, &transport.key, &told.admin.token_file];
    let config = text("Dockerfile")
        .lines()
        .find_map(|line| line.strip_prefix("ENV ARCHIPELAGO_CONFIG=").map(Into::into));
    for file in files.into_iter().chain([&config]).flatten() {
        let mounted =
            mounts.iter().filter_map(|mount| mount["mountPath"].as_str()).any(|path| file.starts_with(path));
        check(mounted, &format!("{} is in no volume", file.display()), faults);
    }
}

fn of_each_other(all: &Manifests, set: &Yaml, faults: &mut Vec<String>) {
    let labels = &set["template"]["metadata"]["labels"];
    let budget = &all.find("PodDisruptionBudget", "shop")["spec"];
    let wall = &all.find("NetworkPolicy", "shop")["spec"];
    for selector in [
        &set["selector"]["matchLabels"],
        &budget["selector"]["matchLabels"],
        &wall["podSelector"]["matchLabels"],
    ] {
        check(selector == labels && !labels.is_badvalue(), "a selector finds no pod", faults);
    }
    for service in ["shop", "shop-nodes"] {
        check(all.find("Service", service)["spec"]["selector"] == *labels, "a service finds no pod", faults);
    }
    let names = all.find("Service", set["serviceName"].as_str().unwrap_or_default());
    check(names["spec"]["clusterIP"].as_str() == Some("None"), "pods have no names", faults);
    check(
        names["spec"]["publishNotReadyAddresses"].as_bool() == Some(true),
        "who joins or drains cannot be dialled",
        faults,
    );
    check(budget["maxUnavailable"].as_i64() == Some(1), "several nodes may be taken away at once", faults);
    check(set["replicas"].as_i64().is_some_and(|count| count >= 3), "fewer than three nodes", faults);
}

#[test]
fn the_manifests_are_right_about_the_program_and_about_each_other() {
    assert_eq!(faults(&text("kubernetes.yaml")), Vec::<String>::new());
}

#[test]
fn each_thing_that_is_wrong_with_manifests_is_found() {
    let manifests = text("kubernetes.yaml");
    for (right, wrong) in [
        ("terminationGracePeriodSeconds: 75", "terminationGracePeriodSeconds: 30"),
        ("sleep: { seconds: 5 }", "sleep: { seconds: 0 }"),
        ("containerPort: 4712", "containerPort: 4713"),
        ("containerPort: 8080", "containerPort: 80"),
        ("targetPort: http", "targetPort: web"),
        ("endPort: 4712", "endPort: 4711"),
        ("path: /readyz", "path: /ready"),
        ("/etc/shop/tls, readOnly", "/etc/tls, readOnly"),
        ("mountPath: /etc/shop/archipelago.toml", "mountPath: /etc/archipelago.toml"),
        ("configMap: { name: shop }\n        - name: tls", "configMap: { name: shop }\n        - name: tsl"),
        ("  serviceName: shop-nodes", "  serviceName: shop"),
        ("clusterIP: None", "type: ClusterIP"),
        ("publishNotReadyAddresses: true", "publishNotReadyAddresses: false"),
        ("maxUnavailable: 1", "maxUnavailable: 2"),
        ("stop_budget = \"30s\"", "stop_budget = \"90s\""),
        ("data_arbiters = 2", "data_arbiters = 3"),
        ("      labels: { app: shop }\n    spec:", "      labels: { app: shops }\n    spec:"),
    ] {
        assert!(manifests.contains(right), "{right} is not in the manifests");
        assert!(!faults(&manifests.replace(right, wrong)).is_empty(), "{wrong} is not found");
    }
}
