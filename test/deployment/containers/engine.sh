#!/usr/bin/env bash
# A container engine on a Debian machine without one: podman with runc, without limits of processes, which some machines forbid
# to raise. Needs root. usage: engine.sh FOLDER; then CONTAINERS_CONF=FOLDER/containers.conf podman …
set -euo pipefail
folder=$1
missing=()
for package in podman runc iptables debootstrap docker-compose netavark aardvark-dns python3; do
  dpkg --status "$package" > /dev/null 2>&1 || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "${missing[@]}" > /dev/null
fi
cat > "$folder/runc" <<'RUNC'
#!/usr/bin/env bash
for argument in "$@"; do
  case "${previous:-}" in
    --bundle | -b) file=$argument/config.json ;;
    --process | -p) file=$argument ;;
  esac
  previous=$argument
done
[ -z "${file:-}" ] || [ ! -f "$file" ] || python3 -c '
import json, sys
path = sys.argv[1]
config = json.load(open(path))
config.get("process", config).pop("rlimits", None)
json.dump(config, open(path, "w"))' "$file"
exec /usr/sbin/runc "$@"
RUNC
chmod +x "$folder/runc"
cat > "$folder/containers.conf" <<CONFIGURATION
[containers]
log_driver = "k8s-file"
default_ulimits = ["nofile=20000:20000"]
[network]
network_backend = "netavark"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[engine.runtimes]
runc = ["$folder/runc"]
CONFIGURATION
