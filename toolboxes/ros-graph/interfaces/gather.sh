#!/bin/sh
# gather.sh REPOSITORIES SHARE: writes the files of this folder from git repositories that lie in the folder REPOSITORIES
# under their names (common_interfaces, rcl_interfaces, ...; bare or not; their owner in NAME.owner), and for Kilted from the
# folder `share` of a Python environment with the wheels ros-kilted-* of PyPI. One file holds one package of one
# distribution: each interface after a line `==> package/kind/Name`. A package that is the same as in the distribution
# before is left out.
set -eu
from=$1
share=$2
cd "$(dirname "$0")"

# package DISTRIBUTION REPOSITORY BRANCH FOLDER LICENCE [BEFORE...]: FOLDER is `.` where the repository is the package.
package() {
    distribution=$1 repository=$2 branch=$3 folder=$4 licence=$5
    shift 5
    name=$(basename "$folder")
    [ "$folder" = . ] && name=$repository
    git="git -C $from/$repository"
    [ "$folder" = . ] && inside=$branch: || inside=$branch:$folder/
    mkdir -p "$distribution"
    out=$distribution/$name.txt
    version=$($git show "${inside}package.xml" | sed -n 's|.*<version>\(.*\)</version>.*|\1|p' | head -1)
    {
        echo "# $name $version, $licence, from https://github.com/$(cat "$from/$repository.owner")/$repository"
        for kind in msg srv action; do
            $git ls-tree --name-only "${inside}$kind/" 2>/dev/null | grep "\.$kind\$" | LC_ALL=C sort | while read -r file; do
                echo "==> $name/$kind/$(basename "$file" ".$kind")"
                $git show "${inside}$kind/$(basename "$file")" | tr -d '\r' | sed 's/[[:space:]]*$//' | without_licence
            done
        done
    } >"$out"
    only_if_new "$@"
}

# installed DISTRIBUTION NAME OWNER/REPOSITORY LICENCE BEFORE...
installed() {
    distribution=$1 name=$2 repository=$3 licence=$4
    shift 4
    mkdir -p "$distribution"
    out=$distribution/$name.txt
    version=$(sed -n 's|.*<version>\(.*\)</version>.*|\1|p' "$share/$name/package.xml" | head -1)
    {
        echo "# $name $version, $licence, from https://github.com/$repository"
        for kind in msg srv action; do
            for file in "$share/$name/$kind"/*."$kind"; do
                [ -f "$file" ] || continue
                # The parts of services and actions lie beside them.
                case $file in *_Request.msg | *_Response.msg | *_Event.msg) continue ;; esac
                echo "==> $name/$kind/$(basename "$file" ".$kind")"
                tr -d '\r' <"$file" | sed 's/[[:space:]]*$//' | without_licence
            done
        done
    } >"$out"
    only_if_new "$@"
}

only_if_new() {
    for before in "$@"; do
        [ -f "$before/$name.txt" ] || continue
        if [ "$(tail -n +2 "$before/$name.txt" | cksum)" = "$(tail -n +2 "$out" | cksum)" ]; then rm "$out"; fi
        break
    done
}

# Leaves out the licence that some files repeat at their head: LICENCES.md has it once.
without_licence() {
    awk '!started && /^#/ { head = head $0 "\n"; next } !started { started = 1; if (head !~ /Copyright/) printf "%s", head } { print } END { if (!started && head !~ /Copyright/) printf "%s", head }' | cat -s
}

all() {
    distribution=$1 branch=$2 nav2=$3
    shift 3
    for name in diagnostic_msgs geometry_msgs nav_msgs sensor_msgs std_msgs std_srvs trajectory_msgs; do
        package "$distribution" common_interfaces "$branch" $name Apache-2.0 "$@"
    done
    for name in action_msgs builtin_interfaces lifecycle_msgs rcl_interfaces rosgraph_msgs; do
        package "$distribution" rcl_interfaces "$branch" $name Apache-2.0 "$@"
    done
    if [ "$distribution" != humble ]; then
        package "$distribution" rcl_interfaces "$branch" service_msgs Apache-2.0 "$@"
        package "$distribution" rcl_interfaces "$branch" type_description_interfaces Apache-2.0 "$@"
    fi
    package "$distribution" unique_identifier_msgs "$branch" . BSD-3-Clause "$@"
    package "$distribution" rmw_dds_common "$branch" rmw_dds_common Apache-2.0 "$@"
    package "$distribution" geometry2 "$branch" tf2_msgs BSD-3-Clause "$@"
    package "$distribution" navigation2 "$nav2" nav2_msgs Apache-2.0 "$@"
}

all humble humble humble
all jazzy jazzy jazzy humble
for name in diagnostic_msgs geometry_msgs nav_msgs sensor_msgs std_msgs std_srvs trajectory_msgs; do
    installed kilted $name ros2/common_interfaces Apache-2.0 jazzy humble
done
for name in action_msgs builtin_interfaces lifecycle_msgs rcl_interfaces rosgraph_msgs service_msgs type_description_interfaces; do
    installed kilted $name ros2/rcl_interfaces Apache-2.0 jazzy humble
done
installed kilted unique_identifier_msgs ros2/unique_identifier_msgs BSD-3-Clause jazzy humble
installed kilted rmw_dds_common ros2/rmw_dds_common Apache-2.0 jazzy humble
package kilted navigation2 kilted nav2_msgs Apache-2.0 jazzy humble
package humble control_msgs humble control_msgs BSD-3-Clause
package jazzy control_msgs jazzy control_msgs BSD-3-Clause humble
package kilted control_msgs master control_msgs BSD-3-Clause jazzy humble
package humble irobot_create_msgs humble . BSD-3-Clause
