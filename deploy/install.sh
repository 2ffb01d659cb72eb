#!/bin/sh
# Install the service into a folder, with compiled code: deploy/install.sh /opt/doublesampling
#
# The Containerfile runs this script too. Settings, all by environment variable:
#   PYTHON        the Python to use, 3.11 or newer (default: python3)
#   EXTRAS        extras of the package (default: service,postgres)
#   WARM          what to compile ahead: decide, all or none (default: decide, which a service needs)
#   PIP_OPTIONS   more options of pip install, such as --no-index --find-links wheels
set -eu

folder=${1:?name the folder to install into, such as /opt/doublesampling}
source=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed. Set PYTHON=python3.12")'

# 1. a virtual environment; one that exists is updated
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"

# 2. build the wheel, and install it
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
# shellcheck disable=SC2086  # several options
"$folder/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps ${PIP_OPTIONS:-} \
  --wheel-dir "$wheels" "$source"
wheel=$(echo "$wheels"/doublesampling-*.whl)
# shellcheck disable=SC2086
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps ${PIP_OPTIONS:-} "$wheel"
# shellcheck disable=SC2086
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check ${PIP_OPTIONS:-} \
  "$wheel[${EXTRAS:-service,postgres}]"

# 3. compile for any processor of this architecture, not only for this one.
# The kept code is found by the time of its source file; image layers keep whole seconds only.
"$folder/bin/python" - <<'END'
import os
from importlib.util import find_spec
from pathlib import Path

package = Path(find_spec("doublesampling").origin).parent
for path in package.rglob("*.py"):
    os.utime(path, (int(path.stat().st_atime), int(path.stat().st_mtime)))
END
rm -rf "$folder/cache"
mkdir -p "$folder/cache"
if [ "${WARM:-decide}" != none ]; then
  NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=$folder/cache "$folder/bin/doublesampling" warm --what "${WARM:-decide}"
fi

# 4. a command that starts with the same settings
cp "$source/deploy/start.sh" "$folder/bin/start"
chmod 755 "$folder/bin/start"
echo "Installed: $("$folder/bin/doublesampling" --version). Next:"
echo "  $folder/bin/start key create --role admin"
echo "  $folder/bin/start serve"
