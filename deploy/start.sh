#!/bin/sh
# Run a doublesampling command in an installation of deploy/install.sh: start serve, start key create --role admin
#
#   DOUBLESAMPLING_STORAGE   the store; or DOUBLESAMPLING_STORAGE_FILE, a file that holds its URL
#   PGPASSWORD               the password of PostgreSQL; or PGPASSWORD_FILE, a file that holds it
set -eu

folder=$(cd "$(dirname "$0")/.." && pwd)

# the settings with which install.sh has compiled; with others, everything would be compiled again
export NUMBA_CPU_NAME=generic
export NUMBA_CACHE_DIR="${NUMBA_CACHE_DIR:-$folder/cache}"

if [ -n "${DOUBLESAMPLING_STORAGE_FILE:-}" ]; then
  DOUBLESAMPLING_STORAGE=$(cat "$DOUBLESAMPLING_STORAGE_FILE")
  export DOUBLESAMPLING_STORAGE
fi
if [ -n "${PGPASSWORD_FILE:-}" ]; then
  PGPASSWORD=$(cat "$PGPASSWORD_FILE")
  export PGPASSWORD
fi
: "${DOUBLESAMPLING_STORAGE:?set it to a URL such as sqlite:////data/trial.db or postgresql://user@host/database}"

if [ "${1:-}" = serve ]; then
  "$folder/bin/doublesampling" db upgrade
fi
exec "$folder/bin/doublesampling" "$@"
