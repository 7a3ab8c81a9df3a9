#!/usr/bin/env bash
# tests/python/try_wheel.sh - a wheel in an empty environment, with the documented examples
#
# usage: try_wheel.sh WHEEL [ROOT]
#
# Makes a virtual environment in which nothing is installed, installs the wheel with its dependencies,
# runs the programs of docs/python.md, and one test with the pytest plugin. With ROOT all of it in a
# chroot that has neither this tree nor a compiler: ROOT is a minimal Debian with python3 and
# python3-venv; where it does not exist, debootstrap makes it. Without ROOT the environment has only
# PATH, and the tree is in no path.
set -euo pipefail
wheel=$(realpath "$1")
root=${2:-}
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$tree/build/wheel/try
rm -rf "$work"
mkdir -p "$work/files"

# Dependencies are fetched here: a chroot may have no network. Its Python is Debian's.
python=python3
[[ -n $root ]] && python=/usr/bin/python3
"$python" -m pip --version >/dev/null 2>&1 || python=python3
if ! "$python" -m pip --disable-pip-version-check download -q --dest "$work/files" "$wheel" 'pytest>=7'; then
  echo "SKIP: the wheel's dependencies cannot be had from PyPI"
  exit 77
fi
cp "$tree/docs/python.md" "$work/files/"
sed 's/parents\[2\]/parents[0]/' "$tree/tests/docs/pages_test.py" >"$work/files/pages_test.py"
cat >"$work/files/test_plugin.py" <<'TEST'
import numpy as np
import ptxgen
from pathlib import Path

RACE = Path(__file__).with_name("python.md").read_text().split('RACE = """')[1].split('"""')[0]


def test_race():
    ptxgen.run(RACE, 1, 64, [np.zeros(1, np.float32), 1.0], findings="return")
TEST
cat >"$work/files/inside.sh" <<'INSIDE'
set -euo pipefail
cd "$(dirname "$0")"
python3 -m venv venv
venv/bin/python -m pip --disable-pip-version-check install -q --no-index --find-links . pytest ./*ptxgen*.whl
echo "compilers: $(command -v cc gcc g++ clang nvcc || echo none)"
venv/bin/python -m pip --disable-pip-version-check list | grep -i -E 'ptxgen|cffi|numpy'
python3 pages_test.py python.md --work examples --library none --python "$PWD/venv/bin/python"
if venv/bin/python -m pytest -q -p no:cacheprovider test_plugin.py >plugin.txt 2>&1 ||
  ! grep -q 'error finding.* of ptxgen' plugin.txt; then
  cat plugin.txt
  echo "the pytest plugin did not fail a test with a race"
  exit 1
fi
echo "the pytest plugin failed a test with a race"
INSIDE

if [[ -z $root ]]; then
  echo "no root folder was given: an empty environment instead of a chroot"
  exec env -i PATH="$PATH" HOME="$work" LANG=C.UTF-8 bash "$work/files/inside.sh"
fi
if [[ ! -x $root/usr/bin/python3 ]]; then
  command -v debootstrap >/dev/null || { echo "there is no Debian in $root, and no debootstrap"; exit 1; }
  # A machine may have either kind of list, or both.
  lists=$(find /etc/apt -name '*.list' -o -name '*.sources')
  mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\).*/\2/p' $lists |
    sed -n 1p)
  debootstrap --variant=minbase --include=python3,python3-venv \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" "$mirror" >"$work/debootstrap.log" ||
    { tail -n 5 "$work/debootstrap.log"; exit 1; }
fi
rm -rf "$root/try"
cp -r "$work/files" "$root/try"
chroot=$(command -v chroot || echo /usr/sbin/chroot)
env -i PATH=/usr/bin:/bin LANG=C.UTF-8 "$chroot" "$root" bash /try/inside.sh
