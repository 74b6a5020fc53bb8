#!/usr/bin/env bash
# Installs the peers that this project is compared with, pinned, into a Python environment of their own:
# target/peers, which git ignores. Run it again whenever you like; what is there is left as it is.
#
#   benches/peers/install.sh            Exudyn alone
#   benches/peers/install.sh NAME…      of: exudyn mujoco casadi pinocchio codegen robots; `all` for every one
#
# Needs python3 with venv; to measure CasADi also gcc, Pinocchio also g++.
# Another place for the environment: MBS_PEERS=FOLDER.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=${MBS_PEERS:-target/peers}
numpy=numpy==2.4.6
declare -A packages=(
    [exudyn]="exudyn==1.13.6"
    [mujoco]="mujoco==4.0.0"
    [casadi]="casadi==3.8.2"
    [pinocchio]="pin==4.1.0 cmeel-eigen==3.4.1"
    [codegen]="pin==4.1.0 cmeel-eigen==3.4.1 cmeel-cppad==20250000.2 cmeel-cppadcodegen==2.4.3"
    [robots]="pin==4.1.0 example-robot-data==6.0.0"
)

names=("$@")
[ ${#names[@]} -gt 0 ] || names=(exudyn)
[ "${names[*]}" != all ] || names=("${!packages[@]}")

wanted=("$numpy")
for name in "${names[@]}"; do
    [ -n "${packages[$name]:-}" ] || { echo "no peer is called '$name'; there are: ${!packages[*]}" >&2; exit 2; }
    read -ra of_name <<<"${packages[$name]}"
    wanted+=("${of_name[@]}")
done

if [ ! -x "$folder/bin/python" ]; then
    echo "making a Python environment in $folder"
    python3 -m venv "$folder"
fi

installed=$("$folder/bin/pip" --disable-pip-version-check freeze --all)
missing=()
for package in "${wanted[@]}"; do
    grep -qixF "$package" <<<"$installed" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "installing ${missing[*]} into $folder"
    "$folder/bin/pip" --disable-pip-version-check install --quiet "${missing[@]}"
fi
echo "in $folder: ${wanted[*]}"
