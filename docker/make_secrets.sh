#!/bin/sh
# Makes the secrets of docker/compose.yaml once. Run again, it keeps what is there.
set -eu
folder="$(dirname "$0")/secrets"
mkdir -p "$folder"
# The files have to be readable in the containers, whose user is not yours; on this machine the folder guards them.
chmod 700 "$folder"

random() { head -c "$1" /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n'; }
keep() {
  [ -s "$folder/$1" ] || printf '%s' "$2" >"$folder/$1"
  chmod 644 "$folder/$1"
}

keep secret_key "$(random 48)"
keep field_keys "$(random 32)"
keep postgres_password "$(random 24)"
keep database_url "postgres://tiltyard:$(cat "$folder/postgres_password")@postgres:5432/tiltyard"
echo "The secrets are in $folder. Back up field_keys: without it the stored API keys cannot be read."
